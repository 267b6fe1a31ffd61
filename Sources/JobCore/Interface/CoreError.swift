package import JobModel

/// Why the core did not do what a caller asked for.
package struct CoreError: Error, Sendable, Hashable {
    package enum Code: Sendable, Hashable {
        /// There is no such job or schedule, or it is not the caller's.
        case notFound
        /// The caller may not do this, or policy forbids a URL or path of the spec.
        case forbidden(JSONPointer?)
        /// A limit is reached; trying again after so many seconds may help.
        case busy(retryAfter: Double)
        case wrongState(JobState)
        case shuttingDown
        /// The key belongs to this job.
        case keyConflict(JobID)
        case timeout
        /// Nothing was stored.
        case storage
        /// A member of the params is wrong.
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

    /// `present` are the names of those that there are, of which the first few are told.
    package static func noQueue(_ queue: NamedQueue, among present: some Sequence<String>) -> CoreError {
        let names = present.prefix(20).map { "\"\($0)\"" }.joined(separator: ", ")
        return CoreError(.invalid(queue.pointer), "There is no queue \"\(queue.name.echoed)\"; there are \(names).")
    }

    package static let stopping = CoreError(.shuttingDown, "The daemon is shutting down; try again when it is back.")
}
