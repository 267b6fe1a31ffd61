import CSQLite
import JobModel
import TestSupport
import Testing

@testable import JobStore

/// What clients and runs read beside rounds.
@Suite struct JobReaderTests {
    private func child(of job: JobID, list: Int64 = 1, _ index: Int, _ state: JobState = .queued) -> JobRow {
        .sample(state: state, parent: JobRow.Parent(job: job, link: 0, list: list, index: index, depth: 1))
    }

    @Test(arguments: StoreKind.readable) func givesAJobWithWhatItIsMadeOf(_ kind: StoreKind) throws {
        let (rounds, reader) = try kind.makeReadable()
        let parent = try #require(try rounds.insert([.sample(state: .running)]).first)
        let template = StoredValue.inline(Array("{\"x\":1}".utf8))
        let item = NewJobRow.Document.item(.inline(Array("5".utf8)))
        try rounds.round { transaction in
            try transaction.put(list(of: parent, id: 1, template: template))
            _ = try transaction.insert([NewJobRow(row: child(of: parent, 0), document: item)])
            try transaction.closeList(of: parent)
        }
        let plain = try #require(try reader.job(parent))
        #expect((plain.document, plain.template) == (.spec(Array("{}".utf8)), nil))
        let made = try #require(try reader.job(parent + 1))
        #expect((made.document, made.template) == (item, template))
        #expect(made.row == child(of: parent, 0).with { $0.id = parent + 1 })
        #expect(try reader.job(99) == nil)
        #expect(try reader.jobs([parent + 1, 99, parent]).map(\.row.id) == [parent + 1, parent])
    }

    @Test(arguments: StoreKind.readable) func hidesAllBelowARemovedRoot(_ kind: StoreKind) throws {
        let (rounds, reader) = try kind.makeReadable()
        let root = try #require(try rounds.insert([.sample(tags: ["t"])]).first)
        let middle = try #require(try rounds.insert([child(of: root, 0)]).first)
        let leaf = try #require(try rounds.insert([child(of: middle, list: 2, 0)]).first)
        var filter = JobFilter()
        filter.parent = middle
        #expect(try reader.page(filter).jobs.map(\.row.id) == [leaf])
        #expect(try reader.standings(of: [root, leaf]).count == 2)
        try rounds.round { transaction in
            let row = try #require(try transaction.job(root))
            try transaction.update(row.with { $0.isRemoving = true })
        }
        for id in [root, middle, leaf] { #expect(try reader.job(id) == nil) }
        #expect(try reader.standings(of: [root, leaf]).isEmpty)
        #expect(try reader.page(filter).jobs.isEmpty)
        #expect(try reader.page(JobFilter()).jobs.isEmpty)
        filter = JobFilter()
        filter.tag = "t"
        #expect(try reader.page(filter).jobs.isEmpty)
    }

    @Test(arguments: StoreKind.readable) func listsByEachPartOfAFilter(_ kind: StoreKind) throws {
        let (rounds, reader) = try kind.makeReadable()
        let ids = try rounds.insert([
            .sample(owner: 1, queue: "a", tags: ["t"]), .sample(owner: 2, queue: "b", tags: ["t", "u"], source: .json),
            .sample(owner: 1, state: .failed, queue: "b"), .sample(owner: 1, queue: "a", source: .json),
        ])
        try rounds.insert([child(of: ids[0], 0)])
        func found(_ change: (inout JobFilter) -> Void) throws -> [JobID] {
            var filter = JobFilter()
            filter.order = .oldest
            change(&filter)
            return try reader.page(filter).jobs.map(\.row.id)
        }
        #expect(try found { _ in } == ids)
        #expect(try found { $0.order = .newest } == ids.reversed())
        #expect(try found { $0.owner = 1 } == [ids[0], ids[2], ids[3]])
        #expect(try found { $0.queue = "a" } == [ids[0], ids[3]])
        #expect(try found { $0.states = [.failed, .running] } == [ids[2]])
        #expect(try found { $0.source = .json } == [ids[1], ids[3]])
        #expect(try found { $0.tag = "t" } == [ids[0], ids[1]])
        #expect(try found { ($0.tag, $0.owner) = ("t", 2) } == [ids[1]])
        #expect(try found { ($0.tag, $0.queue) = ("t", "a") } == [ids[0]])
        #expect(try found { $0.parent = ids[0] } == [ids[3] + 1])
        #expect(try found { ($0.parent, $0.tag) = (ids[0], "t") } == [])
        #expect(try found { ($0.after, $0.limit) = (ids[0], 2) } == [ids[1], ids[2]])
        #expect(try found { ($0.after, $0.order) = (ids[2], .newest) } == [ids[1], ids[0]])
    }

    /// More than one snapshot looks at.
    @Test(arguments: StoreKind.readable, [JobFilter.Order.newest, .oldest])
    func findsRareJobsAmongManyOfATagOrAParent(_ kind: StoreKind, order: JobFilter.Order) throws {
        let (rounds, reader) = try kind.makeReadable()
        let parent = try #require(try rounds.insert([.sample(owner: 1, state: .running)]).first)
        var rare: (tagged: [JobID], children: [JobID]) = ([], [])
        try rounds.round { transaction in
            for index in 0..<10_000 {
                let state: JobState = index % 4_900 == 4_899 ? .failed : .queued
                let owner = UInt32(1 + index % 2)
                let ids = try transaction.create([
                    .sample(owner: owner, state: state, tags: ["t"]),
                    child(of: parent, list: 1 + Int64(index / 8_000), index, state),
                ])
                if state == .failed {
                    (rare.tagged, rare.children) = (rare.tagged + [ids[0]], rare.children + [ids[1]])
                }
            }
        }
        func pages(_ change: (inout JobFilter) -> Void) throws -> [JobID] {
            var filter = JobFilter()
            (filter.states, filter.limit, filter.order) = ([.failed], 1, order)
            change(&filter)
            var found: [JobID] = []
            while let next = try reader.page(filter).jobs.first {
                found.append(next.row.id)
                filter.after = next.row.id
            }
            return order == .oldest ? found : found.reversed()
        }
        #expect(try pages { $0.tag = "t" } == rare.tagged)
        #expect(try pages { $0.parent = parent } == rare.children)
        try rounds.round { try $0.delete(rare.children[0]) }
        #expect(
            try pages { ($0.parent, $0.after) = (parent, rare.children[0]) }
                == (order == .oldest ? [rare.children[1]] : []))
    }

