/// Sums, differences and products that stay at the end of the type's range where the true one lies beyond it.
///
/// Numbers that come from servers, clients, stored rows and the configuration go through these and never through the
/// operators, which end the process where a result does not fit.
extension FixedWidthInteger {
    @inlinable package func saturatingAdding(_ other: Self) -> Self {
        let (sum, overflows) = addingReportingOverflow(other)
        guard overflows else { return sum }
        // Only two numbers of the same sign have a sum that does not fit.
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

    /// The whole number nearest to zero's side of `value`, or the end of the range beyond which it lies; 0 for NaN.
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
