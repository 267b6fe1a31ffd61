package import CoreMetrics
import JobModel
package import MetricsRegistry
import JobCore
import Synchronization

/// Feeds swift-metrics, which nothing else in the daemon does.
///
/// The ends of sources are counted as they happen; the counts of the core are passed on when an administrator asks, so that
/// submissions cost nothing more. Labels are states, queues, types of sources and kinds of errors, never URLs or users.
package final class EngineMetrics: Sendable {
    /// The kinds of errors with a label of their own; jobs can make up others.
    private static let kinds: Set<JobError.Kind> = [
        .dns, .connect, .tls, .network, .timeout, .http, .policy, .exists, .storage, .checksum, .parse, .select,
        .tooLarge, .template, .list, .cancelled, .invalid, .interrupted, .internal, JobError.Kind(rawValue: "program"),
    ]

    /// By name.
    package static let descriptions: [String: MetricDescription] = [
        "deferd_jobs": MetricDescription("Jobs that are stored, by state."),
        "deferd_queue_jobs": MetricDescription("Jobs that are not finished, by queue and state."),
        "deferd_queue_slots": MetricDescription("Jobs of the queue that may run at a time."),
        "deferd_queue_suspended": MetricDescription("1 where the queue is suspended, else 0."),
        "deferd_jobs_submitted": MetricDescription("Jobs that were submitted since the start."),
        "deferd_jobs_finished": MetricDescription("Jobs that ended since the start, by the state they ended in."),
        "deferd_jobs_retried": MetricDescription("Attempts that were put off to another since the start."),
        "deferd_received_bytes": MetricDescription(
            "Bytes of bodies that were transferred since the start.", unit: "bytes"),
        "deferd_runs": MetricDescription(
            "Attempts of sources that ended, by type and by \"succeeded\" or kind of error."),
        "deferd_run_seconds": MetricDescription("The time that attempts of sources took, by type.", unit: "seconds"),
        "deferd_connections": MetricDescription("Connections that are open."),
        "deferd_watches": MetricDescription("Watches that are open."),
        "deferd_uptime_seconds": MetricDescription("The time since the start.", unit: "seconds"),
        "deferd_storage_failed": MetricDescription("1 while nothing can be stored, else 0."),
        "deferd_storage_free_bytes": MetricDescription("Room on the disk of the state.", unit: "bytes"),
    ]

    private let factory: any MetricsFactory
    /// Found once, as each end of a source needs them.
    private let successes: [SourceType: Counter]
    private let timers: [SourceType: CoreMetrics.Timer]
    /// The totals that counters have been told.
    private let told = Mutex(CoreTotals())

    package init(factory: any MetricsFactory = NOOPMetricsHandler.instance) {
        self.factory = factory
        let types = SourceType.allCases.map { ($0, [("source", $0.rawValue)]) }
        successes = Dictionary(
            uniqueKeysWithValues: types.map {
                ($0, Counter(label: "deferd_runs", dimensions: $1 + [("result", "succeeded")], factory: factory))
            })
        timers = Dictionary(
            uniqueKeysWithValues: types.map {
                ($0, CoreMetrics.Timer(label: "deferd_run_seconds", dimensions: $1, factory: factory))
            })
    }

    /// Counts an attempt of a source.
    func ended(_ type: SourceType, _ outcome: Outcome, nanoseconds: Int64) {
        timers[type]?.recordNanoseconds(max(0, nanoseconds))
        guard case .failure(let error) = outcome else { return successes[type]?.increment() ?? () }
        let result = Self.kinds.contains(error.kind) ? error.kind.rawValue : "other"
        add("deferd_runs", 1, [("source", type.rawValue), ("result", result)])
    }

    /// Passes on what is counted elsewhere; `read` gives the engine's status.
    package func update(
        _ read: () -> EngineStatus, uptime: Double, connections: Int, freeBytes: Int64?
    ) {
        // Reading it here keeps two callers from passing on their totals in the wrong order.
        let status = told.withLock { told in
            let status = read()
            let totals = status.totals()
            add("deferd_jobs_submitted", totals.submitted - told.submitted)
            add("deferd_jobs_finished", totals.succeeded - told.succeeded, [("state", "succeeded")])
            add("deferd_jobs_finished", totals.failed - told.failed, [("state", "failed")])
            add("deferd_jobs_finished", totals.cancelled - told.cancelled, [("state", "cancelled")])
            add("deferd_jobs_retried", totals.retried - told.retried)
            add("deferd_received_bytes", Int(totals.bytesReceived - told.bytesReceived))
            told = totals
            return status
        }
        gauge("deferd_uptime_seconds", uptime)
        gauge("deferd_connections", Double(connections))
        gauge("deferd_watches", Double(status.watches()))
        gauge("deferd_storage_failed", status.storageFailure == nil ? 0 : 1)
        if let freeBytes { gauge("deferd_storage_free_bytes", Double(freeBytes)) }
        for (state, count) in status.jobs() { gauge("deferd_jobs", Double(count), [("state", state.rawValue)]) }
        for queue in status.queues {
            let labels = [("queue", queue.settings.name)]
            gauge("deferd_queue_slots", Double(queue.settings.concurrency), labels)
            gauge("deferd_queue_suspended", queue.settings.isSuspended ? 1 : 0, labels)
            for (state, count) in status.jobs(queue: queue.settings.name) where !state.isTerminal {
                gauge("deferd_queue_jobs", Double(count), labels + [("state", state.rawValue)])
            }
        }
    }

    private func add(_ name: String, _ amount: Int, _ labels: [(String, String)] = []) {
        Counter(label: name, dimensions: labels, factory: factory).increment(by: amount)
    }

    private func gauge(_ name: String, _ value: Double, _ labels: [(String, String)] = []) {
        Meter(label: name, dimensions: labels, factory: factory).set(value)
    }
}
