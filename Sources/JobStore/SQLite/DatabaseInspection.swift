import CSQLite
import Dispatch
import GRDB
import Glibc
import JobModel
import Synchronization

/// Checks a database before it is used, without changing a byte of it or its log, but that it undoes first what a killed
/// process left half done (``HotJournal``).
///
/// A damaged database must be unchanged when its owner looks for what can be saved, and must be refused again at the
/// next start. What is checked is bounded by what a start can afford: always the header, the length, the log and the
/// definitions of the tables; how the pages of a database up to ``largestChecked`` hang together, unless the last daemon
/// ended in order and every page is what it wrote; and the checksum of every page of one four times as long. In a larger
/// one a damaged page shows when a query reads it; the first queries are those that count and recover jobs at every
/// start.
struct DatabaseInspection {
    /// The length up to which SQLite goes through the pages and rows, in bytes. That takes a tenth of a second where the
    /// pages are in memory already, and ten times that where a slow disk has to bring them.
    static let largestChecked = 64 << 20

    /// How much of the file is read at once, in bytes: one page of the largest size that SQLite has, or several smaller ones.
    private static let readLength = 64 << 10

    private let path: String
    private let largestChecked: Int

    /// Checks the database at `path`; false where there is none.
    static func finds(_ path: String, checkingUpTo largest: Int = Self.largestChecked) throws(StoreError) -> Bool {
        try DatabaseInspection(path: path, largestChecked: largest).run()
    }

    private func run() throws(StoreError) -> Bool {
        let wasRolledBack = try HotJournal.rollBack(path)
        guard let file = try ReadableFile(path) else {
            // SQLite never leaves a log without its database; one that is alone has jobs that can still be saved.
            guard try ReadableFile(path + "-wal") == nil else { throw damaged("it is missing, but its log is there") }
            // It would be put into a new one.
            guard try !HotJournal.isThere(for: path) else { throw damaged("it is missing, but its journal is there") }
            return false
        }
        guard let header = DatabaseHeader(try file.read(DatabaseHeader.length, at: 0, of: path)) else {
            throw damaged(file.length == 0 ? "it is empty" : "it does not begin as a database does")
        }
        guard header.applicationID == Schema.applicationID else { throw damaged("it was not made by deferd") }
        guard !header.hasChecks || header.reserved == PageChecks.reserved else {
            throw damaged("its header leaves no room for checksums")
        }
        try checkIndex()
        let log = try log(pageSize: header.pageSize)
        let pageCount = log.pageCount ?? header.pageCount ?? 1
        let firstMissing = file.length / header.pageSize + 1
        guard firstMissing > pageCount || (firstMissing...pageCount).allSatisfy(log.pages.contains) else {
            throw damaged("it ends after \(file.length) bytes of \(pageCount * header.pageSize)")
        }
        // A disk that loses what it said it had written gives back an older page, whose checksum is right. That takes a
        // loss of power, after which there is a log. A journal may be of another database that was here before, and its
        // pages have checksums that are right.
        let areRight = try hasRightPages(file, header, pageCount, except: log.pages)
        let isKnownGood = try ReadableFile(path + "-wal") == nil && areRight && !wasRolledBack
        let length = max(file.length, pageCount * header.pageSize)
        try Self.leavingNothingBehind(of: path) { () throws(StoreError) in
            try readTables(header, everyPage: length <= largestChecked && !isKnownGood)
        }
        return true
    }

    /// Whether each page of the file has a checksum that is right, where it is one that can be looked at; throws where one
    /// is wrong.
    private func hasRightPages(
        _ file: borrowing ReadableFile, _ header: DatabaseHeader, _ pageCount: Int, except replaced: Set<Int>
    ) throws(StoreError) -> Bool {
        let (size, length) = (header.pageSize, pageCount * header.pageSize)
        guard header.hasChecks, length / 4 <= largestChecked else { return false }
        var areAllRight = true
        for start in stride(from: 0, to: length, by: Self.readLength) {
            let bytes = try file.read(min(Self.readLength, length - start), at: start, of: path)
            for offset in stride(from: 0, to: bytes.count - size + 1, by: size) {
                let number = (start + offset) / size + 1
                guard !replaced.contains(number) else { continue }
                let page = bytes.withUnsafeBytes { bytes in
                    deferd_look_at_page(bytes.baseAddress.map { $0 + offset }, Int32(size), Int64(start + offset))
                }
                if page == deferd_page_wrong { throw damaged("page \(number) is not what was written there") }
                areAllRight = areAllRight && page == deferd_page_right
            }
        }
        return areAllRight
    }

    /// SQLite reads a log by way of an index, which it makes beside it. Without a log it needs none where it cannot make
    /// one (`vfs.c`).
    private func checkIndex() throws(StoreError) {
        guard access(path + "-shm", F_OK) != 0, access(StateDirectory.directory(of: path), W_OK) != 0,
            let log = try ReadableFile(path + "-wal"), log.length > 0
        else { return }
        throw StoreError(
            .read,
            "The database \(path) has a log, which cannot be read where its directory cannot be written; give "
                + "permission, or copy it and the files named \(path)-* elsewhere and name that.",
            isLasting: true)
    }

