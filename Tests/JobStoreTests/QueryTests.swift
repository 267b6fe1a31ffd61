import JobModel
import Testing

/// Queries for jobs: what they find, in which order, and how many.
@Suite struct QueryTests {
    @Test(arguments: StoreKind.allCases) func findsReadyJobsInStartingOrder(_ kind: StoreKind) throws {
        let store = try kind.make()
        let ids = try store.insert([
            .sample(), .sample(priority: 5), .sample().with { $0.host = "a:80" },
            .sample(priority: 5).with { $0.host = "b:80" }, .sample().with { $0.waiting = .gate },
            .sample(state: .running), .sample(owner: 2), .sample(queue: "other"),
            .sample().with { $0.isRemoving = true }, .sample(priority: -1),
        ])
        func found(
            _ transaction: any JobTransaction, after: ReadyPosition? = nil, excluding: Set<String> = [], limit: Int = 10
        ) throws -> [JobID] {
            try transaction.ready(queue: "default", owner: 1000, after: after, excluding: excluding, limit: limit)
                .map(\.position.id)
        }
        try store.round { transaction throws in
            #expect(try found(transaction) == [ids[1], ids[3], ids[0], ids[2], ids[9]])
            #expect(try found(transaction, limit: 2) == [ids[1], ids[3]])
            #expect(try found(transaction, excluding: ["b:80"]) == [ids[1], ids[0], ids[2], ids[9]])
            let position = ReadyPosition(priority: 5, id: ids[3])
            #expect(try found(transaction, after: position) == [ids[0], ids[2], ids[9]])
            #expect(try found(transaction, after: position, excluding: ["a:80"], limit: 1) == [ids[0]])
            let rows = try transaction.ready(
                queue: "default", owner: 1000, after: nil, excluding: [], limit: 10)
            #expect(rows.map(\.host) == [nil, "b:80", nil, "a:80", nil])
            #expect(rows.map(\.position.priority) == [5, 5, 0, 0, -1])
            // What the round changes counts at once.
            var row = try #require(try transaction.job(ids[1]))
            row.state = .running
            try transaction.update(row)
            let new = try transaction.create([.sample(priority: 7)])
            try transaction.delete(ids[0])
            #expect(try found(transaction) == [new[0], ids[3], ids[2], ids[9]])
        }
    }

    @Test(arguments: StoreKind.allCases) func keyStaysTaken_whenAnEarlierJobWithItIsDeleted(_ kind: StoreKind) throws {
        let store = try kind.make()
        func new(_ state: JobState) -> JobRow {
            JobRow.sample(state: state).with {
                $0.terms = JobTerms(
                    plan: $0.plan, queue: $0.queue, priority: 0, key: "k", keepsKey: false, tags: [])
            }
        }
        let first = try store.insert([new(.succeeded)])[0]
        try store.round { transaction throws in
            let second = try transaction.create([new(.queued)])[0]
            try transaction.delete(first)
            #expect(try transaction.holder(ofKey: "k", owner: 1000)?.job == second)
        }
    }

    @Test(arguments: StoreKind.allCases) func passesOverManyJobsOfExcludedHosts(_ kind: StoreKind) throws {
        let store = try kind.make()
        try store.insert((0..<4_500).map { _ in JobRow.sample(priority: 1).with { $0.host = "full:80" } })
        let ids = try store.insert((0..<20).map { index in JobRow.sample().with { $0.host = "h\(index % 3):80" } })
        let found = try store.round { transaction throws in
            try transaction.ready(queue: "default", owner: 1000, after: nil, excluding: ["full:80", "h1:80"], limit: 5)
        }
        #expect(found.map(\.position.id) == [ids[0], ids[2], ids[3], ids[5], ids[6]])
        #expect(found.map(\.host) == ["h0:80", "h2:80", "h0:80", "h2:80", "h0:80"])
    }

