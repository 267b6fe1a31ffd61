package import JobModel

/// Jobs that are in memory together, within a bound.
package struct SnapshotPage {
    private static let largest = 2 << 20

    package private(set) var jobs: [StoredJob] = []
    private var size = 0
    private let limit: Int

    package init(limit: Int) { self.limit = limit }

    package var isFull: Bool { size >= Self.largest }
    package var left: Int { limit - jobs.count }
    package var mayGrow: Bool { left > 0 && !isFull }

    package mutating func append(_ job: StoredJob, size: Int) {
        jobs.append(job)
        self.size += size
    }
}
