import Dispatch
import Foundation
package import FuzzBodies
import JobModel
import JobStore
import Synchronization

/// The state file and its log: a copy with bytes changed is refused, or read without a trap; what makes no sense is left
/// out, and can be removed.
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

    package init(directory: String) throws {
        self.directory = directory
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let first = try SQLiteStore(path: directory)
        try Self.fill(first)
        Self.close(first)
        let store = try SQLiteStore(path: directory)
        for number in 1...Self.transactions {
            try Self.write(.queue(QueueSettings(name: "log", concurrency: number)), to: store)
        }
        original = Files(
            database: [UInt8](try Data(contentsOf: URL(filePath: directory + "/deferd.db"))),
            log: [UInt8](try Data(contentsOf: URL(filePath: directory + "/deferd.db-wal"))))
        Self.close(store)
    }

    /// Stores jobs in many forms, a list with children, and a schedule.
    private static func fill(_ store: SQLiteStore) throws {
        let now = Timestamp(milliseconds: 1_790_000_000_000)
        func job(_ members: String, source: String = #"{"type": "value", "value": 1}"#) throws -> Job {
            let json = try JSON(parsing: #"{"source": \#(source), "label": "job"\#(members)}"#)
            return Job(
                submitting: try JobSpecReader.spec(json, limits: JobLimits()), owner: 1000, parent: nil, at: now)
        }
        let long = String(repeating: "long ", count: 1000)
        var jobs = try [
            job(#", "key": "tool", "tags": ["tools"], "delay": 60, "priority": 7"#), job(#", "deadline": 600"#),
            job("", source: #"{"type": "list", "jobs": []}"#),
            job(#", "then": [{"fail": {"throw": {"message": "m"}}}]"#),
            job("", source: #"{"type": "value", "value": "\#(long)"}"#), job(""),
        ]
        for (index, outcome) in [(3, Outcome.failure(JobError(.http, "No."))), (5, .success(.string(long)))] {
            _ = try jobs[index].handle(.start, at: now)
            _ = try jobs[index].handle(.finished(outcome, random: 0), at: now)
        }
        try write(.submit(jobs), to: store)
        jobs[2].id = 3
        let children = (0..<20).map { index in
            NewChild(
                index: index, body: .item(["n": JSON(index)]), queue: "default", priority: 0, source: .value,
                state: .queued, createdAt: now, notBefore: nil, deadlineAt: nil, host: nil, tags: ["tools"],
                isGated: index > 9, size: 100)
        }
        let template: JSON = ["source": ["type": "value", "value": ["{{item/n}}", "{{index}}"]]]
        try write(.children(NewChildren(parent: jobs[2], template: template, children: children)), to: store)
        let schedule = Schedule(
            key: ScheduleKey(owner: 1000, name: "nightly"), timing: .every(60_000), setAt: now, specSize: 40)
        try write(.setSchedule(schedule, spec: ["source": ["type": "value", "value": 1]]), to: store)
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

    /// Asks for what a daemon reads at its start, all jobs with their results, and all schedules, and removes jobs. An answer
    /// may be an error, but there has to be one.
    private static func use(_ directory: String) throws {
        let store = try SQLiteStore(path: directory)
        defer { close(store) }
        var filter = JobFilter()
        filter.limit = 1000
        var reads: [StoreRead] = [
            .recovery, .jobs((1...50).map { JobID($0) }), .list(filter),
            .children(of: 3, link: 0, from: 0, limit: 100), .childStates(of: 3, link: 0),
            .gated(of: 3, link: 0, from: 0, limit: 100), .orphans(limit: 100), .times,
            .schedules(after: nil, owner: nil, limit: 100),
        ]
        reads += (1...20).map { .result(of: JobID($0), offset: 0, length: 1 << 20) }
        for read in reads { _ = try? answer { store.read(read, $0) } }
        let time = Timestamp(milliseconds: 2_000_000_000_000)
        for write in [StoreWrite.remove(3), .purge(finishedBefore: time, keeping: 0, atMost: 100)] {
            _ = try? answer { store.write(write, $0) }
        }
    }
}
