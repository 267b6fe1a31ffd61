import Dispatch
import Glibc
import JobModel
import Synchronization

/// Hears, on a connection and a thread of its own, that other nodes have news. Nothing depends on it but how soon they are
/// asked for: a node asks twice a second in any case.
final class NewsListener: Sendable {
    private let settings: PostgreSQLSettings
    private let isClosed = Atomic(false)

    /// Milliseconds between two looks at whether it is closed, and before a broken connection is replaced.
    private static let pause: Int32 = 500

    init(_ settings: PostgreSQLSettings) { self.settings = settings }

    /// Calls `hasNews` from the thread until it is closed.
    func start(_ hasNews: @escaping @Sendable () -> Void) {
        DispatchQueue(label: "deferd.news").async { [self] in
            while !isClosed.load(ordering: .relaxed) {
                if let connection = try? PostgreSQLConnection(settings, errors: .read) {
                    if connection.isPooled { return }
                    listen(connection, hasNews)
                }
                usleep(UInt32(Self.pause) * 1000)
            }
        }
    }

    private func listen(_ connection: PostgreSQLConnection, _ hasNews: () -> Void) {
        do {
            try connection.send("LISTEN deferd")
            _ = try connection.finish()
            while !isClosed.load(ordering: .relaxed) {
                if try connection.wasNotified(within: Self.pause) { hasNews() }
            }
        } catch {}
    }

    func close() { isClosed.store(true, ordering: .relaxed) }
}
