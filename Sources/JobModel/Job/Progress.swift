/// How far a job has come, as clients see it.
package struct Progress: Sendable, Hashable {
    package enum Unit: String, Sendable {
        case bytes
        case jobs
    }

    package var completed: Int64
    /// Nil while unknown.
    package var total: Int64?
    package var unit: Unit
    /// Units a second over the last seconds, or nil before two measurements.
    package var rate: Double?

    package init(completed: Int64, total: Int64?, unit: Unit = .bytes, rate: Double? = nil) {
        self.completed = completed
        self.total = total
        self.unit = unit
        self.rate = rate
    }

    /// The part done, 0 to 1, or nil while the total is unknown.
    package var fraction: Double? {
        guard let total else { return nil }
        return total <= 0 ? 1 : min(1, Double(completed) / Double(total))
    }

    /// The seconds left at the present rate, or nil while total or rate are unknown.
    package var eta: Double? {
        guard let total, let rate, rate > 0 else { return nil }
        return (Double(max(0, total.saturatingSubtracting(completed))) / rate * 10).rounded() / 10
    }

    /// The `progress` of the wire contract; what is unknown is `null`.
    package var json: JSON {
        [
            "completed": JSON(Int(completed)), "total": total.map { JSON(Int($0)) } ?? .null,
            "unit": .string(unit.rawValue),
            "fraction": fraction.map { JSON(($0 * 10_000).rounded() / 10_000) } ?? .null,
            "rate": rate.map { JSON($0.rounded()) } ?? .null, "eta": eta.map { JSON($0) } ?? .null,
        ]
    }

    /// Writes ``json`` without making it.
    package func write(to writer: inout JSONWriter) {
        writer.raw("{\"completed\":")
        writer.write(Int(completed))
        writer.raw(",\"total\":")
        if let total { writer.write(Int(total)) } else { writer.raw("null") }
        writer.raw(",\"unit\":\"")
        writer.raw(unit.rawValue.utf8)
        writer.raw("\",\"fraction\":")
        Self.write(fraction, in: 10_000, to: &writer)
        writer.raw(",\"rate\":")
        Self.write(rate, in: 1, to: &writer)
        writer.raw(",\"eta\":")
        Self.write(eta, in: 10, to: &writer)
        writer.raw("}")
    }

    /// Writes a number rounded to so many parts of one; up to 15 digits are what is shown of the nearest binary value.
    private static func write(_ value: Double?, in parts: Double, to writer: inout JSONWriter) {
        guard let value else { return writer.raw("null") }
        let count = (value * parts).rounded()
        if count >= 0, count < 1e15 {
            writer.write(Int(count), over: Int(parts))
        } else {
            writer.write(JSON(count / parts))
        }
    }
}
