import Dispatch
import Foundation
package import FuzzBodies
import JobModel
import JobStore
import Synchronization

/// The state file: a copy of a database with bytes changed is refused, or gives what was stored.
///
/// Every four bytes of an input are an offset, and what is changed there.
package final class StateBody: Sendable {
    private static let mostChanges = 64

    private let directory: String
    private let original: [UInt8]
    private let rows: [String]

    /// `database` is one that an older deferd wrote; the first opening brings it up to date.
    package init(directory: String, database: [UInt8]) throws {
        self.directory = directory
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        try Data(database).write(to: URL(filePath: directory + "/deferd.db"))
        rows = try Self.rows(in: directory)
        original = [UInt8](try Data(contentsOf: URL(filePath: directory + "/deferd.db")))
    }

    package func check(_ input: [UInt8]) throws(Finding) {
        var changed = original
        for start in stride(from: 0, to: min(input.count, Self.mostChanges * 4) - 3, by: 4) {
            let offset = Int(input[start]) << 16 | Int(input[start + 1]) << 8 | Int(input[start + 2])
            changed[offset % changed.count] ^= input[start + 3]
        }
        for name in (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? [] {
            try? FileManager.default.removeItem(atPath: directory + "/" + name)
        }
        guard FileManager.default.createFile(atPath: directory + "/deferd.db", contents: Data(changed)) else { return }
        let found: [String]
        do {
            found = try Self.rows(in: directory)
        } catch let error as StoreError {
            try Finding.unless(
                [.damaged, .newer].contains(error.code) && error.message.contains(directory + "/deferd.db"),
                "It is refused with \(error.code): \(error.message)")
            return
        } catch { throw Finding("It is refused with \(error)") }
        for (found, row) in zip(found, rows) {
            try Finding.unless(found == row, "It has \(found.prefix(2000)) instead of \(row.prefix(2000))")
        }
    }

    /// What a daemon reads at its start, and all jobs.
    private static func rows(in directory: String) throws -> [String] {
        let unreadable = Atomic<Int>(0)
        let store = try SQLiteStore(path: directory) { _ in unreadable.add(1, ordering: .relaxed) }
        defer {
            let closed = DispatchSemaphore(value: 0)
            Task {
                await store.close()
                closed.signal()
            }
            closed.wait()
        }
        var filter = JobFilter()
        filter.limit = 1000
        let reads: [StoreRead] = [
            .recovery, .jobs((1...50).map { JobID($0) }), .list(filter), .children(of: 3, link: 1, from: 0, limit: 100),
            .times,
        ]
        let rows = try reads.map { read in
            let answer = Mutex<Result<StoreRows, StoreError>?>(nil)
            let answered = DispatchSemaphore(value: 0)
            store.read(read) { result in
                answer.withLock { $0 = result }
                answered.signal()
            }
            answered.wait()
            return "\(try answer.withLock(\.self)?.get() as Any)"
        }
        // A row that was left out and reported would be one that was refused; with checksums there is none.
        if unreadable.load(ordering: .relaxed) > 0 { throw Finding("A row is unreadable.") }
        return rows
    }
}
