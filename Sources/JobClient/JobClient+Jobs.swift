public import JobModel
import JobProtocol

extension JobClient {
    /// The answer to a submission: the job is on stable storage.
    public struct Submission: Sendable, Hashable {
        /// The job's id.
        public let id: Int64
        /// The state it is in.
        public let state: String
        /// Whether it is a new job; false where the key belonged to an earlier one with the same spec.
        public let isCreated: Bool
        /// The watch on the job, where one was asked for.
        public let watch: String?
        /// The answer as the daemon wrote it.
        public let json: JSON
    }

    /// Submits the job that `spec` describes. With `watch` its events come through ``notifications``.
    public func submit(_ spec: JSON, watch: Bool = false) async throws(JobClientError) -> Submission {
        guard case .object(var params) = spec else {
            throw JobClientError(.misuse, "A job spec must be an object, not \(spec.typeName).")
        }
        if watch { params["watch"] = true }
        let answer = try await call(.jobSubmit, params)
        guard let id = answer["job"]?.int else { throw .malformed(.jobSubmit, "job") }
        guard let state = answer["state"]?.string else { throw .malformed(.jobSubmit, "state") }
        return Submission(
            id: Int64(id), state: state, isCreated: answer["created"]?.bool ?? true, watch: answer["watch"]?.string,
            json: answer)
    }

    /// The spec as it would run, with defaults filled in; nothing is queued.
    public func explain(_ spec: JSON) async throws(JobClientError) -> JSON {
        try await call(MethodName.jobExplain.rawValue, spec)
    }

    /// The job with this id, its result whole.
    public func get(_ job: Int64) async throws(JobClientError) -> JobSnapshot {
        try await completed(try await snapshot(.jobGet, job))
    }

    /// Waits until the job is finished, at most `timeout` seconds; its result is whole.
    public func wait(_ job: Int64, timeout: Double? = nil) async throws(JobClientError) -> JobSnapshot {
        var params = JSONObject()
        params.append("job", JSON(Int(job)))
        params.append("timeout", ifPresent: timeout.map { JSON($0) })
        return try await completed(try Self.snapshot(.jobWait, try await call(.jobWait, params)))
    }

    /// The most jobs that the daemon waits for in one call.
    private static let mostAwaited = 1000

    /// Waits until all of the jobs are finished, at most `timeout` seconds; they come in the order asked, results whole.
    public func wait(_ jobs: [Int64], timeout: Double? = nil) async throws(JobClientError) -> [JobSnapshot] {
        var seen: Set<Int64> = []
        let different = jobs.filter { seen.insert($0).inserted }
        var finished: [Int64: JobSnapshot] = [:]
        let start = ContinuousClock.now
        for first in stride(from: 0, to: different.count, by: Self.mostAwaited) {
            var params = JSONObject()
            let part = different[first..<min(first + Self.mostAwaited, different.count)]
            params.append("jobs", .array(part.map { JSON(Int($0)) }))
            let left = timeout.map { first == 0 ? $0 : max(0, $0 - start.duration(to: .now) / .seconds(1)) }
            params.append("timeout", ifPresent: left.map { JSON($0) })
            for job in try Self.snapshots(.jobWait, try await call(.jobWait, params)) {
                finished[job.id] = try await completed(job)
            }
        }
        return jobs.compactMap { finished[$0] }
    }

    /// Cancels the job; it is over once its `finally` links have run.
    public func cancel(_ job: Int64) async throws(JobClientError) -> JobSnapshot {
        try await snapshot(.jobCancel, job)
    }

    /// Where ``retry(_:from:)`` continues a job.
    public enum RetryStart: String, Sendable {
        /// The link that failed, with what had come into it.
        case failed
        /// The source.
        case start
    }

    /// Runs a failed or cancelled job again.
    public func retry(_ job: Int64, from start: RetryStart = .failed) async throws(JobClientError) -> JobSnapshot {
        try await snapshot(.jobRetry, job, [JSONObject.Member(name: "from", value: .string(start.rawValue))])
    }

    /// Removes a finished job.
    public func remove(_ job: Int64) async throws(JobClientError) {
        _ = try await call(.jobRemove, Self.params(job))
    }

    func snapshot(
        _ method: MethodName, _ job: Int64, _ more: [JSONObject.Member] = []
    ) async throws(JobClientError) -> JobSnapshot {
        try Self.snapshot(method, try await call(method, Self.params(job, more)))
    }

    func call(_ method: MethodName, _ params: JSONObject = JSONObject()) async throws(JobClientError) -> JSON {
        try await call(method.rawValue, .object(params))
    }

    static func params(_ job: Int64, _ more: [JSONObject.Member] = []) -> JSONObject {
        JSONObject([JSONObject.Member(name: "job", value: JSON(Int(job)))] + more)
    }

    static func snapshot(_ method: MethodName, _ json: JSON) throws(JobClientError) -> JobSnapshot {
        guard let snapshot = JobSnapshot(json) else { throw .malformed(method, "job") }
        return snapshot
    }

    static func snapshots(_ method: MethodName, _ json: JSON) throws(JobClientError) -> [JobSnapshot] {
        guard let elements = json["jobs"]?.array else { throw .malformed(method, "jobs") }
        var snapshots: [JobSnapshot] = []
        for element in elements { snapshots.append(try snapshot(method, element)) }
        return snapshots
    }
}