    @Test(arguments: StoreKind.allCases) func findsWhatIsDue(_ kind: StoreKind) throws {
        let store = try kind.make()
        let wall = Timestamp(milliseconds: 1_800_000_000_000)
        let later = wall.adding(seconds: 1)
        let ids = try store.insert([
            .sample(state: .scheduled).with { $0.due = 100 },
            .sample(state: .running).with { ($0.due, $0.deadline) = (50, 60) },
            .sample(state: .scheduled).with { $0.notBefore = wall },
            .sample(state: .scheduled).with { ($0.notBefore, $0.due) = (wall, 1_000) },
            .sample(state: .scheduled).with { $0.notBefore = later },
            .sample().with { $0.deadline = 200 },
            .sample(state: .failed).with { ($0.due, $0.deadline) = (1, 1) },
            .sample(state: .scheduled).with { ($0.due, $0.isRemoving) = (1, true) },
        ])
        try store.round { transaction throws in
            #expect(try transaction.due(steady: 100, wall: wall, limit: 10).map(\.id) == [ids[0], ids[1], ids[2]])
            #expect(try transaction.due(steady: 99, wall: wall, limit: 10).map(\.id) == [ids[1], ids[2]])
            #expect(try transaction.due(steady: 1_000, wall: later, limit: 10).map(\.id) == Array(ids[0...5]))
            #expect(try transaction.due(steady: 1_000, wall: later, limit: 2).count == 2)
            #expect(try transaction.due(steady: 10, wall: wall.adding(seconds: -1), limit: 10).isEmpty)
            #expect(try transaction.dueTimes() == DueTimes(steady: 50, wall: wall))
            for id in ids[..<3] { try transaction.delete(id) }
            #expect(try transaction.dueTimes() == DueTimes(steady: 200, wall: later))
        }
    }

    @Test(arguments: StoreKind.allCases) func findsRunsOfOtherLivesAndSuspects(_ kind: StoreKind) throws {
        let store = try kind.make()
        let ids = try store.insert([
            .sample(state: .running).with { $0.run = RunID(life: store.store.life + 1, number: 7) },
            .sample(state: .running).with { $0.run = RunID(life: store.store.life, number: 7) },
            .sample(state: .running).with { ($0.run, $0.crashes) = (RunID(life: store.store.life + 2, number: 1), 1) },
            .sample(state: .failed).with { $0.crashes = 3 }, .sample().with { $0.crashes = 2 },
        ])
        try store.round { transaction throws in
            #expect(try transaction.lostRuns(limit: 10).map(\.id) == [ids[0], ids[2]])
            #expect(try transaction.lostRuns(limit: 1).map(\.id) == [ids[0]])
            #expect(try transaction.suspects(after: 0, limit: 10).map(\.id) == [ids[2], ids[4]])
            #expect(try transaction.suspects(after: ids[2], limit: 10).map(\.id) == [ids[4]])
            #expect(try transaction.suspects(after: 0, limit: 1).map(\.id) == [ids[2]])
        }
    }

    @Test(arguments: StoreKind.allCases) func findsChildren(_ kind: StoreKind) throws {
        let store = try kind.make()
        let parent = try #require(try store.insert([.sample(state: .running)]).first)
        func child(_ index: Int, link: Int = 1, list: Int64 = 5, _ state: JobState = .queued) -> JobRow {
            .sample(
                state: state, parent: JobRow.Parent(job: parent, link: link, list: list, index: index, depth: 1))
        }
        let ids = try store.insert([
            child(0, .succeeded), child(1), child(2).with { $0.waiting = .gate },
            child(3, .scheduled).with { $0.waiting = .gate }, child(4, .failed), child(0, link: 3, list: 8), .sample(),
        ])
        try store.round { transaction throws in
            func unfinished(
                areGated: Bool = false, list: Int64 = 5, after: JobID = 0, limit: Int = 10
            ) throws -> [JobID] {
                try transaction.unfinishedChildren(
                    of: parent, list: list, areGated: areGated, after: after, limit: limit
                ).map(\.id)
            }
            #expect(try unfinished() == Array(ids[1...3]))
            #expect(try unfinished(after: ids[1], limit: 1) == [ids[2]])
            #expect(try unfinished(list: 8) == [ids[5]])
            #expect(try unfinished(list: 6) == [])
            #expect(try unfinished(areGated: true) == [ids[2], ids[3]])
            #expect(try unfinished(areGated: true, limit: 1) == [ids[2]])
            func byLink(_ link: Int, limit: Int = 10) throws -> [JobID] {
                try transaction.children(of: parent, fromLink: link, limit: limit).map(\.id)
            }
            #expect(try byLink(1) == Array(ids[0...5]))
            #expect(try byLink(2) == [ids[5]])
            #expect(try byLink(0, limit: 3) == Array(ids[0...2]))
            var row = try #require(try transaction.job(ids[2]))
            row.waiting = .nothing
            try transaction.update(row)
            try transaction.delete(ids[0])
            #expect(try unfinished(areGated: true) == [ids[3]])
            #expect(try byLink(1) == Array(ids[1...5]))
        }
    }

