import JobModel
import Synchronization

/// Reports damaged rows, each once.
final class DamageReport: Sendable {
    /// Further rows are not reported.
    private static let most = 1000

    private let report: @Sendable (StoreError) -> Void
    private let jobs = Mutex<Set<JobID>>([])
    private let others = Mutex<Set<String>>([])

    init(_ report: @escaping @Sendable (StoreError) -> Void) { self.report = report }

    /// What `read` reads of a row, the subject of a sentence; nil, after a report, if that is damaged.
    func legible<Value>(_ row: @autoclosure () -> String, _ read: () throws(DamagedRow) -> Value) -> Value? {
        do { return try read() } catch {
            tell(of: row())
            return nil
        }
    }

    /// What `read` reads of the row of a job; nil, after a report, if that is damaged.
    func legible<Value>(_ job: JobID, _ read: () throws(DamagedRow) -> Value) -> Value? {
        do { return try read() } catch {
            tell(of: job)
            return nil
        }
    }

    func tell(of job: JobID) {
        let isNew = jobs.withLock { $0.insert(job).inserted && $0.count <= Self.most }
        guard isNew else { return }
        report(
            StoreError(
                .read, "Job \(job) cannot be read from the database, as its row makes no sense; it is passed over."))
    }

    /// `what` is the subject of a sentence about a row of another table.
    private func tell(of what: String) {
        let isNew = others.withLock { $0.count < Self.most && $0.insert(what).inserted }
        if isNew { report(StoreError(.read, "\(what) makes no sense in the database; it is passed over.")) }
    }

    /// Reports that SQLite cannot read pages of the database.
    func tell(_ error: StoreError) {
        if others.withLock({ $0.count < Self.most && $0.insert(error.message).inserted }) { report(error) }
    }

    func contains(_ job: JobID) -> Bool { jobs.withLock { $0.contains(job) } }
}
