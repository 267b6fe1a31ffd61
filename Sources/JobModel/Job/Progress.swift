/// A job's progress, as clients see it.
package struct Progress: Sendable, Hashable {
    package struct Unit: Sendable, Hashable, RawRepresentable {
        package let rawValue: String

        /// Creates a unit; the word must satisfy ``isWellFormed(_:)``.
        package init(rawValue: String) { self.rawValue = rawValue }

        package static let bytes = Unit(rawValue: "bytes")
        package static let jobs = Unit(rawValue: "jobs")
        /// The unit of a program that names none.
        package static let items = Unit(rawValue: "items")

        /// Returns whether a program's word may be a unit: at most 32 bytes, none of which JSON would escape.
        package static func isWellFormed(_ word: String) -> Bool {
            (1...32).contains(word.utf8.count)
                && word.utf8.allSatisfy { $0 > 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }
        }
    }

    package var completed: Int64
    /// Nil while unknown.
    package var total: Int64?
    package var unit: Unit
    /// Units per second over the last seconds; nil before two measurements.
    package var rate: Double?

    package init(completed: Int64, total: Int64?, unit: Unit = .bytes, rate: Double? = nil) {
        self.completed = completed
        self.total = total
        self.unit = unit
        self.rate = rate
    }

    /// The completed fraction, 0 to 1; nil while the total is unknown.
    package var fraction: Double? {
        guard let total else { return nil }
        return total <= 0 ? 1 : min(1, Double(completed) / Double(total))
    }

    /// The longest ``eta``, a year: at a rate of almost 0, it says nothing.
    private static let longest = 31_536_000.0

    /// The remaining seconds at the current rate; nil while total or rate is unknown, or if they are too many.
    package var eta: Double? {
        guard let total, let rate, rate > 0 else { return nil }
        let seconds = Double(max(0, total.saturatingSubtracting(completed))) / rate
        return seconds <= Self.longest ? (seconds * 10).rounded() / 10 : nil
    }

    /// The `progress` of the wire contract; unknown values are `null`.
    package var json: JSON {
        func rounded(_ value: Double?, _ parts: Double = 1) -> JSON {
            value.map { JSON(($0 * parts).rounded() / parts) } ?? .null
        }
        return .object([
            "completed": completed.json, "total": total?.json ?? .null, "unit": unit.rawValue.json,
            "fraction": rounded(fraction, 10_000), "rate": rounded(rate), "eta": rounded(eta, 10),
        ])
    }
}
