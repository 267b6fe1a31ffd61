import JobModel
import JobProtocol

extension JobClient {
    /// Which jobs a list shows; a member that is nil or empty does not restrict it.
    public struct Filter: Sendable, Hashable {
        /// Only jobs in one of these states; all where empty.
        public var states: [String] = []
        /// Only jobs of this queue.
        public var queue: String?
        /// Only jobs with this tag.
        public var tag: String?
        /// Only jobs whose source is of this type.
        public var source: String?
        /// Only the children of this job; without it children are not listed.
        public var parent: Int64?
        /// Whether the oldest come first, not the newest.
        public var isOldestFirst = false

        /// A filter that lets every job through.
        public init() {}
    }

    /// A part of a list.
    public struct Page: Sendable, Hashable {
        /// The jobs of this part.
        public let jobs: [JobSnapshot]
        /// Where the next part begins, or nil at the end.
        public let next: Int64?
    }

    /// The jobs that `filter` lets through, at most `limit` (to 1000) of them, from behind the job `after` on.
    public func list(
        _ filter: Filter = Filter(), after: Int64? = nil, limit: Int? = nil
    ) async throws(JobClientError) -> Page {
        var params = JSONObject()
        if !filter.states.isEmpty { params.append("state", .array(filter.states.map(JSON.string))) }
        params.append("queue", ifPresent: filter.queue.map(JSON.string))
        params.append("tag", ifPresent: filter.tag.map(JSON.string))
        params.append("source", ifPresent: filter.source.map(JSON.string))
        params.append("parent", ifPresent: filter.parent.map { JSON(Int($0)) })
        params.append("after", ifPresent: after.map { JSON(Int($0)) })
        params.append("limit", ifPresent: limit.map { JSON($0) })
        if filter.isOldestFirst { params.append("order", "oldest") }
        let answer = try await call(.jobList, params)
        return Page(
            jobs: try Self.snapshots(.jobList, answer), next: answer["next"]?.int.map(Int64.init))
    }
}
