import Dispatch
import Foundation
package import FuzzBodies
import JobModel
import JobStore
import Synchronization

/// The state file and its log: a copy with bytes changed is refused, or gives what was stored.
///
/// Every four bytes of an input are an offset, whose first bit says in which of them, and what is changed there.
package final class StateBody: Sendable {
    /// The files of a daemon that was killed.
    private struct Files {
        let database: [UInt8]
        let log: [UInt8]
    }

    private static let mostChanges = 64
    /// Changes in the log, each a transaction.
    private static let transactions = 8

    private let directory: String
    private let original: Files
    /// What the files say, and then without the last transaction, and without the last two. The end of a log that is damaged is
    /// not to be told from one that a loss of power cut short, which is one transaction and the one that was being synced.
    private let rows: [[String]]

    /// `database` is one that an older deferd wrote; the first opening brings it up to date.
    package init(directory: String, database: [UInt8]) throws {
        self.directory = directory
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try Data(database).write(to: URL(filePath: directory + "/deferd.db"))
        _ = try Self.rows(in: directory)
        var states: [Files] = []
        let store = try SQLiteStore(path: directory)
        for number in 1...Self.transactions {
            try Self.write(.queue(QueueSettings(name: "log", concurrency: number)), to: store)
            states.append(
                Files(
                    database: [UInt8](try Data(contentsOf: URL(filePath: directory + "/deferd.db"))),
                    log: [UInt8](try Data(contentsOf: URL(filePath: directory + "/deferd.db-wal")))))
        }
        Self.close(store)
        original = states[states.count - 1]
        rows = try states.suffix(3).reversed().map { state in
            Self.put(state, into: directory)
            return try Self.rows(in: directory)
        }
    }

    private static func put(_ files: Files, into directory: String) {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? [] {
            try? FileManager.default.removeItem(atPath: directory + "/" + name)
        }
        _ = FileManager.default.createFile(atPath: directory + "/deferd.db", contents: Data(files.database))
        _ = FileManager.default.createFile(atPath: directory + "/deferd.db-wal", contents: Data(files.log))
    }

    package func check(_ input: [UInt8]) throws(Finding) {
        var (database, log) = (original.database, original.log)
        var isLogChanged = false
        for start in stride(from: 0, to: min(input.count, Self.mostChanges * 4) - 3, by: 4) {
            let offset = Int(input[start]) << 16 | Int(input[start + 1]) << 8 | Int(input[start + 2])
            if offset < 1 << 23 {
                database[offset % database.count] ^= input[start + 3]
            } else {
                log[(offset & 0x7F_FFFF) % log.count] ^= input[start + 3]
                isLogChanged = true
            }
        }
        Self.put(Files(database: database, log: log), into: directory)
        let found: [String]
        do {
            found = try Self.rows(in: directory)
        } catch let error as StoreError {
            try Finding.unless(
                [.damaged, .newer].contains(error.code) && error.message.contains(directory + "/deferd.db"),
                "It is refused with \(error.code): \(error.message)")
            return
        } catch { throw Finding("It is refused with \(error)") }
        guard !(isLogChanged ? rows : [rows[0]]).contains(found) else { return }
        for (found, row) in zip(found, rows[0]) {
            try Finding.unless(found == row, "It has \(found.prefix(2000)) instead of \(row.prefix(2000))")
        }
    }

    private static func write(_ write: StoreWrite, to store: SQLiteStore) throws {
        _ = try answer { store.write(write, $0) }
    }

    /// What the store answers, once it has.
    private static func answer<Value: Sendable>(
        _ ask: (_ done: @escaping @Sendable (Result<Value, StoreError>) -> Void) -> Void
    ) throws -> Value? {
        let answer = Mutex<Result<Value, StoreError>?>(nil)
        let answered = DispatchSemaphore(value: 0)
        ask { result in
            answer.withLock { $0 = result }
            answered.signal()
        }
        answered.wait()
        return try answer.withLock(\.self)?.get()
    }

    private static func close(_ store: SQLiteStore) {
        let closed = DispatchSemaphore(value: 0)
        Task {
            await store.close()
            closed.signal()
        }
        closed.wait()
    }

    /// What a daemon reads at its start, all jobs with their results, and all schedules.
    private static func rows(in directory: String) throws -> [String] {
        let unreadable = Atomic<Int>(0)
        let store = try SQLiteStore(path: directory) { _ in unreadable.add(1, ordering: .relaxed) }
        defer { close(store) }
        var filter = JobFilter()
        filter.limit = 1000
        var reads: [StoreRead] = [
            .recovery, .jobs((1...50).map { JobID($0) }), .list(filter), .children(of: 3, link: 1, from: 0, limit: 100),
            .childStates(of: 3, link: 1), .orphans(limit: 100), .times,
            .schedules(after: nil, owner: nil, limit: 100),
        ]
        reads += (1...20).map { .result(of: JobID($0), offset: 0, length: 1 << 20) }
        let rows = try reads.map { read in "\(try answer { store.read(read, $0) } as Any)" }
        // A row that was left out and reported would be one that was refused; with checksums there is none.
        if unreadable.load(ordering: .relaxed) > 0 { throw Finding("A row is unreadable.") }
        return rows
    }
}
