import JobModel
import Synchronization

/// The jobs whose rows could not be read, each told of once.
final class UnreadableJobs: Sendable {
    /// Beyond these many, jobs are left out of lists without a word.
    private static let limit = 1000

    private let report: @Sendable (StoreError) -> Void
    private let known = Mutex<Set<JobID>>([])

    init(_ report: @escaping @Sendable (StoreError) -> Void) {
        self.report = report
    }

    func tell(of job: JobID, _ error: StoreError) {
        let isNew = known.withLock { $0.count < Self.limit && $0.insert(job).inserted }
        if isNew { report(error) }
    }
}
