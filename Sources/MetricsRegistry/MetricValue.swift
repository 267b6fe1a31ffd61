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
final class MetricValue: CounterHandler, MeterHandler, RecorderHandler, TimerHandler, Sendable {
    enum Kind: String, Sendable {
        /// A count that never falls.
        case counter
        /// A number that rises and falls.
        case gauge
        /// The count of recorded numbers, and their sum; times are in seconds.
        case summary
    }

    let kind: Kind
    private let count = Atomic<Int64>(0)
    /// The gauge or the sum.
    private let number = Mutex(0.0)

    init(_ kind: Kind) { self.kind = kind }

    func increment(by amount: Int64) {
        // It would take centuries to overflow.
        if amount > 0 { count.wrappingAdd(amount, ordering: .relaxed) }
    }

    /// Does nothing: a counter is not reset while the daemon runs.
    func reset() {}

    func set(_ value: Int64) { set(Double(value)) }

    func set(_ value: Double) { number.withLock { $0 = value } }

    func increment(by amount: Double) { number.withLock { $0 += amount } }

    func decrement(by amount: Double) { increment(by: -amount) }

    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        if kind == .gauge { return set(value) }
        increment(by: Int64(1))
        increment(by: value)
    }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }

    /// The value as members of a sample. JSON cannot represent NaN and infinity.
    var members: JSONObject {
        let (count, number) = (Int(count.load(ordering: .relaxed)), number.withLock(\.self))
        let json = number.isFinite ? JSON(number) : .null
        return switch kind {
        case .counter: ["value": count.json]
        case .gauge: ["value": json]
        case .summary: ["count": count.json, "sum": json]
        }
    }
}
