import CoreMetrics
import Synchronization

/// A value that only grows.
final class CounterValue: CounterHandler, Sendable {
    private let total = Atomic<Int64>(0)

    var value: Int64 { total.load(ordering: .relaxed) }

    func increment(by amount: Int64) {
        // A counter never falls, and would take centuries to overflow.
        if amount > 0 { total.wrappingAdd(amount, ordering: .relaxed) }
    }

    /// Does nothing: a counter is not reset while the daemon runs.
    func reset() {}
}

/// A value that rises and falls.
final class GaugeValue: MeterHandler, RecorderHandler, Sendable {
    private let bits = Atomic<UInt64>(0)

    var value: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

    func set(_ value: Int64) { set(Double(value)) }

    func set(_ value: Double) { bits.store(value.bitPattern, ordering: .relaxed) }

    func increment(by amount: Double) { bits.add(amount) }

    func decrement(by amount: Double) { bits.add(-amount) }

    func record(_ value: Int64) { set(value) }

    func record(_ value: Double) { set(value) }
}

/// The number of recorded values and their sum; times are in seconds.
final class SummaryValue: RecorderHandler, TimerHandler, Sendable {
    private let number = Atomic<Int64>(0)
    private let bits = Atomic<UInt64>(0)

    var count: Int64 { number.load(ordering: .relaxed) }
    var sum: Double { Double(bitPattern: bits.load(ordering: .relaxed)) }

    func record(_ value: Int64) { record(Double(value)) }

    func record(_ value: Double) {
        number.wrappingAdd(1, ordering: .relaxed)
        bits.add(value)
    }

    func recordNanoseconds(_ duration: Int64) { record(Double(duration) / 1e9) }
}

extension Atomic where Value == UInt64 {
    /// Adds to the number with these bits.
    fileprivate func add(_ amount: Double) {
        var old = load(ordering: .relaxed)
        while true {
            let new = (Double(bitPattern: old) + amount).bitPattern
            let (exchanged, original) = weakCompareExchange(expected: old, desired: new, ordering: .relaxed)
            if exchanged { return }
            old = original
        }
    }
}
