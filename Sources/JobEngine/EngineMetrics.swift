package import JobModel
import JobCore
import Synchronization

/// The metrics of `server.stats`.
///
/// The ends of sources are counted here as they happen; all else is in the engine's status. Labels are states, queues, types
/// of sources and kinds of errors, never URLs or users.
package final class EngineMetrics: Sendable {
    /// The attempts of sources of one type that ended.
    private struct Attempts {
        /// By "succeeded" or the kind of error, which no source makes up.
        var results = ["succeeded": 0]
        var milliseconds: Int64 = 0
        var count: Int { results.values.reduce(0, +) }
    }

    /// All other sources are values and waits, which have no attempts.
    private static let types: [SourceType] = [.url, .download, .json, .upload, .program]

    private let attempts = Mutex(types.reduce(into: [SourceType: Attempts]()) { $0[$1] = Attempts() })

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

    /// The metrics as families with samples.
    package func families(_ status: EngineStatus, uptime: Double, connections: Int, freeBytes: Int64?) -> [JSON] {
        let (totals, queues) = (status.totals(), status.queues.map(\.settings))
        let ended = [JobState.succeeded: totals.succeeded, .failed: totals.failed, .cancelled: totals.cancelled]
        let attempts = attempts.withLock(\.self).sorted { $0.key.rawValue < $1.key.rawValue }
        let families: [JSON?] = [
            gauge("jobs", "Jobs that are stored, by state.", samples(of: status.jobs())),
            gauge(
                "queue_jobs", "Jobs that are not finished, by queue and state.",
                queues.flatMap { queue in
                    samples(
                        of: status.jobs(queue: queue.name).filter { !$0.key.isTerminal }, ["queue": queue.name.json])
                }),
            gauge(
                "queue_slots", "Jobs of the queue that may run at a time.",
                queues.map { sample($0.concurrency.json, ["queue": $0.name.json]) }),
            gauge(
                "queue_suspended", "1 where the queue is suspended, else 0.",
                queues.map { sample($0.isSuspended ? 1 : 0, ["queue": $0.name.json]) }),
            counter("jobs_submitted", "Jobs that were submitted since the start.", [sample(totals.submitted.json)]),
            counter(
                "jobs_finished", "Jobs that ended since the start, by the state they ended in.", samples(of: ended)),
            counter(
                "jobs_retried", "Attempts that were put off to another since the start.", [sample(totals.retried.json)]),
            counter(
                "received_bytes", "Bytes of bodies that were transferred since the start.", unit: "bytes",
                [sample(transferred().json)]),
            gauge("connections", "Connections that are open.", [sample(connections.json)]),
            gauge("watches", "Watches that are open.", [sample(status.watches().json)]),
            gauge("uptime_seconds", "The time since the start.", unit: "seconds", [sample(uptime.json)]),
            gauge(
                "storage_failed", "1 while nothing can be stored, else 0.",
                [sample(status.storageFailure == nil ? 0 : 1)]),
            freeBytes.map {
                gauge("storage_free_bytes", "Room on the disk of the state.", unit: "bytes", [sample($0.json)])
            },
            counter(
                "runs", "Attempts of sources that ended, by type and by \"succeeded\" or kind of error.",
                attempts.flatMap { type, attempts in
                    attempts.results.sorted { $0.key < $1.key }.map { result, count in
                        sample(count.json, ["result": result.json, "source": type.rawValue.json])
                    }
                }),
            family(
                "run_seconds", "summary", "The time that attempts of sources took, by type.", unit: "seconds",
                attempts.map { type, attempts in
                    [
                        "labels": ["source": type.rawValue.json], "count": attempts.count.json,
                        "sum": JSON(Double(attempts.milliseconds) / 1000),
                    ]
                }),
        ]
        return families.compactMap(\.self)
    }
}

private func gauge(_ name: String, _ help: String, unit: String? = nil, _ samples: [JSON]) -> JSON {
    family(name, "gauge", help, unit: unit, samples)
}

private func counter(_ name: String, _ help: String, unit: String? = nil, _ samples: [JSON]) -> JSON {
    family(name, "counter", help, unit: unit, samples)
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