    /// Of two states, one has many jobs that do not fit between those that do.
    @Test(arguments: StoreKind.readable, [JobFilter.Order.newest, .oldest])
    func findsAllRareJobsOfSeveralStates(_ kind: StoreKind, order: JobFilter.Order) throws {
        let (rounds, reader) = try kind.makeReadable()
        func rare(_ states: [JobState]) -> [JobRow] { states.map { .sample(state: $0, queue: "rare") } }
        let rows =
            rare([.scheduled, .failed]) + (0..<5_000).map { _ in .sample(state: .failed) }
            + rare([.failed, .scheduled, .failed, .scheduled, .scheduled])
        let ids = try rounds.insert(order == .oldest ? rows : rows.reversed())
        let first = order == .oldest ? ids : ids.reversed()
        var filter = JobFilter()
        (filter.queue, filter.limit, filter.order) = ("rare", 4, order)
        var found: [JobID] = []
        repeat {
            filter.after = found.last
            found += try reader.page(filter).jobs.map(\.row.id)
        } while found.last != filter.after
        #expect(found == first.prefix(2) + first.suffix(5))
    }

    @Test func pages_beginBehindTheLastJob_inEachState() throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(path: directory.path)
        let states = [JobState.queued, .failed]
        let (rounds, reader) = (StoreUnderTest(store, directory), store.reader)
        let ids = try rounds.insert((0..<4_000).map { .sample(state: states[$0 % 2]) })
        let connection = try reader.read { $0 }
        for (order, after) in [(JobFilter.Order.oldest, ids[3_989]), (.newest, ids[10])] {
            for range in [nil, 1...JobID.max] {
                var filter = JobFilter()
                (filter.order, filter.after, filter.ids, filter.limit) = (order, after, range, 4)
                _ = connection.steps
                #expect(try reader.page(filter).jobs.count == 4)
                #expect(connection.steps < 2_000, "\(order), \(String(describing: range))")
            }
        }
    }

    @Test func readsThroughIndexesAndSortsNothing() throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(path: directory.path)
        let (rounds, reader) = (StoreUnderTest(store, directory), store.reader)
        // The children of a job that is not there are not looked for.
        try rounds.insert([.sample(owner: 1, tags: ["t"])])
        for order in [JobFilter.Order.newest, .oldest] {
            for change in [
                { $0.parent = 1 }, { ($0.parent, $0.tag, $0.states) = (1, "t", [.failed]) }, { $0.tag = "t" },
                { ($0.tag, $0.queue) = ("t", "a") }, { _ in }, { ($0.owner, $0.source) = (1, .url) },
            ] as [(inout JobFilter) -> Void] {
                for after in [nil, 5] as [JobID?] {
                    var filter = JobFilter()
                    (filter.order, filter.after) = (order, after)
                    change(&filter)
                    _ = try reader.page(filter)
                }
            }
        }
        _ = try reader.page(JobFilter())
        _ = try reader.outcomes(of: 1, list: 1, from: 0, limit: 1)
        _ = try reader.standings(of: [1])
        _ = try reader.checkpoint(of: 1, link: 0)
        try rounds.round { transaction in
            let zero = Timestamp(milliseconds: 0)
            _ = try transaction.ready(queue: "default", owner: 1, after: nil, excluding: [], limit: 1)
            _ = try transaction.due(steady: 1, wall: zero, limit: 1)
            _ = try transaction.dueTimes()
            _ = try transaction.lostRuns(limit: 1)
            _ = try transaction.suspects(after: 0, limit: 1)
            _ = try transaction.finished(owner: nil, before: zero, limit: 1)
            for areGated in [false, true] {
                _ = try transaction.unfinishedChildren(of: 1, list: 1, areGated: areGated, after: 0, limit: 1)
            }
            _ = try transaction.children(of: 1, fromLink: 0, limit: 1)
            _ = try transaction.hasWork(.removeParts, of: 1)
            _ = try transaction.nextWork(ofOwnerAbove: nil)
        }
        for connection in [store.connection, try reader.read { $0 }] {
            // What runs is looked at once, at a start.
            for sql in connection.statements.keys
            where (sql.hasPrefix("SELECT") || sql.hasPrefix("WITH")) && !sql.contains("jobs_by_life") {
                let plan = try connection.rows("EXPLAIN QUERY PLAN \(sql)", [], atMost: .max) { $0.text(3) }
                if sql.contains("jobs_by_parent"), sql.contains(" id >") || sql.contains(" id <") {
                    #expect(plan.contains { $0.contains("parent_index") }, "It passes over children: \(sql): \(plan)")
                }
                for step in plan {
                    #expect(!step.contains("TEMP B-TREE"), "\(sql): \(plan)")
                    #expect(!step.hasPrefix("SCAN jobs") || step.contains("USING"), "\(sql): \(plan)")
                }
            }
        }
    }

    @Test func queriesOfARound_passOverFewRows_howeverManyThereAre() throws {
        let directory = try TemporaryDirectory()
        let store = try SQLiteStore(path: directory.path)
        let rounds = StoreUnderTest(store, directory)
        let (first, never) = (Timestamp(milliseconds: 1), Int64.max)
        let count = 2_000
        let parents = try rounds.insert([.sample(owner: 1), .sample(owner: 1)])
        for row in [
            .sample(owner: 1, priority: 1), .sample(owner: 1, queue: "other"),
            .sample(owner: 1, state: .failed).with { ($0.finishedAt, $0.host) = (first, "host") },
            .sample(owner: 1, state: .failed).with { ($0.finishedAt, $0.hasDependents) = (first, true) },
            .sample(owner: 1, state: .scheduled).with { ($0.due, $0.deadline) = (never, never) },
            .sample(owner: 1, state: .scheduled).with { $0.notBefore = Timestamp(milliseconds: never) },
            .sample(owner: 1, state: .held), child(of: parents[0], 1, .failed), child(of: parents[0], 1),
            child(of: parents[0], 1).with { $0.waiting = .gate }, child(of: parents[0], list: 2, 1),
        ] as [JobRow] {
            try rounds.insert(Array(repeating: row, count: count))
        }
        try rounds.round { transaction in
            for job in 1...JobID(count) {
                try transaction.addDependency(of: job, on: parents[0])
                try transaction.addDependency(of: parents[0], on: job)
                for kind in WorkRow.Kind.allCases { _ = try transaction.add(WorkRow(kind: kind, job: job, owner: 1)) }
            }
            _ = store.connection.steps
            func takesFewSteps(_ name: String, _ query: () throws -> some Any) throws {
                _ = try query()
                let steps = store.connection.steps
                #expect(steps < count, "\(name)")
            }
            try takesFewSteps("ready") {
                try transaction.ready(queue: "default", owner: 1, after: nil, excluding: [], limit: 1)
            }
            try takesFewSteps("due") { try transaction.due(steady: 1, wall: first, limit: 1) }
            try takesFewSteps("due times") { try transaction.dueTimes() }
            try takesFewSteps("lost runs") { try transaction.lostRuns(limit: 1) }
            try takesFewSteps("suspects") { try transaction.suspects(after: 0, limit: 1) }
            for owner in [nil, 1] as [UInt32?] {
                try takesFewSteps("finished") { try transaction.finished(owner: owner, before: first, limit: 1) }
            }
            for (list, areGated) in [(1, false), (1, true), (2, true), (3, false)] {
                try takesFewSteps("unfinished children") {
                    try transaction.unfinishedChildren(
                        of: parents[0], list: Int64(list), areGated: areGated, after: 0, limit: 1)
                }
            }
            try takesFewSteps("children") { try transaction.children(of: parents[0], fromLink: 0, limit: 1) }
            try takesFewSteps("dependents") { try transaction.dependents(of: parents[0], after: 5, limit: 1) }
            try takesFewSteps("dependencies") { try transaction.dependencies(of: parents[0], limit: 1) }
            try takesFewSteps("checkpoints") { try transaction.checkpoints(of: parents[0], fromLink: 0) }
            try takesFewSteps("work") { try transaction.work(after: 5, limit: 1) }
            try takesFewSteps("next work") { try transaction.nextWork(ofOwnerAbove: 1) }
            try takesFewSteps("has work") { try transaction.hasWork(.removeParts, of: parents[1]) }
        }
    }

    @Test(arguments: StoreKind.readable) func endsAPageThatIsFull(_ kind: StoreKind) throws {
        let (rounds, reader) = try kind.makeReadable()
        let text = [UInt8](repeating: 32, count: 1 << 20)
        try rounds.round { transaction in
            _ = try transaction.insert((0..<4).map { _ in NewJobRow(row: .sample(), document: .spec(text)) })
        }
        let page = try reader.page(JobFilter())
        #expect(page.jobs.map(\.row.id) == [4, 3])
        #expect(page.endsEarly)
        #expect(try reader.jobs([1, 2, 3]).count == 2)
    }

    @Test(arguments: StoreKind.readable) func givesOutcomesOfChildrenByIndex(_ kind: StoreKind) throws {
        let (rounds, reader) = try kind.makeReadable()
        let ended = child(of: 1, 1, .succeeded).with { $0.carried = .success(.inline(Array("7".utf8))) }
        let ids = try rounds.insert([child(of: 1, 0), ended, child(of: 1, 2, .failed), child(of: 1, list: 2, 1)])
        let found = try reader.outcomes(of: 1, list: 1, from: 1, limit: 10)
        #expect(found.map(\.job) == [ids[1], ids[2]])
        #expect(found.map(\.index) == [1, 2])
        #expect(found.map(\.state) == [.succeeded, .failed])
        #expect(found.map(\.carried) == [ended.carried, nil])
        #expect(try reader.outcomes(of: 1, list: 1, from: 0, limit: 1).map(\.index) == [0])
    }

    @Test(arguments: StoreKind.readable) func givesSchedulesWithoutLongSpecs(_ kind: StoreKind) throws {
        let (rounds, reader) = try kind.makeReadable()
        let job = try #require(try rounds.insert([.sample(state: .failed)]).first)
        func schedule(_ name: String, owner: UInt32, size: Int) -> Schedule {
            var schedule = Schedule(
                key: ScheduleKey(owner: owner, name: name), timing: .every(1_000),
                setAt: Timestamp(milliseconds: 0), specSize: size)
            schedule.lastJob = job
            return schedule
        }
        let rows = [
            schedule("a", owner: 1, size: 2), schedule("b", owner: 1, size: 5_000), schedule("a", owner: 2, size: 2),
        ]
        let specs = rows.map { Array("{}".utf8) + [UInt8](repeating: 32, count: $0.specSize - 2) }
        try rounds.round { transaction in
            for (row, spec) in zip(rows, specs) { try transaction.put(row, spec: spec) }
        }
        let all = try reader.schedules(after: nil, owner: nil, limit: 10)
        #expect(all.map(\.schedule) == rows)
        #expect(all.map { $0.spec == nil } == [false, true, false])
        #expect(all.map(\.lastState) == [.failed, .failed, .failed])
        #expect(try reader.schedules(after: rows[0].key, owner: 1, limit: 10).map(\.schedule) == [rows[1]])
        #expect(try reader.schedule(rows[1].key)?.spec == specs[1])
        #expect(try reader.schedule(ScheduleKey(owner: 9, name: "a")) == nil)
        // A schedule that is stored again keeps its spec, and one that is removed leaves none behind.
        try rounds.round { transaction in
            try transaction.put(rows[0], spec: nil)
            try transaction.removeSchedule(rows[2].key)
            try transaction.put(rows[2], spec: nil)
        }
        #expect(try reader.schedule(rows[0].key)?.spec == Array("{}".utf8))
        #expect(try reader.schedule(rows[2].key)?.spec == nil)
    }

    @Test(arguments: StoreKind.readable) func givesTransfersDownloadsAndBlobs(_ kind: StoreKind) throws {
        let (rounds, reader) = try kind.makeReadable()
        let blob = BlobReference(life: 3, number: 4, size: 5)
        let templateBlob = BlobReference(life: 3, number: 1, size: 6)
        let ids = try rounds.insert([
            .sample(state: .running), .sample(state: .failed),
            .sample(state: .succeeded).with { $0.carried = .success(.file(blob)) },
        ])
        try rounds.round { transaction in
            for id in ids { try transaction.save(checkpoint: Array("{\"at\":1}".utf8), of: id, link: 0) }
            try transaction.save(checkpoint: Array("{}".utf8), of: ids[0], link: 1)
            try transaction.save(download: [1, 2], to: "/a")
            try transaction.put(list(of: ids[0], id: 1, template: .file(templateBlob), link: 2))
        }
        #expect(try reader.checkpoint(of: ids[0], link: 1) == Array("{}".utf8))
        #expect(try reader.checkpoint(of: ids[0], link: 2) == nil)
        #expect(try reader.unfinishedTransfers(limit: 10).map(\.job) == [ids[0]])
        #expect(try reader.download(to: "/a") == [1, 2])
        #expect(try reader.download(to: "/b") == nil)
        #expect(try reader.blobs(beforeLife: 4, after: nil, limit: 10) == [templateBlob, blob])
        #expect(try reader.blobs(beforeLife: 4, after: templateBlob, limit: 10) == [blob])
        #expect(try reader.blobs(beforeLife: 3, after: nil, limit: 10).isEmpty)
        try rounds.round { transaction in
            try transaction.delete(ids[2])
            try transaction.dropTemplates(of: ids[0], fromLink: 1)
        }
        #expect(try reader.blobs(beforeLife: 4, after: nil, limit: 10).isEmpty)
    }
}

extension SQLiteConnection {
    /// The steps that its statements took since they were last asked for.
    fileprivate var steps: Int {
        var (steps, statement) = (0, sqlite3_next_stmt(pointer, nil))
        while let present = statement {
            steps += Int(sqlite3_stmt_status(present, SQLITE_STMTSTATUS_VM_STEP, 1))
            statement = sqlite3_next_stmt(pointer, present)
        }
        return steps
    }
}
