/// The first of several jobs, as many as may be in memory together.
///
/// A page of `list` and `children` ends early with the job that fills it, whatever its limit. So one that is not full and
/// has fewer than asked for is the last.
package struct StoredJobPage: Sendable {
    /// A page is full once its specs and results take this many bytes of memory.
    package static let largest: Int64 = 2 << 20

    package private(set) var jobs: [Job] = []
    private var bytes: Int64 = 0
    private let limit: Int

    package init(limit: Int) {
        self.limit = limit
    }

    /// Whether the page is full by the size of its jobs.
    package var isFull: Bool { bytes >= Self.largest }
    package var mayGrow: Bool { jobs.count < limit && !isFull }

    package mutating func append(_ job: Job) {
        jobs.append(job)
        bytes = bytes.saturatingAdding(job.memorySize)
    }

    /// Whether a page of these jobs ended early.
    package static func isFull(_ jobs: [Job]) -> Bool {
        var bytes: Int64 = 0
        for job in jobs { bytes = bytes.saturatingAdding(job.memorySize) }
        return bytes >= largest
    }

    /// How many of the first `ids` a page of these jobs answers: all, but where it ended early.
    package static func count(of ids: [JobID], answeredBy jobs: [Job]) -> Int {
        guard isFull(jobs), let last = jobs.last, let index = ids.firstIndex(of: last.id) else { return ids.count }
        return index + 1
    }
}

extension Job {
    /// About what its spec and its values take up in memory: more than what is stored where it is made of a template, and where
    /// it has many small values. What came into a link that failed counts as well, as a retry goes on with that.
    package var memorySize: Int64 {
        var size = Int64(spec.memorySize) + Self.rowSize + groupsSize
        for outcome in outcomes { size += outcome.size }
        return size.saturatingAdding(carriedMemory).saturatingAdding(failedLink?.incomingMemory ?? 0)
    }
}
