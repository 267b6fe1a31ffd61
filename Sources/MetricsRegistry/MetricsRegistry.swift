package import CoreMetrics
package import JobModel
import Synchronization

/// A backend of swift-metrics that keeps values in memory and returns them on request.
///
/// Metrics with the same name and labels share one value, which is kept for ever, because a counter that starts again
/// would indicate an event. There are at most ``limit`` values: further metrics work but are not kept, so labels cannot
/// fill the memory.
package final class MetricsRegistry: MetricsFactory {
    /// The maximum number of values.
    package static let limit = 6000

    private struct Key: Hashable {
        let name: String
        let labels: [String: String]
    }

    private struct State {
        var values: [Key: MetricValue] = [:]
        /// The kind of all values with a name.
        var kinds: [String: MetricValue.Kind] = [:]
    }

    private let descriptions: [String: MetricDescription]
    private let state = Mutex(State())

    /// Creates a registry that describes metrics with these `descriptions`, by name.
    package init(descriptions: [String: MetricDescription] = [:]) {
        self.descriptions = descriptions
    }

    /// All values in the form of `server.stats`: families by name, with samples by labels.
    package var families: [JSON] {
        let (values, kinds) = state.withLock { ($0.values, $0.kinds) }
        let samples = Dictionary(grouping: values, by: \.key.name).mapValues { values in
            values.map { (labels: $0.key.labels.sorted { $0.key < $1.key }, value: $0.value) }
                .sorted { $0.labels.lexicographicallyPrecedes($1.labels) { ($0.key, $0.value) < ($1.key, $1.value) } }
        }
        return samples.sorted { $0.key < $1.key }.map { name, samples in
            .object([
                "name": name.json, "type": kinds[name]?.rawValue.json, "help": descriptions[name]?.help.json,
                "unit": descriptions[name]?.unit?.json,
                "samples": .array(
                    samples.map { labels, value in
                        var sample = JSONObject()
                        if !labels.isEmpty {
                            sample["labels"] = .object(labels.reduce(into: [:]) { $0[$1.key] = $1.value.json })
                        }
                        for member in value.members.members { sample[member.name] = member.value }
                        return .object(sample)
                    }),
            ])
        }
    }

    /// The existing or a new value with this name and these labels; nil if there is no space for it, or the name has
    /// another kind.
    private func value(_ name: String, _ dimensions: [(String, String)], _ kind: MetricValue.Kind) -> MetricValue? {
        let labels = Dictionary(dimensions.map { ($0.0.labelName, $0.1) }) { $1 }
        let key = Key(name: name.metricName, labels: labels)
        return state.withLock { state in
            guard state.kinds[key.name, default: kind] == kind else { return nil }
            if let there = state.values[key] { return there }
            guard state.values.count < Self.limit else { return nil }
            let new = MetricValue(kind)
            state.values[key] = new
            state.kinds[key.name] = kind
            return new
        }
    }

    // MARK: - MetricsFactory

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        // Readers of OpenMetrics add this suffix.
        let name = label.hasSuffix("_total") ? String(label.dropLast("_total".count)) : label
        return value(name, dimensions, .counter) ?? NOOPMetricsHandler.instance
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        value(label, dimensions, .gauge) ?? NOOPMetricsHandler.instance
    }

    package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        value(label, dimensions, aggregate ? .summary : .gauge) ?? NOOPMetricsHandler.instance
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        let name = label.hasSuffix("_seconds") ? label : label + "_seconds"
        return value(name, dimensions, .summary) ?? NOOPMetricsHandler.instance
    }

    // Values are kept.

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
