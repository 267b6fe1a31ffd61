package import CoreMetrics
package import JobModel
import Synchronization

/// A backend of swift-metrics that keeps values in memory and returns them on request.
///
/// Metrics with the same name and labels share one value, which is kept for ever, because a counter that starts again
/// would indicate an event. Names and labels are the daemon's own, and in the form that OpenMetrics allows.
package final class MetricsRegistry: MetricsFactory {
    private struct Key: Hashable {
        let name: String
        let labels: [String: String]
    }

    private let descriptions: [String: MetricDescription]
    private let values = Mutex<[Key: MetricValue]>([:])

    /// Creates a registry that describes metrics with these `descriptions`, by name.
    package init(descriptions: [String: MetricDescription] = [:]) {
        self.descriptions = descriptions
    }

    /// All values in the form of `server.stats`: families by name, with samples by labels.
    package var families: [JSON] {
        let samples = Dictionary(grouping: values.withLock(\.self), by: \.key.name).mapValues { values in
            values.map { (labels: $0.key.labels.sorted { $0.key < $1.key }, value: $0.value) }
                .sorted { $0.labels.lexicographicallyPrecedes($1.labels) { ($0.key, $0.value) < ($1.key, $1.value) } }
        }
        return samples.sorted { $0.key < $1.key }.map { name, samples in
            .object([
                "name": name.json, "type": samples.first?.value.kind.rawValue.json,
                "help": descriptions[name]?.help.json, "unit": descriptions[name]?.unit?.json,
                "samples": .array(
                    samples.map { labels, value in
                        var sample = JSONObject()
                        if !labels.isEmpty {
                            sample["labels"] = .object(labels.reduce(into: [:]) { $0[$1.key] = $1.value.json })
                        }
                        return .object(JSONObject(sample.members + value.members.members))
                    }),
            ])
        }
    }

    /// The existing or a new value with this name and these labels.
    private func value(_ name: String, _ labels: [(String, String)], _ kind: MetricValue.Kind) -> MetricValue {
        let key = Key(name: name, labels: Dictionary(labels) { $1 })
        return values.withLock { values in
            let value = values[key] ?? MetricValue(kind)
            values[key] = value
            return value
        }
    }

    // MARK: - MetricsFactory

    package func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        value(label, dimensions, .counter)
    }

    package func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler {
        value(label, dimensions, .gauge)
    }

    package func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        value(label, dimensions, .summary)
    }

    /// The daemon has no recorders.
    package func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        NOOPMetricsHandler.instance
    }

    // Values are kept.

    package func destroyCounter(_ handler: any CounterHandler) {}

    package func destroyMeter(_ handler: any MeterHandler) {}

    package func destroyRecorder(_ handler: any RecorderHandler) {}

    package func destroyTimer(_ handler: any TimerHandler) {}
}
