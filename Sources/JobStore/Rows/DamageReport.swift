package import JobModel
import Synchronization

/// Reports what makes no sense in the database or cannot be read, each flaw once.
package final class DamageReport: Sendable {
    /// Further flaws are not reported.
    private static let most = 1000

    private let report: @Sendable (StoreError) -> Void
    /// The names of damaged rows, and messages of other errors.
    private let known = Mutex<Set<String>>([])

    package init(_ report: @escaping @Sendable (StoreError) -> Void) { self.report = report }

    /// Returns the result of `read`; nil, after a report, if the row is damaged. Its name is the subject of a sentence.
    package func legible<Value>(
        _ name: @autoclosure () -> String, _ read: @autoclosure () throws(DamagedRow) -> Value
    ) -> Value? {
        do { return try read() } catch {
            let name = name()
            let message = "\(name) cannot be read from the database, as its row makes no sense; it is passed over."
            tell(StoreError(.read, message), once: name)
            return nil
        }
    }

    /// Reports an error, such as that of pages that SQLite cannot read, once for each name.
    func tell(_ error: StoreError, once name: String) {
        if known.withLock({ $0.insert(name).inserted && $0.count <= Self.most }) { report(error) }
    }

    package func isKnown(_ name: @autoclosure () -> String) -> Bool {
        known.withLock { !$0.isEmpty && $0.contains(name()) }
    }
}
