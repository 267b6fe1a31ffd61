public import JobModel
import JobProtocol

extension JobClient {
    /// The answer to a submission: the job is safely on disk.
    public struct Submission: Sendable, Hashable {
        /// The job's id.
        public let id: Int64
        /// The job's state.
        public let state: String
        /// Whether the job is new; false if an earlier job with the same spec has the key.
        public let isCreated: Bool
        /// The watch on the job, if requested.
        public let watch: String?
        /// The whole answer.
        public let json: JSON
    }

    /// Submits the job that `spec` describes. With `watch`, its events come through ``notifications``.
    public func submit(_ spec: JSON, watch: Bool = false) async throws(JobClientError) -> Submission {
        guard case .object(var params) = spec else {
            throw JobClientError(.misuse, "A job spec must be an object, not \(spec.typeName).")
        }
        if watch { params["watch"] = true }
        let answer = try await call(.jobSubmit, params)
        return Submission(
            id: Int64(try answer.member("job", of: .jobSubmit, \.int)),
            state: try answer.member("state", of: .jobSubmit, \.string),
            isCreated: answer["created"]?.bool ?? true, watch: answer["watch"]?.string, json: answer)
    }

    /// The spec with all defaults; no job is created.
    public func explain(_ spec: JSON) async throws(JobClientError) -> JSON {
        try await call(MethodName.jobExplain.rawValue, spec)
    }

    /// The job with this id and its whole result.
    public func get(_ job: Int64) async throws(JobClientError) -> JobSnapshot {
        try await completed(try await snapshot(.jobGet, ["job": job.json]))
    }

    /// Waits until the job is finished, at most `timeout` seconds, and returns it with its whole result.
    public func wait(_ job: Int64, timeout: Double? = nil) async throws(JobClientError) -> JobSnapshot {
        try await completed(try await snapshot(.jobWait, ["job": job.json, "timeout": timeout?.json]))
    }

    /// The maximum number of jobs in one call.
    private static let mostAwaited = 1000

    /// Waits until all jobs are finished, at most `timeout` seconds, and returns them in the same order with whole results.
    public func wait(_ jobs: [Int64], timeout: Double? = nil) async throws(JobClientError) -> [JobSnapshot] {
        try await wait(jobs, timeout: timeout, isWhole: true)
    }

    /// The same; if `isWhole` is false, results that are too long for a job object are left out.
    package func wait(
        _ jobs: [Int64], timeout: Double?, isWhole: Bool
    ) async throws(JobClientError) -> [JobSnapshot] {
        var seen: Set<Int64> = []
        let different = jobs.filter { seen.insert($0).inserted }
        var finished: [Int64: JobSnapshot] = [:]
        let start = ContinuousClock.now
        for first in stride(from: 0, to: different.count, by: Self.mostAwaited) {
            let part = different[first..<min(first + Self.mostAwaited, different.count)]
            let left = timeout.map { first == 0 ? $0 : max(0, $0 - start.duration(to: .now) / .seconds(1)) }
            let answer = try await call(.jobWait, ["jobs": .array(part.map(\.json)), "timeout": left?.json])
            for job in try Self.snapshots(.jobWait, answer) {
                finished[job.id] = try await isWhole ? completed(job) : job
            }
        }
        return jobs.compactMap { finished[$0] }
    }

    /// Conditions for jobs; a member that is nil or empty is no condition.
    public struct Filter: Sendable, Hashable {
        /// Jobs in one of these states.
        public var states: [String] = []
        /// Jobs of this queue.
        public var queue: String?
        /// Jobs with this tag.
        public var tag: String?
        /// Jobs with a source of this type.
        public var source: String?
        /// Jobs with a label that contains this text.
        public var label: String?
        /// Jobs with this key.
        public var key: String?
        /// Jobs submitted at this time or later, in RFC 3339.
        public var since: String?
        /// Jobs submitted before this time, in RFC 3339.
        public var before: String?
        /// Jobs with these ids.
        public var ids: ClosedRange<Int64>?
        /// Jobs of the user with this number, or with `"all"` of all users; only for administrators.
        public var owner: JSON?
        /// The children of this job; without it, no children are listed. Only for lists.
        public var parent: Int64?
        /// Whether the oldest come first, instead of the newest. Only for lists.
        public var isOldestFirst = false

        /// A filter with these conditions, of which none is needed.
        public init(states: [String] = [], owner: JSON? = nil, parent: Int64? = nil, isOldestFirst: Bool = false) {
            (self.states, self.owner, self.parent, self.isOldestFirst) = (states, owner, parent, isOldestFirst)
        }

        /// The conditions on the jobs themselves, as requests have them.
        var conditions: JSONObject {
            [
                "state": states.isEmpty ? JSON?.none : states.json, "queue": queue?.json, "tag": tag?.json,
                "source": source?.json, "label": label?.json, "key": key?.json, "since": since?.json,
                "before": before?.json, "ids": ids.map { .array([$0.lowerBound.json, $0.upperBound.json]) },
                "owner": owner,
            ]
        }

        /// The conditions for a call about many jobs, where an owner alone is none.
        var selection: JSONObject {
            var selection = conditions
            if selection.members.allSatisfy({ $0.name == "owner" }) { selection["all"] = true }
            return selection
        }
    }

    /// A page of a list.
    public struct Page: Sendable, Hashable {
        /// The jobs of this page.
        public let jobs: [JobSnapshot]
        /// Where the next page begins, or nil at the end.
        public let next: Int64?
    }

    /// The jobs that match `filter`, at most `limit` (up to 1000), starting after the job `after`.
    public func list(
        _ filter: Filter = Filter(), after: Int64? = nil, limit: Int? = nil
    ) async throws(JobClientError) -> Page {
        var params = filter.conditions
        (params["parent"], params["after"], params["limit"]) = (filter.parent?.json, after?.json, limit?.json)
        if filter.isOldestFirst { params["order"] = "oldest" }
        let answer = try await call(.jobList, params)
        return Page(jobs: try Self.snapshots(.jobList, answer), next: answer["next"]?.int.map(Int64.init))
    }

    func call(_ method: MethodName, _ params: JSONObject = [:]) async throws(JobClientError) -> JSON {
        try await call(method.rawValue, .object(params))
    }

    func snapshot(_ method: MethodName, _ params: JSONObject) async throws(JobClientError) -> JobSnapshot {
        guard let snapshot = JobSnapshot(try await call(method, params)) else { throw .malformed(method, "job") }
        return snapshot
    }

    /// All elements of a list that the daemon answers page by page.
    func pages(_ method: MethodName, of list: String) async throws(JobClientError) -> [JSON] {
        var (elements, after) = ([JSON](), JSON?.none)
        repeat {
            let answer = try await call(method, ["after": after])
            let page = try answer.member(list, of: method, \.array)
            elements += page
            // Empty pages could go on for ever.
            after = page.isEmpty || answer["next"]?.isNull == true ? JSON?.none : answer["next"]
        } while after != nil
        return elements
    }

    static func snapshots(_ method: MethodName, _ json: JSON) throws(JobClientError) -> [JobSnapshot] {
        try json.member("jobs", of: method) { json in
            let jobs = json.array?.map(JobSnapshot.init)
            return jobs?.contains(nil) == true ? nil : jobs?.compactMap(\.self)
        }
    }
}

extension JSON {
    /// The member `name` of the answer to `method`.
    func member<Value>(
        _ name: String, of method: MethodName, _ type: (JSON) -> Value?
    ) throws(JobClientError) -> Value {
        guard let value = self[name].flatMap(type) else { throw .malformed(method, name) }
        return value
    }
}
