import Foundation
package import FuzzBodies
import JobModel
import JobCore
import JobStore

/// The state file and its log: a copy with changed bytes is rejected, or read without a trap; invalid rows are skipped
/// and can be removed.
///
/// Every four bytes of an input are an offset, whose first bit selects the file, and the change at the offset.
package final class StateBody: Sendable {
    /// The files of a daemon that was killed.
    private struct Files {
        let database: [UInt8]
        let log: [UInt8]
    }

    private static let mostChanges = 64
    /// Changes in the log, each a transaction.
    private static let transactions = 8
    private static let children: JobID = 20

    private let directory: String
    private let original: Files

    package init(directory: String) throws {
        self.directory = directory
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let first = try SQLiteStore(path: directory)
        try Self.fill(first)
        first.close(isClean: true)
        let store = try SQLiteStore(path: directory)
        for number in 1...Self.transactions {
            try Self.round(store) { (transaction) throws(StoreError) in
                var overrides = QueueOverrides()
                overrides.concurrency = number
                try transaction.put(overrides, ofQueue: "log")
            }
        }
        original = Files(
            database: [UInt8](try Data(contentsOf: URL(filePath: directory + "/deferd.db"))),
            log: [UInt8](try Data(contentsOf: URL(filePath: directory + "/deferd.db-wal"))))
        store.close(isClean: false)
    }

    private static func round(
        _ store: SQLiteStore, _ body: (any JobTransaction) throws(StoreError) -> Void
    ) throws(StoreError) {
        switch store.round(body) {
        case .committed: return
        case .undone(let error), .unknown(let error): throw error
        }
    }

    /// Stores jobs in many forms, a list with children, and a schedule.
    private static func fill(_ store: SQLiteStore) throws {
        let now = Timestamp(milliseconds: 1_790_000_000_000)
        func job(_ members: String, source: String = #"{"type": "value", "value": 1}"#) throws -> NewJobRow {
            let json = try JSON(parsing: #"{"source": \#(source), "label": "job"\#(members)}"#)
            let spec = try JobSpecReader.spec(json, limits: JobLimits())
            let row = JobRow(
                owner: 1000, groups: nil, parent: nil,
                terms: spec.terms, specSize: spec.size, createdAt: now, state: .queued)
            return NewJobRow(row: row, document: .spec(json.utf8), digest: 1)
        }
        let long = String(repeating: "long ", count: 1000)
        let jobs = try [
            job(#", "key": "tool", "tags": ["tools"], "priority": 7"#), job(#", "deadline": 600"#),
            job("", source: #"{"type": "list", "jobs": []}"#),
            job(#", "then": [{"fail": {"throw": {"message": "m"}}}]"#),
            job("", source: #"{"type": "value", "value": "\#(long)"}"#), job(""),
        ]
        let template: JSON = ["source": ["type": "value", "value": ["{{item/n}}", "{{index}}"]]]
        let list = ListRow(
            job: 3, id: 1, link: 0, phase: .open, mode: .settled, concurrency: 10, total: Int(children),
            template: .inline(template.utf8))
        var schedule = Schedule(
            key: ScheduleKey(owner: 1000, name: "nightly"), timing: .every(60_000), setAt: now, specSize: 40)
        try round(store) { (transaction) throws(StoreError) in
            for job in jobs { _ = try transaction.insert(job) }
            for (id, outcome) in [
                (JobID(4), Carried.failure(JobError(.http, "No."))), (6, .success(.inline(JSON.string(long).utf8))),
            ] {
                guard var row = try transaction.job(id) else { continue }
                row.state = outcome.error == nil ? .succeeded : .failed
                row.carried = outcome
                row.finishedAt = now
                try transaction.update(row)
            }
            try transaction.put(list)
        }
        let spec = try JobSpecReader.spec(["source": ["type": "value", "value": 1]], limits: JobLimits())
        let terms = JobTerms(plan: spec.terms.plan, queue: "default", priority: 0, key: nil, tags: ["tools"])
        try round(store) { (transaction) throws(StoreError) in
            let rows = (0..<Int(children)).map { index in
                NewJobRow(
                    row: JobRow(
                        owner: 1000, groups: nil,
                        parent: JobRow.Parent(job: 3, link: 0, list: 1, index: index, depth: 1),
                        terms: terms, specSize: 100, createdAt: now, state: .queued),
                    document: .item(.inline((["n": JSON(index)] as JSON).utf8)))
            }
            for row in rows { _ = try transaction.insert(row) }
            schedule.next = now
            try transaction.put(schedule, spec: Array(#"{"source":{"type":"value","value":1}}"#.utf8))
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
        for start in stride(from: 0, to: min(input.count, Self.mostChanges * 4) - 3, by: 4) {
            let offset = Int(input[start]) << 16 | Int(input[start + 1]) << 8 | Int(input[start + 2])
            if offset < 1 << 23 {
                database[offset % database.count] ^= input[start + 3]
            } else {
                log[(offset & 0x7F_FFFF) % log.count] ^= input[start + 3]
            }
        }
        Self.put(Files(database: database, log: log), into: directory)
        do {
            try Self.use(directory)
        } catch let error as StoreError {
            try Finding.unless(!error.message.isEmpty, "It is refused with \(error.code) and no reason.")
        } catch { throw Finding("It is refused with \(error)") }
    }

    /// Reads the data that a daemon reads at its start, all jobs with their results, and all schedules, and removes
    /// jobs. An answer may be an error, but there must be an answer.
    private static func use(_ directory: String) throws {
        let store = try SQLiteStore(path: directory)
        defer { store.close(isClean: false) }
        let reader = store.reader
        var filter = JobFilter()
        filter.limit = 1000
        _ = try? reader.page(filter)
        _ = try? reader.jobs((1...50).map { JobID($0) })
        _ = try? reader.standings(of: (1...50).map { JobID($0) })
        _ = try? reader.outcomes(of: 3, list: 1, from: 0, limit: 100)
        _ = try? reader.schedules(after: nil, owner: nil, limit: 100)
        _ = try? reader.unfinishedTransfers(limit: 100)
        let now = CoreMoment(wall: Timestamp(milliseconds: 2_000_000_000_000), steady: 1 << 50)
        let core = Core(settings: CoreSettings(), life: store.life, at: now)
        func step(_ body: (any JobTransaction) throws(StoreError) -> Void) throws(StoreError) {
            try round(store) { (transaction) throws(StoreError) in
                try body(transaction)
                try core.close(at: now, in: transaction)
            }
            _ = core.committed()
        }
        do throws(StoreError) {
            try step { (transaction) throws(StoreError) in
                try core.reset(from: transaction, runs: [], start: .crashed, at: now)
            }
            let caller = Caller(uid: 0, isAdmin: true)
            for request in 1...10 {
                try step { (transaction) throws(StoreError) in
                    let remove = CoreInput.request(RequestID(request), .change(JobID(request), .remove), caller)
                    try core.handle(remove, at: now, in: transaction)
                    try core.handle(.tick, at: now, in: transaction)
                }
            }
        } catch {
            try Finding.unless(!error.message.isEmpty, "A round fails with \(error.code) and no reason.")
        }
    }
}
