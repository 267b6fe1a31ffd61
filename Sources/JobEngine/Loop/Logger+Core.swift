import JobModel
import Logging
import JobCore

extension Logger {
    /// Writes an entry of the core, which composes no message unless its level is logged.
    func log(_ entry: CoreLog) {
        guard let level = Logger.Level(rawValue: entry.level.rawValue), level >= logLevel else { return }
        var metadata: Logger.Metadata = [:]
        if let event = entry.event { metadata["event"] = "\(event.name)" }
        switch entry.content {
        case .message(_, let job, let queue):
            if let job { metadata["job"] = "\(job)" }
            if let queue { metadata["queue"] = "\(queue)" }
        case .event(let event, let job, let leftOut):
            metadata["job"] = "\(job.id)"
            metadata["owner"] = "\(job.owner)"
            metadata["queue"] = "\(job.queue)"
            if let parent = job.parent { metadata["parent"] = "\(parent.job)" }
            if let host = job.host { metadata["host"] = "\(host)" }
            if let error = event.error { metadata["kind"] = "\(error.kind.rawValue)" }
            if leftOut > 0 { metadata["leftOut"] = "\(leftOut)" }
        }
        log(level: level, "\(entry.message)", metadata: metadata)
    }
}
