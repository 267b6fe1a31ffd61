package import JobModel

/// Why the core rejects a request.
extension ProtocolError {
    package static func noJob(_ id: JobID) -> ProtocolError {
        ProtocolError(.notFound, "There is no job \(id), or it is not yours; list yours to see their ids.")
    }

    /// Returns the error for a spec that waits for an unknown job.
    package static func noJob(_ job: NamedJob) -> ProtocolError {
        ProtocolError(SpecError(job.pointer, noJob(job.id).message))
    }

    package static func noSchedule(_ key: ScheduleKey) -> ProtocolError {
        ProtocolError(
            .notFound, "There is no schedule \"\(key.name)\", or it is not yours; list yours to see their names.")
    }

    /// Returns the error for an unknown queue; lists the first few names of `present`.
    package static func noQueue(_ queue: NamedQueue, among present: some Sequence<String>) -> ProtocolError {
        let names = present.prefix(20).map { "\"\($0)\"" }.joined(separator: ", ")
        let reason = "There is no queue \"\(queue.name.echoed)\"; there are \(names)."
        return ProtocolError(SpecError(queue.pointer, reason))
    }

    package static func wrongState(_ state: JobState, _ message: String) -> ProtocolError {
        ProtocolError(.wrongState, message, ["state": state.rawValue.json])
    }

    static func keyConflict(_ job: JobID, _ message: String) -> ProtocolError {
        ProtocolError(.keyConflict, message, ["job": job.json])
    }

    package static let stopping = ProtocolError(
        .shuttingDown, "The daemon is shutting down; try again when it is back.")
}
