import JobModel
import JobProtocol

extension JobClient {
    /// The jobs that a watch covers.
    public enum WatchSelection: Sendable, Hashable {
        /// These jobs.
        case jobs([Int64])
        /// All jobs with this tag, including new ones.
        case tag(String)
        /// All jobs that the caller may see, including new ones.
        case all
    }

    /// A new watch.
    public struct Watch: Sendable, Hashable {
        /// The watch's name, which its events have.
        public let id: String
        /// The jobs at the beginning; for a tag or all jobs, only unfinished ones.
        public let jobs: [JobSnapshot]
        /// Whether there are more jobs than listed.
        public let isTruncated: Bool
    }

    /// Watches jobs: their events come through ``notifications``.
    ///
    /// Progress of a job comes at most once per `interval` seconds. With `children`, the children of lists are covered too.
    public func watch(
        _ selection: WatchSelection, interval: Double? = nil, children: Bool = false
    ) async throws(JobClientError) -> Watch {
        var params: JSONObject = ["interval": interval?.json, "children": children ? true : JSON?.none]
        switch selection {
        case .jobs(let jobs): params["jobs"] = .array(jobs.map(\.json))
        case .tag(let tag): params["tag"] = tag.json
        case .all: params["all"] = true
        }
        let answer = try await call(.jobWatch, params)
        let id = try answer.member("watch", of: .jobWatch, \.string)
        var snapshots = try Self.snapshots(.jobWatch, answer)
        let isTruncated = answer["truncated"]?.bool ?? false
        // No named job may be missing: a finished one sends no notification.
        if isTruncated, case .jobs(let named) = selection {
            var known = Set(snapshots.map(\.id))
            for job in named where known.insert(job).inserted {
                snapshots.append(try await snapshot(.jobGet, ["job": job.json]))
            }
        }
        return Watch(id: id, jobs: snapshots, isTruncated: isTruncated)
    }

    /// Ends a watch. Events that are already on their way still come.
    public func unwatch(_ watch: String) async throws(JobClientError) {
        _ = try await call(.jobUnwatch, ["watch": watch.json])
    }
}
