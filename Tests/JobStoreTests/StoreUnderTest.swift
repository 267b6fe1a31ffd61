import Foundation
import GRDB
import InMemoryStore
import JobModel
import TestSupport
import Testing

@testable import JobStore

/// The stores that must behave alike.
enum Conformer: String, CaseIterable, CustomTestStringConvertible {
    case memory
    case sqlite

    var testDescription: String { rawValue }
}

/// A store with a directory of its own, spoken to in commands.
final class StoreUnderTest {
    private let conformer: Conformer
    private let directory: TemporaryDirectory
    private(set) var store: any JobStore

    init(_ conformer: Conformer) throws {
        self.conformer = conformer
        directory = try TemporaryDirectory()
        store =
            switch conformer {
            case .memory: MemoryStore()
            case .sqlite: try SQLiteStore(path: directory.path)
            }
    }

    /// Closes the store and opens it again.
    func reopen() async throws {
        await store.close()
        if let memory = store as? MemoryStore {
            store = MemoryStore(memory.tables)
        } else {
            store = try SQLiteStore(path: directory.path)
        }
    }

    // MARK: Writing

    func write(_ write: StoreWrite) async throws -> StoreWritten { try await store.write(write) }

    func submit(_ jobs: [Job]) async throws -> [Submission] { try await store.submit(jobs) }

    /// Submits jobs that must be new; gives them under their numbers.
    func create(_ jobs: Job...) async throws -> [Job] {
        try await zip(jobs, submit(jobs)).map { job, submission in
            guard case .created(let id) = submission else { throw WrongAnswer() }
            return job.numbered(id)
        }
    }

    func save(_ jobs: Job...) async throws {
        guard case .done = try await write(.save(jobs)) else { throw WrongAnswer() }
    }

    func children(_ children: NewChildren) async throws -> [JobID] {
        guard case .numbered(let ids) = try await write(.children(children)) else { throw WrongAnswer() }
        return ids
    }

    func removing(_ write: StoreWrite) async throws -> [RemovedJob] { try await store.removing(write) }

    func save(checkpoint: JSON?, of job: JobID, link: Int) async throws {
        try await store.save(checkpoint: checkpoint, of: job, link: link)
    }

    // MARK: Reading

    func read(_ read: StoreRead) async throws -> StoreRows { try await store.read(read) }

    func jobs(_ read: StoreRead) async throws -> [Job] { try await store.jobs(read) }

    func jobs(_ ids: [JobID]) async throws -> [Job] { try await jobs(.jobs(ids)) }

    func list(_ change: (inout JobFilter) -> Void) async throws -> [JobID] {
        var filter = JobFilter()
        change(&filter)
        return try await jobs(.list(filter)).map(\.id)
    }

    func childStates(of parent: JobID, link: Int = 0) async throws -> [ChildState] {
        try await store.childStates(of: parent, link: link)
    }

    func ready(_ read: StoreRead) async throws -> [ReadyJob] {
        guard case .ready(let jobs) = try await self.read(read) else { throw WrongAnswer() }
        return jobs
    }

    func ready(
        _ queue: String = "default", owner: UInt32 = 1000, after: ReadyPosition? = nil, excluding: Set<String> = [],
        limit: Int = 100
    ) async throws -> [JobID] {
        try await ready(.ready(queue: queue, owner: owner, after: after, excluding: excluding, limit: limit))
            .map(\.position.id)
    }

    func times() async throws -> StoredTimes { try await store.times() }

    func recovery() async throws -> StoredState { try await store.recovery() }
}

/// The store answered with something else than asked for.
struct WrongAnswer: Error {}

extension NewChild {
    /// A child that is ready to run.
    static func example(
        _ index: Int, _ body: Body, queue: String = "default", priority: Int = 0, state: JobState = .queued,
        notBefore: Timestamp? = nil, deadlineAt: Timestamp? = nil, host: String? = nil, tags: [String] = [],
        isGated: Bool = false
    ) -> NewChild {
        NewChild(
            index: index, body: body, queue: queue, priority: priority, source: .value, state: state,
            createdAt: .after(0), notBefore: notBefore, deadlineAt: deadlineAt, host: host, tags: tags,
            isGated: isGated, size: body.storedSize(queue: queue, priority: priority))
    }
}

extension TemporaryDirectory {
    var database: String { path + "/deferd.db" }
    var log: String { database + "-wal" }

    /// The bytes of every file in it but the lock.
    func contents() throws -> [String: Data] {
        var contents: [String: Data] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: path) where name != "deferd.lock" {
            contents[name] = try Data(contentsOf: URL(fileURLWithPath: path + "/" + name))
        }
        return contents
    }
}

/// A database file that a test changes behind the store's back.
struct DatabaseFile {
    private let queue: DatabaseQueue

    init(_ path: String) throws {
        queue = try DatabaseQueue(path: path)
    }

    func execute(_ sql: String) throws {
        try queue.writeWithoutTransaction { try $0.execute(sql: sql) }
        try queue.close()
    }
}
