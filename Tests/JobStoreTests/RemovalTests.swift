import GRDB
import JobModel
import TestSupport
import Testing

@testable import JobStore

@Suite struct RemovalTests {
    let directory: TemporaryDirectory
    let store: SQLiteStore

    init() throws {
        directory = try TemporaryDirectory()
        store = try SQLiteStore(path: directory.path)
    }

    /// A parent whose link `link` has `count` children; gives the numbers of all, the parent's first.
    private func family(_ count: Int, link: Int = 0, under parent: Job? = nil) async throws -> [JobID] {
        var parent = parent
        if parent == nil { parent = try await store.stored() }
        let root = try #require(parent)
        let children = try (0..<count).map { index in
            try Job.example(
                #""tags": ["t"]"#,
                parent: .init(job: root.id, link: link, index: index, depth: (root.parent?.depth ?? 0) + 1))
        }
        return try await [root.id] + store.submit(children: children, of: root)
    }

    @Test(arguments: [true, false])
    func longOutcome_goesWithItsJob(_ isOpenedAgain: Bool) async throws {
        var store = store
        var job = try Job.example()
        job.id = try await store.create(job)[0]
        job.state = .succeeded
        job.finishedAt = .after(1)
        job.carried = .success(.string(String(repeating: "x", count: 2 << 20)))
        try await store.save(job)
        if isOpenedAgain {
            await store.close()
            store = try SQLiteStore(path: directory.path)
        }
        func parts() async throws -> Int? {
            try await store.pool.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM long_outcomes") }
        }
        #expect(try await parts() == 9)
        #expect(try await store.remove(job.id) == [job.id])
        #expect(try await parts() == 0)
        await store.close()
    }

    @Test func remove_removesAllBelow() async throws {
        let top = try await family(3)
        let child = try await store.existing(top[1])
        let below = try await family(2, under: child)
        let other = try await store.create(.example())[0]
        try await store.save(checkpoint: 1, of: below[1], link: 0)
        #expect(try await Set(store.remove(top[0])) == Set(top + below))
        for id in top + below { #expect(try await store.job(id) == nil) }
        #expect(try await store.checkpoint(of: below[1], link: 0) == nil)
        #expect(try await store.job(other) != nil)
    }

    @Test func remove_givesNothing_whenThereIsNoSuchJob() async throws {
        #expect(try await store.remove(4) == [])
    }

    @Test func remove_removesAll_whenTheyAreMoreThanOneTransactionTakes() async throws {
        let family = try await family(5000)
        #expect(try await store.remove(family[0]).count == 5001)
        #expect(try await store.counts() == [])
    }

    @Test func remove_tellsWhatThereWas() async throws {
        let first = try await family(1)
        var job = try await store.existing(first[0])
        job.link = 0
        try await store.save(job.finished(at: .after(1)))
        let sizes = try await store.jobs(.jobs(first)).map(\.storedSize)
        let removed = try await store.removing(.remove(first[0]))
        #expect(
            removed == [
                RemovedJob(id: first[0], owner: 1000, queue: "default", state: .succeeded, links: 0, size: sizes[0]),
                RemovedJob(
                    id: first[1], owner: 1000, queue: "default", state: .queued, links: 0, size: sizes[1],
                    parent: first[0], tags: ["t"]),
            ])
    }

    @Test func remove_removesAJobThatMakesNoSense() async throws {
        let first = try await family(1)
        try await store.pool.writeWithoutTransaction { connection in
            try connection.execute(sql: "UPDATE jobs SET state = 9, spec = 'x'")
        }
        #expect(try await Set(store.remove(first[0])) == Set(first))
        #expect(try await store.job(first[0]) == nil)
    }

    @Test func remove_tellsTheNotes_butForThoseThatMakeNoSense() async throws {
        let first = try await family(1)
        try await store.save(checkpoint: ["a": "\"b\""], of: first[0], link: 0)
        try await store.save(checkpoint: ["c": 2], of: first[0], link: 1)
        try await store.save(checkpoint: 3, of: first[1], link: 0)
        try await store.pool.writeWithoutTransaction { connection in
            try connection.execute(sql: "UPDATE notes SET note = '{' WHERE link = 1")
        }
        let removed = try await store.removing(.remove(first[0]))
        #expect(removed.map(\.checkpoints) == [[["a": "\"b\""]], [3]])
    }

