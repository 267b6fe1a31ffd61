import JobModel
import JobProtocol

extension JobClient {
    /// Which jobs a watch covers.
    public enum WatchSelection: Sendable, Hashable {
        /// These jobs.
        case jobs([Int64])
        /// All jobs with this tag, later ones too.
        case tag(String)
        /// All jobs that the caller may see, later ones too.
        case all
    }

    /// A watch as it begins.
    public struct Watch: Sendable, Hashable {
        /// The name that its events carry.
        public let id: String
        /// The jobs as they were when the watch began; of a tag or all only those not finished.
        public let jobs: [JobSnapshot]
        /// Whether there are more jobs than the daemon listed.
        public let isTruncated: Bool
    }

    /// Watches jobs: their events come through ``notifications``.
    ///
    /// Progress comes at most once per job in `interval` seconds. With `children` the children of their lists are covered too.
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
        // None of the named jobs may be missing: of one that is finished already no notification comes.
        if isTruncated, case .jobs(let named) = selection {
            var known = Set(snapshots.map(\.id))
            for job in named where known.insert(job).inserted {
                snapshots.append(try await snapshot(.jobGet, ["job": job.json]))
            }
        }
        return Watch(id: id, jobs: snapshots, isTruncated: isTruncated)
    }

    /// Ends a watch. Events that were on their way still come.
    public func unwatch(_ watch: String) async throws(JobClientError) {
        _ = try await call(.jobUnwatch, ["watch": watch.json])
    }
}
