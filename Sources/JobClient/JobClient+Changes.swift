public import JobModel
import JobProtocol

extension JobClient {
    /// What a call does to jobs.
    public struct Change: Sendable, Hashable {
        fileprivate let method: MethodName
        fileprivate var params: JSONObject = [:]

        /// Cancels them; each ends after its `finally` links.
        public static let cancel = Change(method: .jobCancel)
        /// Removes finished jobs.
        public static let remove = Change(method: .jobRemove)
        /// Keeps jobs from running until they are released.
        public static let hold = Change(method: .jobHold)
        /// Lets held and scheduled jobs run.
        public static let release = Change(method: .jobRelease)

        /// Where a retry continues a job.
        public enum RetryStart: String, Sendable {
            /// The link that failed, with its input.
            case failed
            /// The source.
            case start
        }

        /// Runs failed or cancelled jobs again, from the start also those that succeeded.
        public static func retry(from start: RetryStart = .failed) -> Change {
            Change(method: .jobRetry, params: ["from": start.rawValue.json])
        }

        /// Sets these members, as `job.set` names them; null takes a value away.
        public static func set(_ members: JSONObject) -> Change { Change(method: .jobSet, params: members) }
    }

    /// The jobs that a call is about.
    public enum Selection: Sendable, Hashable {
        /// These jobs, at most 10,000.
        case jobs([Int64])
        /// The jobs that match these conditions, without children.
        case matching(Filter)

        fileprivate var params: JSONObject {
            switch self {
            case .jobs(let ids): ["jobs": .array(ids.map(\.json))]
            case .matching(let filter): ["select": .object(filter.selection)]
            }
        }
    }

    /// Changes a job, and returns it; nil if it was removed.
    @discardableResult
    public func change(_ job: Int64, _ change: Change) async throws(JobClientError) -> JobSnapshot? {
        var params = change.params
        params["job"] = job.json
        guard change == .remove else { return try await snapshot(change.method, params) }
        _ = try await call(change.method, params)
        return nil
    }

    /// Changes all jobs of `selection` whose state allows it, or only counts them.
    ///
    /// The answer has the numbers of jobs that were changed (`count`) and of those that were not (`skipped`).
    public func change(
        _ selection: Selection, _ change: Change, dryRun: Bool = false
    ) async throws(JobClientError) -> JSON {
        var params = change.params
        for member in selection.params.members { params[member.name] = member.value }
        if dryRun { params["dryRun"] = true }
        return try await call(change.method, params)
    }

    /// Waits until all jobs that match are finished, and returns how many `succeeded`, `failed` and were `cancelled`.
    public func wait(forAll filter: Filter, timeout: Double? = nil) async throws(JobClientError) -> JSON {
        var params = Selection.matching(filter).params
        params["timeout"] = timeout?.json
        return try await call(.jobWait, params)
    }
}