    @Test func removeChildren_leavesThoseOfEarlierLinks() async throws {
        let first = try await family(2)
        let parent = try await store.existing(first[0])
        let second = try await family(2, link: 1, under: parent)
        let third = try await family(1, link: 2, under: parent)
        let below = try await family(1, under: store.existing(second[1]))
        #expect(
            try await Set(store.removeChildren(of: parent.id, fromLink: 1)) == Set(second[1...] + third[1...] + below))
        #expect(try await store.childStates(of: parent.id, link: 0).map(\.id) == Array(first[1...]))
        #expect(try await store.childStates(of: parent.id, link: 1).isEmpty)
        #expect(try await store.job(parent.id) != nil)
    }

    @Test func submitChildren_storesNone_whenTheParentWasRemoved() async throws {
        let parent = try await store.stored()
        _ = try await store.remove(parent.id)
        let child = try Job.example(parent: .init(job: parent.id, link: 0, index: 0, depth: 1))
        #expect(try await store.submit(children: [child], of: parent) == [])
        #expect(try await store.counts() == [])
    }

    @Test func submitChildren_storesTheParentToo() async throws {
        var parent = try await store.stored()
        _ = try parent.handle(.start, at: .after(1))
        parent.children = 1
        // As a child is stored with the queue that it may have from its parent.
        let child = try Job.example(
            #""queue": "default""#, parent: .init(job: parent.id, link: 0, index: 0, depth: 1))
        let ids = try await store.submit(children: [child], of: parent)
        #expect(try await store.job(parent.id) == parent)
        #expect(try await store.job(ids[0]) == child.numbered(ids[0]))
    }

    @Test func submitChildren_doesNotMindTheirKeys() async throws {
        let parent = try await store.stored()
        let children = try (0..<2).map { index in
            try Job.example(#""key": "k""#, parent: .init(job: parent.id, link: 0, index: index, depth: 1))
        }
        #expect(try await store.submit(children: children, of: parent) == [2, 3])
        #expect(try await store.submit([.example(#""key": "k""#)]) == [.created(4)])
        #expect(try await store.existing(3).spec.key == "k")
    }

    // MARK: Purging

    /// Jobs that ended 1, 2, 3 .. seconds in.
    private func finishedJobs(_ count: Int) async throws -> [JobID] {
        var ids: [JobID] = []
        for second in 1...count {
            let job = try await store.stored()
            try await store.save(job.finished(at: .after(second)))
            ids.append(job.id)
        }
        return ids
    }

    @Test func purge_removesWhatEndedBefore() async throws {
        let ids = try await finishedJobs(5)
        let queued = try await store.create(.example())[0]
        #expect(try await store.purge(finishedBefore: .after(3), keeping: 100, atMost: 10) == Array(ids[..<2]))
        #expect(try await store.purge(finishedBefore: .after(3), keeping: 100, atMost: 10) == [])
        #expect(try await store.job(queued) != nil)
    }

    @Test func purge_keepsTheLatest() async throws {
        let ids = try await finishedJobs(5)
        #expect(try await store.purge(finishedBefore: .after(0), keeping: 2, atMost: 2) == Array(ids[..<2]))
        #expect(try await store.purge(finishedBefore: .after(0), keeping: 2, atMost: 2) == [ids[2]])
        #expect(try await store.purge(finishedBefore: .after(0), keeping: 2, atMost: 2) == [])
    }

    @Test func purge_keepsTheLatest_whenTheyEndedAtOnce() async throws {
        let job = try Job.example()
        let ids = try await store.create(job, job, job, job)
        for id in ids { try await store.save(job.numbered(id).finished(at: .after(1))) }
        #expect(try await store.purge(finishedBefore: .after(1), keeping: 1, atMost: 9) == Array(ids[..<3]))
        #expect(try await store.purge(finishedBefore: .after(1), keeping: 0, atMost: 9) == [ids[3]])
    }

    @Test func purge_isRefused_whenTheStoreIsClosed() async throws {
        await store.close()
        let error = await #expect(throws: StoreError.self) {
            try await store.purge(finishedBefore: .after(1), keeping: 1, atMost: 9)
        }
        #expect(error?.code == .closed)
    }

    @Test func purge_removesChildrenWithTheirRootOnly() async throws {
        let family = try await family(2)
        for id in family[1...] {
            try await store.save(store.existing(id).finished(at: .after(1)))
        }
        #expect(try await store.purge(finishedBefore: .after(9), keeping: 0, atMost: 10) == [])
        try await store.save(store.existing(family[0]).finished(at: .after(2)))
        #expect(try await Set(store.purge(finishedBefore: .after(9), keeping: 0, atMost: 10)) == Set(family))
        #expect(try await store.counts() == [])
    }

    @Test func purge_removesLargeFamilies_andCountsRoots() async throws {
        var families: [[JobID]] = []
        for second in 1...3 {
            let family = try await family(3000)
            try await store.save(store.existing(family[0]).finished(at: .after(second)))
            families.append(family)
        }
        #expect(
            try await Set(store.purge(finishedBefore: .after(9), keeping: 0, atMost: 2))
                == Set(families[0] + families[1]))
        #expect(try await store.purge(finishedBefore: .after(9), keeping: 0, atMost: 2).count == 3001)
        #expect(try await store.counts() == [])
    }
}
