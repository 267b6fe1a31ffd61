package import JobModel
import JobCore
import Synchronization

/// The metrics of `server.stats`.
///
/// The ends of sources are counted here as they happen; all else is in the engine's status. Labels are states, queues, types
/// of sources and kinds of errors, never URLs or users.
package final class EngineMetrics: Sendable {
    /// The attempts of sources of one type that ended, by "succeeded" or the kind of error, and the milliseconds that they took.
    private typealias Attempts = (results: [String: Int], milliseconds: Int64)

    /// Of sources that have attempts: all others are values and waits.
    private let attempts = Mutex<[SourceType: Attempts]>(
        [.url, .download, .json, .upload, .program].reduce(into: [:]) { $0[$1] = (["succeeded": 0], 0) })

    func ended(_ type: SourceType?, _ outcome: Outcome, milliseconds: Int64) {
        guard let type else { return }
        var result = "succeeded"
        if case .failure(let error) = outcome { result = error.kind.rawValue }
        attempts.withLock { attempts in
            attempts[type]?.results[result, default: 0] += 1
            attempts[type]?.milliseconds += max(0, milliseconds)
        }
    }

    private let bytes = Mutex<[UInt32: Int64]>([:])

    /// Counts bytes of bodies that arrive or are sent for an owner's jobs.
    func transferred(_ count: Int, for owner: UInt32) {
        bytes.withLock { $0[owner, default: 0] += Int64(count) }
    }

    /// The bytes of bodies that were transferred since the start, for one owner's jobs or for all.
    package func transferred(for owner: UInt32? = nil) -> Int64 {
        bytes.withLock { bytes in owner.map { bytes[$0, default: 0] } ?? bytes.values.reduce(0, +) }
    }

    package func families(_ status: EngineStatus, uptime: Double, connections: Int, freeBytes: Int64?) -> [JSON] {
        let (totals, queues) = (status.totals(), status.queues.map(\.settings))
        let ended = [JobState.succeeded: totals.succeeded, .failed: totals.failed, .cancelled: totals.cancelled]
        let attempts = attempts.withLock(\.self).sorted { $0.key.rawValue < $1.key.rawValue }
        let families: [JSON?] = [
            family("jobs", "gauge", "Jobs that are stored, by state.", samples(of: status.jobs())),
            family(
                "queue_jobs", "gauge", "Jobs that are not finished, by queue and state.",
                queues.flatMap { queue in
                    samples(
                        of: status.jobs(queue: queue.name).filter { !$0.key.isTerminal }, ["queue": queue.name.json])
                }),
            family(
                "queue_slots", "gauge", "Jobs of the queue that may run at a time.",
                queues.map { sample($0.concurrency.json, ["queue": $0.name.json]) }),
            family(
                "queue_suspended", "gauge", "1 where the queue is suspended, else 0.",
                queues.map { sample($0.isSuspended ? 1 : 0, ["queue": $0.name.json]) }),
            family(
                "jobs_submitted", "counter", "Jobs that were submitted since the start.",
                [sample(totals.submitted.json)]),
            family(
                "jobs_finished", "counter", "Jobs that ended since the start, by the state they ended in.",
                samples(of: ended)),
            family(
                "jobs_retried", "counter", "Attempts that were put off to another since the start.",
                [sample(totals.retried.json)]),
            family(
                "received_bytes", "counter", "Bytes of bodies that were transferred since the start.", unit: "bytes",
                [sample(transferred().json)]),
            family("connections", "gauge", "Connections that are open.", [sample(connections.json)]),
            family("watches", "gauge", "Watches that are open.", [sample(status.watches().json)]),
            family("uptime_seconds", "gauge", "The time since the start.", unit: "seconds", [sample(uptime.json)]),
            family(
                "storage_failed", "gauge", "1 while nothing can be stored, else 0.",
                [sample(status.storageFailure == nil ? 0 : 1)]),
            freeBytes.map {
                family(
                    "storage_free_bytes", "gauge", "Room on the disk of the state.", unit: "bytes", [sample($0.json)])
            },
            family(
                "runs", "counter", "Attempts of sources that ended, by type and by \"succeeded\" or kind of error.",
                attempts.flatMap { type, attempts in
                    attempts.results.sorted { $0.key < $1.key }.map { result, count in
                        sample(count.json, ["result": result.json, "source": type.rawValue.json])
                    }
                }),
            family(
                "run_seconds", "summary", "The time that attempts of sources took, by type.", unit: "seconds",
                attempts.map { type, attempts in
                    [
                        "labels": ["source": type.rawValue.json], "count": attempts.results.values.reduce(0, +).json,
                        "sum": JSON(Double(attempts.milliseconds) / 1000),
                    ]
                }),
        ]
        return families.compactMap(\.self)
    }
}

private func family(_ name: String, _ type: String, _ help: String, unit: String? = nil, _ samples: [JSON]) -> JSON {
    .object([
        "name": "deferd_\(name)".json, "type": type.json, "help": help.json, "unit": unit?.json,
        "samples": .array(samples),
    ])
}

private func sample(_ value: JSON, _ labels: JSONObject = [:]) -> JSON {
    .object(["labels": labels.members.isEmpty ? nil : .object(labels), "value": value])
}

private func samples(of counts: [JobState: Int], _ labels: JSONObject = [:]) -> [JSON] {
    counts.sorted { $0.key.rawValue < $1.key.rawValue }.map { state, count in
        var labels = labels
        labels["state"] = state.rawValue.json
        return sample(count.json, labels)
    }
}
