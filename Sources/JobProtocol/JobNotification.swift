package import JobModel

/// Writes what a server pushes.
///
/// What is alike for all watchers of a job is written once and shared; only the head differs from watch to watch.
package enum JobNotification {
    package enum Method: String, Sendable {
        case progress = "job.progress"
        case state = "job.state"
    }

    /// The line of a notification, its end included. `body` is made by ``progress(link:links:progress:)`` or
    /// ``state(_:snapshot:)``.
    package static func line(
        _ method: Method, watch: String, job: JobID, seq: Int, body: [UInt8], coalesced: Int? = nil
    ) -> [UInt8] {
        var writer = JSONWriter(reservingCapacity: body.count + 128)
        switch method {
        case .progress: writer.raw("{\"jsonrpc\":\"2.0\",\"method\":\"job.progress\",\"params\":{\"watch\":\"")
        case .state: writer.raw("{\"jsonrpc\":\"2.0\",\"method\":\"job.state\",\"params\":{\"watch\":\"")
        }
        writer.raw(watch.utf8)
        writer.raw("\",\"job\":")
        writer.write(Int(job))
        writer.raw(",\"seq\":")
        writer.write(seq)
        writer.raw(",")
        writer.raw(body)
        if let coalesced {
            writer.raw(",\"coalesced\":")
            writer.write(coalesced)
        }
        writer.raw("}}\n")
        return writer.bytes
    }

    /// The shared members of a `job.progress`.
    package static func progress(link: Int, links: Int, progress: Progress) -> [UInt8] {
        var writer = JSONWriter()
        writer.raw("\"link\":")
        writer.write(link)
        writer.raw(",\"links\":")
        writer.write(links)
        writer.raw(",\"progress\":")
        writer.write(progress.json)
        return writer.bytes
    }

    /// The shared members of a `job.state`.
    package static func state(_ state: JobState, snapshot: JSON) -> [UInt8] {
        var writer = JSONWriter(reservingCapacity: 1024)
        writer.raw("\"state\":\"")
        writer.raw(state.rawValue.utf8)
        writer.raw("\",\"snapshot\":")
        writer.write(snapshot)
        return writer.bytes
    }
}
