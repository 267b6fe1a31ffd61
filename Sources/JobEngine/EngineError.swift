package import JobModel

/// Why the engine did not do what a caller asked for.
package struct EngineError: Error, Sendable, Equatable {
    package enum Code: Sendable, Equatable {
        /// There is no such job or watch, or it is not the caller's.
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

    static func noJob(_ id: JobID) -> EngineError {
        EngineError(.notFound, "There is no job \(id), or it is not yours; list yours to see their numbers.")
    }

    package static let stopping = EngineError(.shuttingDown, "The daemon is shutting down; try again when it is back.")
}