    @Test(arguments: StoreKind.allCases) func findsDependents_andWhatTheyNeed(_ kind: StoreKind) throws {
        let store = try kind.make()
        let ids = try store.insert([.sample(), .sample(), .sample(), .sample()])
        try store.round { transaction throws in
            for job in [ids[3], ids[1], ids[2], ids[1]] { try transaction.addDependency(of: job, on: ids[0]) }
            try transaction.addDependency(of: ids[3], on: ids[1])
        }
        store.undoneRound { transaction throws(StoreError) in
            try transaction.removeDependency(of: ids[1], on: ids[0])
            try transaction.addDependency(of: ids[2], on: ids[1])
        }
        try store.round { transaction throws in
            #expect(try transaction.dependents(of: ids[0], after: 0, limit: 10) == Array(ids[1...3]))
            #expect(try transaction.dependents(of: ids[0], after: ids[1], limit: 1) == [ids[2]])
            #expect(try transaction.dependents(of: ids[1], after: 0, limit: 10) == [ids[3]])
            #expect(try transaction.dependencies(of: ids[3], limit: 10) == [ids[0], ids[1]])
            #expect(try transaction.dependencies(of: ids[3], limit: 1) == [ids[0]])
            try transaction.removeDependency(of: ids[3], on: ids[0])
            #expect(try transaction.dependents(of: ids[0], after: ids[2], limit: 10) == [])
            #expect(try transaction.dependencies(of: ids[3], limit: 10) == [ids[1]])
        }
    }

    @Test(arguments: StoreKind.allCases) func findsFinishedRootJobs(_ kind: StoreKind) throws {
        let store = try kind.make()
        func ended(_ time: Int64, owner: UInt32 = 1000) -> JobRow {
            .sample(owner: owner, state: .succeeded).with { $0.finishedAt = Timestamp(milliseconds: time) }
        }
        let ids = try store.insert([
            ended(300), ended(100), ended(200, owner: 7), ended(100), ended(50).with { $0.isRemoving = true },
            ended(60).with { $0.hasDependents = true },
            .sample(
                state: .failed, parent: JobRow.Parent(job: 1, link: 0, list: 1, index: 0, depth: 1)
            ).with { $0.finishedAt = Timestamp(milliseconds: 10) }, .sample(),
        ])
        try store.round { transaction throws in
            func found(_ owner: UInt32?, before: Int64, limit: Int = 10) throws -> [JobID] {
                try transaction.finished(owner: owner, before: Timestamp(milliseconds: before), limit: limit).map(\.id)
            }
            #expect(try found(nil, before: 1_000) == [ids[1], ids[3], ids[2], ids[0]])
            #expect(try found(nil, before: 300) == [ids[1], ids[3], ids[2]])
            #expect(try found(nil, before: 1_000, limit: 2) == [ids[1], ids[3]])
            #expect(try found(7, before: 1_000) == [ids[2]])
            #expect(try found(8, before: 1_000) == [])
            #expect(try transaction.dueTimes().firstEnd == Timestamp(milliseconds: 100))
        }
    }
}
