/// A job's progress, as clients see it.
package struct Progress: Sendable, Hashable {
    /// The unit of counting.
    package struct Unit: Sendable, Hashable, RawRepresentable {
        package let rawValue: String

        /// Creates a unit; the word must satisfy ``isWellFormed(_:)``.
        package init(rawValue: String) {
            self.rawValue = rawValue
        }

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

    /// The remaining seconds at the current rate; nil while total or rate is unknown.
    package var eta: Double? {
        guard let total, let rate, rate > 0 else { return nil }
        return (Double(max(0, total.saturatingSubtracting(completed))) / rate * 10).rounded() / 10
    }

    /// A value in the wire contract's `progress`; nil is written as `null`.
    fileprivate enum Value {
        case count(Int64?)
        case word(String)
        /// Rounded to this many parts of one.
        case rounded(Double?, parts: Double)
    }

    /// Calls `body` with each member of the wire contract's `progress`.
    ///
    /// Inlined, so that ``write(to:)`` allocates no closure and no list for each of many jobs.
    @inline(__always)
    private func forEachMember(_ body: (_ name: StaticString, Value) -> Void) {
        body("completed", .count(completed))
        body("total", .count(total))
        body("unit", .word(unit.rawValue))
        body("fraction", .rounded(fraction, parts: 10_000))
        body("rate", .rounded(rate, parts: 1))
        body("eta", .rounded(eta, parts: 10))
    }

    /// The `progress` of the wire contract; unknown values are `null`.
    package var json: JSON {
        var object = JSONObject()
        forEachMember { name, value in object.append(name.description, value.json) }
        return .object(object)
    }

    /// Writes ``json`` without building it.
    package func write(to writer: inout JSONWriter) {
        writer.raw("{")
        var isFirst = true
        forEachMember { name, value in
            if isFirst { writer.raw("\"") } else { writer.raw(",\"") }
            isFirst = false
            writer.raw(name)
            writer.raw("\":")
            value.write(to: &writer)
        }
        writer.raw("}")
    }
}

extension Progress.Value {
    fileprivate var json: JSON {
        switch self {
        case .count(let count): count.map { JSON(Int($0)) } ?? .null
        case .word(let word): .string(word)
        case .rounded(let value, let parts): value.map { JSON(($0 * parts).rounded() / parts) } ?? .null
        }
    }

    @inline(__always)
    fileprivate func write(to writer: inout JSONWriter) {
        switch self {
        case .count(.some(let count)): writer.write(Int(count))
        case .word(let word):
            writer.raw("\"")
            writer.raw(text: word)
            writer.raw("\"")
        case .rounded(.some(let value), let parts):
            let count = (value * parts).rounded()
            // Numbers of up to 15 digits read like the nearest `Double`.
            if count >= 0, count < 1e15 {
                writer.write(Int(count), over: Int(parts))
            } else {
                writer.write(JSON(count / parts))
            }
        case .count(nil), .rounded(nil, _): writer.raw("null")
        }
    }
}
