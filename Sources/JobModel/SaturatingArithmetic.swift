/// Arithmetic that stops at the ends of the type's range.
///
/// Numbers from servers, clients, stored rows and the configuration use these functions, never the operators, which end
/// the process on overflow.
extension FixedWidthInteger {
    @inlinable package func saturatingAdding(_ other: Self) -> Self {
        let (sum, overflows) = addingReportingOverflow(other)
        guard overflows else { return sum }
        // Only operands of the same sign can overflow.
        return other < 0 ? .min : .max
    }

    @inlinable package func saturatingSubtracting(_ other: Self) -> Self {
        let (difference, overflows) = subtractingReportingOverflow(other)
        guard overflows else { return difference }
        return Self.isSigned && other < 0 ? .max : .min
    }

    @inlinable package func saturatingMultiplied(by other: Self) -> Self {
        let (product, overflows) = multipliedReportingOverflow(by: other)
        guard overflows else { return product }
        return (self < 0) == (other < 0) ? .max : .min
    }

    /// Creates an integer from `value`, truncated and clamped to the range; NaN becomes 0.
    @inlinable package init(saturating value: Double) {
        if let exact = Self(exactly: value.rounded(.towardZero)) {
            self = exact
        } else if value.isNaN {
            self = 0
        } else {
            self = value < 0 ? .min : .max
        }
    }
}
