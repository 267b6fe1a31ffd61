import ArgumentParser
import JobModel

/// The value of an option, or `none` or `default`, which take a value away.
struct Revocable<Value: ExpressibleByArgument & Sendable>: ExpressibleByArgument, Sendable {
    private let value: Value?

    init?(argument: String) {
        value = Value(argument: argument)
        guard value != nil || ["none", "default"].contains(argument) else { return nil }
    }

    /// The value as `write` writes it, or null.
    func json(_ write: (Value) -> JSON) -> JSON { value.map(write) ?? .null }
}

/// So many in a time: `10/1s`, `100/m`.
struct StartRate: ExpressibleByArgument, Sendable {
    let json: JSON

    init?(argument: String) {
        let parts = argument.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, let count = Int(parts[0]), count > 0,
            let span = WrittenDuration(argument: parts[1]) ?? WrittenDuration(argument: "1" + parts[1])
        else { return nil }
        json = ["count": count.json, "seconds": span.seconds.json]
    }
}
