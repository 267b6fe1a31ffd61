package import JobModel
import Synchronization

/// Reports damaged rows, each once.
package final class DamageReport: Sendable {
    package enum Row: Hashable {
        case job(JobID)
        /// A row of another table, as the subject of a sentence.
        case other(String)
    }

    /// Further rows are not reported.
    private static let most = 1000

    private let report: @Sendable (StoreError) -> Void
    private let known = Mutex<Set<Row>>([])
    private let errors = Mutex<Set<String>>([])

    package init(_ report: @escaping @Sendable (StoreError) -> Void) { self.report = report }

    /// What `read` reads of a row; nil, after a report, if that is damaged.
    package func legible<Value>(_ row: @autoclosure () -> Row, _ read: () throws(DamagedRow) -> Value) -> Value? {
        do { return try read() } catch {
            tell(of: row())
            return nil
        }
    }

    package func tell(of row: Row) {
        let name =
            switch row {
            case .job(let job): "Job \(job)"
            case .other(let name): name
            }
        let message = "\(name) cannot be read from the database, as its row makes no sense; it is passed over."
        if known.withLock({ $0.insert(row).inserted && $0.count <= Self.most }) { report(StoreError(.read, message)) }
    }

    /// Reports that SQLite cannot read pages of the database.
    package func tell(_ error: StoreError) {
        if errors.withLock({ $0.count < Self.most && $0.insert(error.message).inserted }) { report(error) }
    }

    package func isKnown(_ row: Row) -> Bool { known.withLock { $0.contains(row) } }
}
