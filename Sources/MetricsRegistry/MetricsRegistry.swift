package import CoreMetrics
import Synchronization

/// A backend of swift-metrics that keeps values in memory and returns them on request.
///
/// Metrics with the same name and labels share one value, which is kept for ever, because a counter that starts again
/// would indicate an event. There are at most ``limit`` values: further metrics work but are not kept, so labels cannot
/// fill the memory.
package final class MetricsRegistry: MetricsFactory {
    /// The maximum number of values.
    package static let limit = 6000

    /// The name and labels of a value.
    struct Key: Hashable {
        let name: String
        let labels: [MetricFamily.Label]
    }

    enum Instrument {
        case counter(CounterValue)
        case gauge(GaugeValue)
        case summary(SummaryValue)

        var kind: MetricFamily.Kind {
            switch self {
            case .counter: .counter
            case .gauge: .gauge
            case .summary: .summary
            }
        }
    }

    private struct State {
        var instruments: [Key: Instrument] = [:]
        /// The kind of each name: all values of one name have the same kind.
        var kinds: [String: MetricFamily.Kind] = [:]
    }

    private let descriptions: [String: MetricDescription]
    private let state = Mutex(State())

    /// Creates a registry that describes metrics with these `descriptions`, by name.
    package init(descriptions: [String: MetricDescription] = [:]) {
        self.descriptions = descriptions
    }

    /// All values, sorted by name and labels.
    package var families: [MetricFamily] {
        let instruments = state.withLock(\.instruments)
        return Dictionary(grouping: instruments, by: \.key.name).map { name, values in
            let sorted = values.sorted { $0.key.labels.lexicographicallyPrecedes($1.key.labels) }
            return MetricFamily(
                name: name, kind: sorted.first?.value.kind ?? .gauge, description: descriptions[name],
                samples: sorted.map { key, instrument in
                    switch instrument {
                    case .counter(let counter): MetricFamily.Sample(labels: key.labels, value: .whole(counter.value))
                    case .gauge(let gauge): MetricFamily.Sample(labels: key.labels, value: .number(gauge.value))
                    case .summary(let summary):
                        MetricFamily.Sample(labels: key.labels, value: .summary(count: summary.count, sum: summary.sum))
                    }
                })
        }.sorted { $0.name < $1.name }
    }

    /// The existing or a new instrument with this name and these labels; nil if there is no space for it, or the name
    /// has another kind.
    private func instrument(_ name: String, _ dimensions: [(String, String)], _ make: () -> Instrument) -> Instrument? {
        let key = Key(
            name: name.metricName,
            labels: dimensions.map { MetricFamily.Label(name: $0.0.labelName, value: $0.1) }.sorted())
        return state.withLock { state in
            if let there = state.instruments[key] { return there }
            let new = make()
            guard state.instruments.count < Self.limit, state.kinds[key.name, default: new.kind] == new.kind else {
                return nil
            }
            state.instruments[key] = new
            state.kinds[key.name] = new.kind
            return new
        }
    }

    // MARK: - MetricsFactory

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        // Readers of OpenMetrics add this suffix.
        let name = label.hasSuffix("_total") ? String(label.dropLast("_total".count)) : label
        if case .counter(let value)? = instrument(name, dimensions, { .counter(CounterValue()) }) { return value }
        return NOOPMetricsHandler.instance
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        if case .gauge(let value)? = instrument(label, dimensions, { .gauge(GaugeValue()) }) { return value }
        return NOOPMetricsHandler.instance
    }

    package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        let made = instrument(label, dimensions) { aggregate ? .summary(SummaryValue()) : .gauge(GaugeValue()) }
        switch made {
        case .summary(let value): return value
        case .gauge(let value): return value
        default: return NOOPMetricsHandler.instance
        }
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        let name = label.hasSuffix("_seconds") ? label : label + "_seconds"
        if case .summary(let value)? = instrument(name, dimensions, { .summary(SummaryValue()) }) { return value }
        return NOOPMetricsHandler.instance
    }

    // Counted values are kept.

    package func destroyCounter(_ handler: any CounterHandler) {}

    package func destroyMeter(_ handler: any MeterHandler) {}

    package func destroyRecorder(_ handler: any RecorderHandler) {}

    package func destroyTimer(_ handler: any TimerHandler) {}
}

extension String {
    /// The name in the form that OpenMetrics allows: letters, digits, `_` and `:`, without a leading digit.
    var metricName: String {
        let text = String(
            map { character in
                character.isASCII && (character.isLetter || character.isNumber || "_:".contains(character))
                    ? character : "_"
            })
        return text.first.map { $0.isNumber ? "_" + text : text } ?? "_"
    }

    /// The name of a label, in which `:` is not allowed.
    fileprivate var labelName: String { String(metricName.map { $0 == ":" ? "_" : $0 }) }
}
