package import JobModel

/// The answer to one call, as JSON text.
package enum Answer {
    /// The maximum size of one answer in bytes; deferd-protocol(7) says what longer answers omit.
    package static let mostBytes = 3 << 19

    /// Returns a success; `result` is JSON text.
    package static func success(id: JSON, result: [UInt8]) -> [UInt8] {
        answer(id, ",\"result\":", capacity: result.count + 48) { $0.raw(result) }
    }

    /// Returns the answer to a `job.submit`.
    package static func submission(id: JSON, job: JobID, state: JobState, created: Bool, watch: String?) -> [UInt8] {
        answer(id, ",\"result\":", capacity: 128) { writer in
            writer.raw("{\"job\":")
            writer.write(Int(job))
            writer.raw(",\"state\":\"")
            writer.raw(text: state.rawValue)
            if created { writer.raw("\",\"created\":true") } else { writer.raw("\",\"created\":false") }
            if let watch {
                writer.raw(",\"watch\":\"")
                writer.raw(text: watch)
                writer.raw("\"")
            }
            writer.raw("}")
        }
    }

    package static func failure(id: JSON, error: ProtocolError) -> [UInt8] {
        answer(id, ",\"error\":", capacity: 256) { $0.write(error.json) }
    }

    /// An upper bound on the bytes of an answer besides its id and its result.
    package static let envelope = 64

    private static func answer(
        _ id: JSON, _ member: StaticString, capacity: Int, _ write: (inout JSONWriter) -> Void
    ) -> [UInt8] {
        var writer = JSONWriter(reservingCapacity: capacity)
        writer.raw("{\"jsonrpc\":\"2.0\",\"id\":")
        writer.write(id)
        writer.raw(member)
        write(&writer)
        writer.raw("}")
        return writer.bytes
    }
}
