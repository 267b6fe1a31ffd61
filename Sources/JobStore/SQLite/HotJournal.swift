import Dispatch
import GRDB
import Glibc
import JobModel

/// What a process leaves that was killed while it changed a database without a log: a file of pages as they were before.
///
/// A backup has no log until a daemon that starts from it has taken the bodies out, and some older databases have none.
/// Until the pages are back the file is of two states at once: its length and its checks say nothing, and SQLite refuses
/// to open it for reading only.
enum HotJournal {
    /// Whether there is one for the database at `path`. SQLite takes no notice of one that is empty or begins with a zero.
    static func isThere(for path: String) throws(StoreError) -> Bool {
        let journal = path + "-journal"
        guard let file = try ReadableFile(journal) else { return false }
        return try file.read(1, at: 0, of: journal).contains { $0 != 0 }
    }

    /// Puts the pages back, as SQLite does for whoever opens the database to write; false where there is nothing to undo, or
    /// the database is not one of deferd's.
    static func rollBack(_ path: String) throws(StoreError) -> Bool {
        guard try isThere(for: path), let header = try DatabaseHeader(of: path),
            header.applicationID == Schema.applicationID
        else { return false }
        let written: [String] = [path, "\(path)-journal", StateDirectory.directory(of: path)]
        guard written.allSatisfy({ access($0, W_OK) == 0 }) else {
            throw StoreError(
                .write,
                "The database \(path) has a change that a killed daemon did not complete, and it cannot be undone where "
                    + "nothing can be written; give permission, or copy it and \(path)-journal elsewhere and name that.",
                isLasting: true)
        }
        do {
            var configuration = Configuration()
            configuration.qos = .default
            configuration.prepareDatabase { if header.hasChecks { try PageChecks.expect($0) } }
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            defer { ClosedDatabases.keep(queue) }
            try queue.writeWithoutTransaction { try $0.execute(sql: "SELECT 1 FROM sqlite_schema") }
            try queue.close()
            return true
        } catch {
            throw StoreError(.write, error, database: path)
        }
    }
}