    private func log(pageSize: Int) throws(StoreError) -> WriteAheadLog {
        do {
            return try WriteAheadLog(path + "-wal", pageSize: pageSize)
        } catch let damage as WriteAheadLog.Damage {
            throw damaged(damage.reason)
        } catch {
            throw StoreError(.read, error, database: path)
        }
    }

    private func readTables(_ header: DatabaseHeader, everyPage: Bool) throws(StoreError) {
        do {
            // A connection that only reads neither writes the log into the database nor removes it when it is closed.
            var configuration = Configuration()
            configuration.qos = .default
            configuration.readonly = true
            configuration.prepareDatabase { if header.hasChecks { try PageChecks.expect($0) } }
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            defer {
                try? queue.close()
                ClosedDatabases.keep(queue)
            }
            try queue.read { connection in
                let version = try Schema.version(of: connection)
                guard version <= Schema.version else { throw newer(version) }
                guard version > 0 else { throw damaged("it has no version") }
                if everyPage, let flaw = try String.fetchOne(connection, sql: "PRAGMA quick_check(1)"), flaw != "ok" {
                    throw damaged(flaw.split(separator: "\n").last.map(String.init) ?? flaw)
                }
                if let missing = try Schema.missing(from: connection, version: version) {
                    throw damaged("\(missing) is missing")
                }
            }
        } catch {
            throw StoreError(.read, error, database: path)
        }
    }

    /// Runs `body` and removes the files that a reading connection made beside the database.
    static func leavingNothingBehind(
        of path: String, _ body: () throws(StoreError) -> Void
    ) throws(StoreError) {
        let made = ["-wal", "-shm"].map { path + $0 }.filter { access($0, F_OK) != 0 }
        defer { for file in made { unlink(file) } }
        try body()
    }

    /// Removes the log and its index where the log is empty and nobody has the database open.
    static func removeEmptyLog(of path: String) {
        guard let log = try? ReadableFile(path + "-wal"), log.length == 0 else { return }
        unlink(path + "-wal")
        unlink(path + "-shm")
    }

    private func damaged(_ reason: String) -> StoreError { .damaged(path, reason) }

    private func newer(_ version: Int) -> StoreError {
        StoreError(
            .newer,
            "The database \(path) has version \(version), but this deferd knows versions up to \(Schema.version); "
                + "start the newer deferd again, or restore a backup that this one made.")
    }
}

/// The first 100 bytes of a database file (https://sqlite.org/fileformat2.html#the_database_header).
struct DatabaseHeader {
    static let length = 100

    let pageSize: Int
    /// Pages that the file should have, or nil where the header does not say.
    let pageCount: Int?
    let applicationID: UInt32
    /// The bytes that each page reserves at its end.
    let reserved: Int
    /// Whether its pages have checksums.
    let hasChecks: Bool
    /// Whether it is used with a log; that of a daemon always is.
    let hasLog: Bool

    /// The header in `bytes`, or nil where they are none.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.length, bytes.starts(with: "SQLite format 3\0".utf8) else { return nil }
        let size = Int(bytes[16]) << 8 | Int(bytes[17])
        pageSize = size == 1 ? 65_536 : size
        guard pageSize >= 512, pageSize & (pageSize - 1) == 0, (1...2).contains(bytes[18]), (1...2).contains(bytes[19]),
            Array(bytes[21...23]) == [64, 32, 32]
        else { return nil }
        // A version of SQLite that is too old to keep the count leaves the two counters different.
        pageCount = bytes.bigEndian(at: 24) == bytes.bigEndian(at: 92) ? Int(bytes.bigEndian(at: 28)) : nil
        applicationID = bytes.bigEndian(at: 68)
        reserved = Int(bytes[20])
        hasLog = bytes[18] == 2
        hasChecks = bytes.bigEndian(at: 60) / UInt32(Schema.checksMark) == 1
    }

    /// The header of the database at `path`, or nil where there is none.
    init?(of path: String) throws(StoreError) {
        guard let file = try ReadableFile(path) else { return nil }
        self.init(try file.read(Self.length, at: 0, of: path))
    }
}

/// The databases that were open for a moment only, a few for each start of a store.
///
/// libdispatch releases what belongs to a GRDB queue on its global pool, which wakes up every second from its first use
/// on. An idle daemon should sleep, so the queues are kept, closed, until it ends.
enum ClosedDatabases {
    private static let kept = Mutex<[DatabaseQueue]>([])

    /// More than a daemon opens; a process that opens stores again and again has no rest to be kept from.
    private static let most = 16

    static func keep(_ queue: DatabaseQueue) {
        kept.withLock { if $0.count < most { $0.append(queue) } }
    }
}
