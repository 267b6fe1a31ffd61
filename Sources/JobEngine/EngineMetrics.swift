package import CoreMetrics
import JobModel
package import MetricsRegistry
import JobCore
import Synchronization

/// Feeds swift-metrics; nothing else in the daemon does.
///
/// What the core counts by itself is passed on when somebody asks, so that a submission costs nothing for it. Counted here
/// is only how sources end, which is when one does. Labels are states, queues, types of sources and kinds of errors,
/// never a URL or a user.
package final class EngineMetrics: Sendable {
    /// The kinds of errors that are told apart; a job can make up others.
    private static let kinds: Set<JobError.Kind> = [
        .dns, .connect, .tls, .network, .timeout, .http, .policy, .exists, .storage, .checksum, .parse, .select,
        .tooLarge,
        .template, .list, .cancelled, .invalid, .interrupted, .internal, JobError.Kind(rawValue: "program"),
    ]

    /// What the metrics mean, by name.
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
    private let runs: [SourceType: (succeeded: Counter, time: CoreMetrics.Timer)]
    /// The totals that counters have been told.
    private let told = Mutex(CoreTotals())

    /// Metrics that `factory` keeps.
    package init(factory: any MetricsFactory = NOOPMetricsHandler.instance) {
        self.factory = factory
        runs = Dictionary(
            uniqueKeysWithValues: SourceType.allCases.map { type in
                let labels = [("source", type.rawValue)]
                return (
                    type,
                    (
                        Counter(label: "deferd_runs", dimensions: labels + [("result", "succeeded")], factory: factory),
                        CoreMetrics.Timer(label: "deferd_run_seconds", dimensions: labels, factory: factory)
                    )
                )
            })
    }

    /// An attempt of a source of this type ended, after so many nanoseconds.
    func ended(_ type: SourceType, _ error: JobError?, nanoseconds: Int64) {
        guard let run = runs[type] else { return }
        run.time.recordNanoseconds(max(0, nanoseconds))
        guard let error else { return run.succeeded.increment() }
        let kind = Self.kinds.contains(error.kind) ? error.kind.rawValue : "other"
        Counter(
            label: "deferd_runs", dimensions: [("source", type.rawValue), ("result", kind)], factory: factory
        ).increment()
    }

    /// Passes on what is counted elsewhere.
    package func update(_ status: EngineStatus, uptime: Double, connections: Int, freeBytes: Int64?) {
        gauge("deferd_uptime_seconds", uptime)
        gauge("deferd_connections", Double(connections))
        gauge("deferd_watches", Double(status.watches()))
        gauge("deferd_storage_failed", status.storageFailure == nil ? 0 : 1)
        if let freeBytes { gauge("deferd_storage_free_bytes", Double(freeBytes)) }
        for (state, count) in status.jobs() {
            gauge("deferd_jobs", Double(count), [("state", state.rawValue)])
        }
        for queue in status.queues {
            let labels = [("queue", queue.settings.name)]
            gauge("deferd_queue_slots", Double(queue.settings.concurrency), labels)
            gauge("deferd_queue_suspended", queue.settings.isSuspended ? 1 : 0, labels)
            for (state, count) in status.jobs(queue: queue.settings.name) where !state.isTerminal {
                gauge("deferd_queue_jobs", Double(count), labels + [("state", state.rawValue)])
            }
        }
        count(status.totals())
    }

    /// Lets the counters catch up with the totals.
    private func count(_ totals: CoreTotals) {
        told.withLock { told in
            add("deferd_jobs_submitted", totals.submitted - told.submitted)
            add("deferd_jobs_finished", totals.succeeded - told.succeeded, [("state", "succeeded")])
            add("deferd_jobs_finished", totals.failed - told.failed, [("state", "failed")])
            add("deferd_jobs_finished", totals.cancelled - told.cancelled, [("state", "cancelled")])
            add("deferd_jobs_retried", totals.retried - told.retried)
            add("deferd_received_bytes", Int(totals.bytesReceived - told.bytesReceived))
            // Two who ask at once may bring theirs in the other order.
            told.raise(to: totals)
        }
    }

    private func add(_ name: String, _ amount: Int, _ labels: [(String, String)] = []) {
        Counter(label: name, dimensions: labels, factory: factory).increment(by: max(0, amount))
    }

    private func gauge(_ name: String, _ value: Double, _ labels: [(String, String)] = []) {
        Meter(label: name, dimensions: labels, factory: factory).set(value)
    }
}

extension CoreTotals {
    fileprivate mutating func raise(to other: CoreTotals) {
        submitted = max(submitted, other.submitted)
        succeeded = max(succeeded, other.succeeded)
        failed = max(failed, other.failed)
        cancelled = max(cancelled, other.cancelled)
        retried = max(retried, other.retried)
        bytesReceived = max(bytesReceived, other.bytesReceived)
    }
}
