import Dispatch
import GRDB
import JobModel
import Synchronization

extension SQLiteStore {
    /// Beyond so many it has been said that all is not well.
    private static let mostFlaws = 10

    /// Looks for damage in the pages and rows, beside all else that is done, and gives what it finds, in sentences; gives
    /// nothing where the store is closed first.
    ///
    /// It takes a connection of its own, so that a stop can end it and the other readers stay free.
    package func check(_ done: @escaping @Sendable ([String]) -> Void) {
        let isOpen = isClosed.withLock { isClosed in
            if !isClosed { reads.enter() }
            return !isClosed
        }
        guard isOpen else { return }
        backups.async { [self] in
            let flaws: [String]
            do {
                flaws = try findFlaws()
            } catch {
                flaws = [StoreError(.read, error, database: directory.database).message]
            }
            if !isClosed.withLock(\.self) { done(flaws) }
            reads.leave()
        }
    }

    private func findFlaws() throws -> [String] {
        var configuration = Configuration()
        configuration.readonly = true
        let queue = try DatabaseQueue(path: directory.database, configuration: configuration)
        checking.withLock { $0 = queue }
        defer {
            checking.withLock { $0 = nil }
            try? queue.close()
        }
        try checkOpen()
        let found = try queue.read { connection in
            try String.fetchAll(connection, sql: "PRAGMA quick_check(\(Self.mostFlaws))")
        }
        return found.filter { $0 != "ok" }
    }
}
