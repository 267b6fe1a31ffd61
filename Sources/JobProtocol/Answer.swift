package import JobModel

/// The answer to one call, as JSON text.
package enum Answer {
    /// The maximum size of one answer in bytes; deferd-protocol(7) says what longer answers omit.
    package static let mostBytes = 3 << 19

    /// Returns a success; `result` is JSON text.
    package static func success(id: JSON, result: [UInt8]) -> [UInt8] {
        var writer = JSONWriter(reservingCapacity: result.count + 48)
        begin(&writer, id)
        writer.raw(",\"result\":")
        writer.raw(result)
        writer.raw("}")
        return writer.bytes
    }

    /// Appends the answer to a `job.submit`.
    package static func writeSubmission(
        id: JSON, job: JobID, state: JobState, created: Bool, watch: String?, to writer: inout JSONWriter
    ) {
        begin(&writer, id)
        writer.raw(",\"result\":{\"job\":")
        writer.write(Int(job))
        writer.raw(",\"state\":\"")
        writer.raw(text: state.rawValue)
        if created { writer.raw("\",\"created\":true") } else { writer.raw("\",\"created\":false") }
        if let watch {
            writer.raw(",\"watch\":\"")
            writer.raw(text: watch)
            writer.raw("\"")
        }
        writer.raw("}}")
    }

    package static func failure(id: JSON, error: ProtocolError) -> [UInt8] {
        var writer = JSONWriter()
        begin(&writer, id)
        writer.raw(",\"error\":")
        writer.write(error.json)
        writer.raw("}")
        return writer.bytes
    }

    /// An upper bound on the bytes of an answer besides its id and its result.
    package static let envelope = 64

    private static func begin(_ writer: inout JSONWriter, _ id: JSON) {
        writer.raw("{\"jsonrpc\":\"2.0\",\"id\":")
        writer.write(id)
    }
}
