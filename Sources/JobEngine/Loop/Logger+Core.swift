import JobModel
import Logging
import JobCore

extension Logger {
    /// Writes an entry of the core, which composes no message unless its level is logged.
    func log(_ entry: CoreLog) {
        guard let level = Logger.Level(rawValue: entry.level.rawValue), level >= logLevel else { return }
        var metadata: [String: String?]
        switch entry.content {
        case .message(_, let job, let queue): metadata = ["job": job.map { "\($0)" }, "queue": queue]
        case .event(let event, let job, let leftOut):
            metadata = [
                "job": "\(job.id)", "owner": "\(job.owner)", "queue": job.queue, "host": job.host,
                "parent": job.parent.map { "\($0.job)" }, "kind": event.error?.kind.rawValue,
                "leftOut": leftOut > 0 ? "\(leftOut)" : nil,
            ]
        }
        metadata["event"] = entry.event?.name
        log(level: level, "\(entry.message)", metadata: metadata.compactMapValues { $0.map { "\($0)" } })
    }
}
