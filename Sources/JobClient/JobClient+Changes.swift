public import JobModel
import JobProtocol

extension JobClient {
    /// What a call does to jobs.
    public enum Change: Sendable, Hashable {
        /// Cancels them; each ends after its `finally` links.
        case cancel
        /// Runs failed or cancelled jobs again, from the start also those that succeeded.
        case retry(from: RetryStart)
        /// Removes finished jobs.
        case remove
        /// Keeps jobs from running until they are released.
        case hold
        /// Lets held and scheduled jobs run.
        case release
        /// Sets these members, as `job.set` names them; null takes a value away.
        case set(JSONObject)

        fileprivate var call: (method: String, params: JSONObject) {
            switch self {
            case .cancel: ("job.cancel", [:])
            case .retry(let start): ("job.retry", ["from": start.rawValue.json])
            case .remove: ("job.remove", [:])
            case .hold: ("job.hold", [:])
            case .release: ("job.release", [:])
            case .set(let members): ("job.set", members)
            }
        }
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
            case .matching(let filter):
                [
                    "select": .object(filter.conditions.members.isEmpty ? ["all": true] : filter.conditions),
                    "owner": filter.owner?.json,
                ]
            }
        }
    }

    /// Changes a job, and returns it; nil if it was removed.
    @discardableResult
    public func change(_ job: Int64, _ change: Change) async throws(JobClientError) -> JobSnapshot? {
        var (method, params) = change.call
        params["job"] = job.json
        let answer = try await call(method, .object(params))
        if change == .remove { return nil }
        guard let snapshot = JobSnapshot(answer) else { throw .malformed(method, "job") }
        return snapshot
    }

    /// Changes all jobs of `selection` whose state allows it, or only counts them.
    ///
    /// The answer has the numbers of jobs that were changed (`count`) and of those that were not (`skipped`).
    public func change(
        _ selection: Selection, _ change: Change, dryRun: Bool = false
    ) async throws(JobClientError) -> JSON {
        var (method, params) = change.call
        for member in selection.params.members { params[member.name] = member.value }
        if dryRun { params["dryRun"] = true }
        return try await call(method, .object(params))
    }

    /// Waits until all jobs that match are finished, and returns how many `succeeded`, `failed` and were `cancelled`.
    public func wait(
        forAll filter: Filter, timeout: Double? = nil
    ) async throws(JobClientError) -> JSON {
        var params = Selection.matching(filter).params
        params["timeout"] = timeout?.json
        return try await call(.jobWait, params)
    }
}
