package import JobModel

/// Why the core rejected a request.
package struct CoreError: Error, Sendable, Hashable {
    package enum Code: Sendable, Hashable {
        /// The job or schedule does not exist or belongs to another user.
        case notFound
        /// The caller lacks permission, or policy forbids a URL or path of the spec.
        case forbidden(JSONPointer?)
        /// A limit is reached; a retry after this many seconds may succeed.
        case busy(retryAfter: Double)
        case wrongState(JobState)
        case shuttingDown
        /// The key belongs to this job.
        case keyConflict(JobID)
        case timeout
        /// Nothing was stored.
        case storage
        /// A member of the params is invalid.
        case invalid(JSONPointer)
    }

    package let code: Code
    /// A sentence that names the object and the next step.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package static func noJob(_ id: JobID) -> CoreError {
        CoreError(.notFound, "There is no job \(id), or it is not yours; list yours to see their ids.")
    }

    /// Returns the error for a spec that waits for an unknown job.
    package static func noJob(_ job: NamedJob) -> CoreError {
        CoreError(.invalid(job.pointer), noJob(job.id).message)
    }

    /// Returns the error for an unknown queue; lists the first few names of `present`.
    package static func noQueue(_ queue: NamedQueue, among present: some Sequence<String>) -> CoreError {
        let names = present.prefix(20).map { "\"\($0)\"" }.joined(separator: ", ")
        return CoreError(.invalid(queue.pointer), "There is no queue \"\(queue.name.echoed)\"; there are \(names).")
    }

    package static let stopping = CoreError(.shuttingDown, "The daemon is shutting down; try again when it is back.")
}
