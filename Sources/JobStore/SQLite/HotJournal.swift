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

    /// Where a journal ends that names another, which SQLite deletes with it.
    private static let end: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]

    /// Whether the journal is of who owns the database, and names no other file: deferd's never do.
    private static func isOwn(_ path: String) throws(StoreError) -> Bool {
        let journal = path + "-journal"
        var (own, others) = (stat(), stat())
        guard stat(path, &own) == 0, lstat(journal, &others) == 0, own.st_uid == others.st_uid,
            others.st_mode & S_IFMT == S_IFREG
        else { return false }
        guard let file = try ReadableFile(journal), file.length >= end.count else { return true }
        return try file.read(end.count, at: file.length - end.count, of: journal) != end
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
        guard try isOwn(path) else {
            throw StoreError(
                .damaged,
                "\(path)-journal is not of deferd: it is somebody else's, or names another file; move it away, or go back to a backup.",
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
