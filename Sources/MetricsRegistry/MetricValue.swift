import CoreMetrics
import JobModel
import Synchronization

/// The description of a metric: a sentence, and the unit with which its name ends.
package struct MetricDescription: Sendable, Hashable {
    package let help: String
    package let unit: String?

    package init(_ help: String, unit: String? = nil) {
        self.help = help
        self.unit = unit
    }
}

/// A value with one name and set of labels.
final class MetricValue: CounterHandler, MeterHandler, TimerHandler, Sendable {
    enum Kind: String, Sendable {
        /// A count that never falls.
        case counter
        /// A number that rises and falls.
        case gauge
        /// The count of recorded times, and their sum in seconds.
        case summary
    }

    let kind: Kind
    private let state = Mutex<(count: Int64, number: Double)>((0, 0))

    init(_ kind: Kind) { self.kind = kind }

    func increment(by amount: Int64) { state.withLock { $0.count = $0.count.saturatingAdding(max(0, amount)) } }

    /// Does nothing: a counter is not reset while the daemon runs.
    func reset() {}

    func set(_ value: Int64) { set(Double(value)) }

    func set(_ value: Double) { state.withLock { $0.number = value } }

    func increment(by amount: Double) { state.withLock { $0.number += amount } }

    func decrement(by amount: Double) { increment(by: -amount) }

    func recordNanoseconds(_ duration: Int64) {
        increment(by: 1 as Int64)
        increment(by: Double(duration) / 1e9)
    }

    /// The value as members of a sample. JSON cannot represent NaN and infinity.
    var members: JSONObject {
        let (count, number) = state.withLock(\.self)
        return switch kind {
        case .counter: ["value": count.json]
        case .gauge: ["value": JSON(number)]
        case .summary: ["count": count.json, "sum": JSON(number)]
        }
    }
}
