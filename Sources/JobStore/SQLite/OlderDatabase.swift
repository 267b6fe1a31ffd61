import Dispatch
import GRDB
import JobModel

/// Brings a database up to date that an older deferd made without checksums, before it is used.
///
/// Its tables change in place (``Schema``). What concerns the file as a whole, checksums of its pages and that it can give
/// free ones back, takes a new file, which replaces the old one only when it is complete.
enum OlderDatabase {
    /// A database with at most so many pages in use, 1 GiB, is written anew, which takes 2.4 seconds for a million jobs. A
    /// larger one stays as it is: it uses its free pages again but never gets shorter, and a page that the disk changed is
    /// found only where SQLite stumbles over it.
    static let mostPagesWrittenAnew = 262_144

    /// `report` is called before anything that takes a while.
    static func update(
        _ directory: StateDirectory, upTo most: Int = mostPagesWrittenAnew, report: () -> Void
    ) throws {
        let path = directory.database
        guard let header = try DatabaseHeader(of: path), !header.hasChecks else { return }
        let used = try migrate(directory, upTo: most, report: report)
        guard used <= most, try ReadableFile(path + "-wal") == nil else { return }
        do {
            try NewDatabase.make(path, copying: path)
        } catch {
            // Where there is no room for a second database, the first one is still good.
            NewDatabase.removeDraft(of: path)
        }
    }

    /// Brings its tables up to date; gives the pages that it uses.
    private static func migrate(_ directory: StateDirectory, upTo most: Int, report: () -> Void) throws -> Int {
        var configuration = Configuration()
        configuration.qos = .default
        configuration.foreignKeysEnabled = false
        let queue = try DatabaseQueue(path: directory.database, configuration: configuration)
        defer { ClosedDatabases.keep(queue) }
        let used = try queue.writeWithoutTransaction { connection in
            func number(_ name: String) throws -> Int { try Int.fetchOne(connection, sql: "PRAGMA \(name)") ?? 0 }
            func usedPages() throws -> Int { try number("page_count") - number("freelist_count") }
            try connection.execute(
                sql: "PRAGMA synchronous = FULL; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -32768")
            if try Schema.version(of: connection) < Schema.version || usedPages() <= most { report() }
            try Schema.migrate(connection, bodies: directory.bodies)
            try connection.checkpoint(.truncate)
            return try usedPages()
        }
        try queue.close()
        return used
    }
}
