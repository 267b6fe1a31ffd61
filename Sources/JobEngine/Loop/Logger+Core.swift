import JobModel
import Logging
import JobCore

extension Logger {
    /// Writes an entry of the core, which composes no message unless its level is logged.
    func log(_ entry: CoreLog) {
        let level: Logger.Level =
            switch entry.level {
            case .info: .info
            case .notice: .notice
            case .warning: .warning
            case .error: .error
            case .defect: .critical
            }
        guard level >= logLevel else { return }
        var metadata: Logger.Metadata = [:]
        if let event = entry.event { metadata["event"] = "\(event.rawValue)" }
        switch entry.content {
        case .message(_, let job, let queue):
            if let job { metadata["job"] = "\(job)" }
            if let queue { metadata["queue"] = "\(queue)" }
        case .job(let about):
            metadata["job"] = "\(about.job)"
            metadata["owner"] = "\(about.owner)"
            metadata["queue"] = "\(about.queue)"
            if let parent = about.parent { metadata["parent"] = "\(parent)" }
            if let host = about.host { metadata["host"] = "\(host)" }
            if let error = about.error { metadata["kind"] = "\(error.kind.rawValue)" }
            if about.leftOut > 0 { metadata["leftOut"] = "\(about.leftOut)" }
        }
        log(level: level, "\(entry.message)", metadata: metadata)
    }
}
