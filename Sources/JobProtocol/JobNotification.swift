package import JobModel

/// Writes notifications to clients.
///
/// The body, which is everything after `seq` including the end of the line, is the same for all watches of a job, so it
/// is written once and shared. ``NotificationHead`` writes the part before it, which differs between watches.
package enum JobNotification {
    package enum Method: String, Sendable {
        case progress = "job.progress"
        case output = "job.output"
        case state = "job.state"
    }

    /// Writes the body of a `job.progress`.
    package static func writeProgress(
        link: Int, links: Int, _ progress: Progress, coalesced: Int, to writer: inout JSONWriter
    ) {
        writer.raw(",\"link\":")
        writer.write(link)
        writer.raw(",\"links\":")
        writer.write(links)
        writer.raw(",\"progress\":")
        writer.write(progress.json)
        writer.raw(",\"coalesced\":")
        writer.write(coalesced)
        writer.raw("}}\n")
    }

    /// Writes the body of a `job.output`.
    package static func writeOutput(link: Int, attempt: Int, size: Int64, to writer: inout JSONWriter) {
        writer.raw(",\"link\":")
        writer.write(link)
        writer.raw(",\"attempt\":")
        writer.write(attempt)
        writer.raw(",\"size\":")
        writer.write(Int(size))
        writer.raw("}}\n")
    }

    /// Returns the body of a `job.state`; `snapshot` is JSON text.
    package static func state(_ state: JobState, snapshot: [UInt8]) -> [UInt8] {
        var writer = JSONWriter(reservingCapacity: snapshot.count + 64)
        writer.raw(",\"state\":\"")
        writer.raw(text: state.rawValue)
        writer.raw("\",\"snapshot\":")
        writer.raw(snapshot)
        writer.raw("}}\n")
        return writer.bytes
    }
}
