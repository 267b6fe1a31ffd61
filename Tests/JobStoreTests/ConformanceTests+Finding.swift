import JobModel
import Testing
@testable import JobStore

extension ConformanceTests {
    @Test(arguments: Conformer.allCases)
    func readyJobs_areThoseOfTheOwnerInStartingOrder(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let jobs = try await store.create(
            .example(), .example(#""priority": 9"#), .example(owner: 7), .example(#""queue": "slow""#), .example(),
            .example(#""priority": -9"#), .example(#""delay": 60"#))
        #expect(try await store.ready() == [2, 1, 5, 6])
        #expect(try await store.ready(limit: 2) == [2, 1])
        #expect(try await store.ready(after: ReadyPosition(priority: 0, id: 1)) == [5, 6])
        #expect(try await store.ready(owner: 7) == [3])
        #expect(try await store.ready("slow") == [4])
        #expect(try await store.ready("none").isEmpty)
        var job = jobs[1]
        job.state = .running
        try await store.save(job)
        #expect(try await store.ready() == [1, 5, 6])
    }

    @Test(arguments: Conformer.allCases)
    func readyJobs_leaveExcludedHostsOut_howeverManyThereAre(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let jobs = try (0..<5_000).map { index in
            var job = try Job.example()
            job.host = index < 4_600 ? "full:80" : index % 3 == 0 ? nil : "host-\(index % 3):80"
            return job
        }
        _ = try await store.submit(jobs)
        let open = (4_600..<5_000).map { JobID($0) + 1 }
        #expect(try await store.ready(excluding: ["full:80"], limit: 7) == Array(open.prefix(7)))
        let withoutOne = open.filter { ($0 - 1) % 3 != 1 }
        #expect(
            try await store.ready(excluding: ["full:80", "host-1:80"], limit: 1_000) == withoutOne)
        let position = ReadyPosition(priority: 0, id: withoutOne[9])
        #expect(
            try await store.ready(after: position, excluding: ["full:80", "host-1:80"], limit: 3)
                == Array(withoutOne[10..<13]))
    }

    @Test(arguments: Conformer.allCases)
    func readyJob_comesWithoutItsSpec_whenThatIsLarge(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let long = String(repeating: "x", count: 3_000)
        var carrying = try Job.example()
        carrying.host = "h:80"
        carrying.carried = .success(.string(long))
        let jobs = try await store.create(
            .example(), .example(source: #"{"type": "value", "value": "\#(long)"}"#), carrying)
        let large: JSON = ["source": ["type": "value", "value": [.string(long), "{{item}}"]]]
        _ = try await store.children(
            NewChildren(parent: jobs[0], template: large, children: [.example(0, .item(1))]))
        let ready = try await store.ready(
            .ready(queue: "default", owner: 1000, after: nil, excluding: [], limit: 9))
        #expect(ready.map(\.position.id) == [1, 2, 3, 4])
        #expect(ready.map(\.job) == [jobs[0], nil, nil, nil])
        #expect(ready.map(\.host) == [nil, nil, "h:80", nil])
        #expect(ready.map(\.parent?.index) == [nil, nil, nil, 0])
    }

    @Test(arguments: Conformer.allCases)
    func gatedChildren_areNotReady_untilTheyAreStarted(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let root = try await store.create(.example(#""queue": "slow""#))[0]
        let ids = try await store.children(
            NewChildren(
                parent: root, template: template,
                children: (0..<5).map { .example($0, .item(JSON($0)), isGated: $0 > 0) }))
        #expect(try await store.ready() == [ids[0]])
        let gated = try await store.ready(.gated(of: 1, link: 0, from: 2, limit: 2))
        #expect(gated.map(\.position.id) == [ids[2], ids[3]])
        #expect(gated.map(\.job?.isGated) == [true, true])
        var child = try #require(gated[0].job)
        child.isGated = false
        try await store.save(child)
        #expect(try await store.ready() == [ids[0], ids[2]])
        let left = try await store.ready(.gated(of: 1, link: 0, from: 0, limit: 9))
        #expect(left.map(\.position.id) == [ids[1], ids[3], ids[4]])
        #expect(try await store.ready(.gated(of: 1, link: 1, from: 0, limit: 9)).isEmpty)
    }

    @Test(arguments: Conformer.allCases)
    func gatedChildren_areOrphans_whereTheirListIsOver(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        var lists = try await store.create(.example(), .example(), .example())
        var children: [[JobID]] = []
        for index in lists.indices {
            lists[index].state = .running
            let new = (0..<3).map { NewChild.example($0, .item(JSON($0)), isGated: $0 > 0) }
            children.append(
                try await store.children(NewChildren(parent: lists[index], template: template, children: new)))
        }
        #expect(try await store.jobs(.orphans(limit: 9)).isEmpty)
        lists[0].link = 1
        lists[2].state = .cancelled
        try await store.save(lists[0])
        try await store.save(lists[2])
        let orphans = [children[0][1], children[0][2], children[2][1], children[2][2]]
        #expect(try await store.jobs(.orphans(limit: 9)).map(\.id) == orphans)
        #expect(try await store.jobs(.orphans(limit: 3)).map(\.id) == Array(orphans.prefix(3)))
        for var job in try await store.jobs(.orphans(limit: 3)) {
            job.state = .cancelled
            try await store.save(job)
        }
        #expect(try await store.jobs(.orphans(limit: 9)).map(\.id) == Array(orphans.suffix(1)))
    }

    // MARK: Times

    @Test(arguments: Conformer.allCases)
    func dueAndOverdueJobs_comeEarliestFirst(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        #expect(try await store.times() == StoredTimes())
        let jobs = try await store.create(
            .example(#""delay": 30"#), .example(#""delay": 10, "deadline": 50"#), .example(#""delay": 20"#),
            .example(#""deadline": 40"#))
        #expect(try await store.times() == StoredTimes(due: .after(10), deadline: .after(40)))
        #expect(try await store.jobs(.due(at: .after(20), limit: 9)).map(\.id) == [2, 3])
        #expect(try await store.jobs(.due(at: .after(99), limit: 2)).map(\.id) == [2, 3])
        #expect(try await store.jobs(.overdue(at: .after(39), limit: 9)).isEmpty)
        #expect(try await store.jobs(.overdue(at: .after(50), limit: 9)).map(\.id) == [4, 2])
        try await store.save(jobs[3].finished(at: .after(3)))
        #expect(
            try await store.times()
                == StoredTimes(due: .after(10), deadline: .after(50), firstEnd: .after(3), lastEnd: .after(3)))
    }

    // MARK: Lists

    @Test(arguments: Conformer.allCases)
    func list_followsEveryPartOfTheFilter(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let jobs = try await store.create(
            .example(#""tags": ["t"]"#), .example(#""queue": "slow", "tags": ["t", "u"]"#), .example(owner: 7),
            .example(source: #"{"type": "timer", "seconds": 1}"#), .example())
        try await store.save(jobs[0].finished(at: .after(1)))
        _ = try await store.children(
            NewChildren(
                parent: jobs[4], template: template,
                children: [.example(0, .item(1), tags: ["t"]), .example(1, .item(2), queue: "slow")]))
        #expect(try await store.list { _ in } == [5, 4, 3, 2, 1])
        #expect(
            try await store.list {
                $0.order = .oldest; $0.after = 2; $0.limit = 2
            } == [3, 4])
        #expect(
            try await store.list {
                $0.after = 4; $0.limit = 2
            } == [3, 2])
        #expect(try await store.list { $0.states = [.succeeded] } == [1])
        #expect(try await store.list { $0.queue = "slow" } == [2])
        #expect(try await store.list { $0.owner = 1000 } == [5, 4, 2, 1])
        #expect(try await store.list { $0.source = .timer } == [4])
        #expect(try await store.list { $0.tag = "t" } == [2, 1])
        #expect(
            try await store.list {
                $0.tag = "t"; $0.order = .oldest; $0.after = 1
            } == [2])
        #expect(
            try await store.list {
                $0.tag = "t"; $0.states = [.queued]
            } == [2])
        #expect(try await store.list { $0.parent = 5 } == [7, 6])
        #expect(
            try await store.list {
                $0.parent = 5; $0.order = .oldest; $0.queue = "slow"
            } == [7])
        #expect(
            try await store.list {
                $0.parent = 5; $0.tag = "t"
            } == [6])
        #expect(try await store.list { $0.parent = 1 }.isEmpty)
        #expect(try await store.list { $0.limit = 0 }.isEmpty)
    }

    @Test(arguments: Conformer.allCases)
    func page_endsEarly_whenItsJobsAreLarge(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let half = JSON.string(String(repeating: "x", count: Int(StoredJobPage.largest) / 2 - 2))
        let jobs = try await store.create(.example(), .example(), .example(), .example())
        for job in jobs.prefix(3) { try await store.save(job.finished(.success(half), at: .after(1))) }
        #expect(try await store.list { $0.order = .oldest } == [1, 2])
        #expect(
            try await store.list {
                $0.order = .oldest; $0.after = 2
            } == [3, 4])
        #expect(try await StoredJobPage.isFull(store.jobs([1, 2])))
        #expect(try await !StoredJobPage.isFull(store.jobs([3, 4])))
        // The children of a large template are as large in memory as if each had a spec of its own.
        let large: JSON = ["source": ["type": "value", "value": [half, "{{item}}"]]]
        let ids = try await store.children(
            NewChildren(parent: jobs[3], template: large, children: (0..<3).map { .example($0, .item(JSON($0))) }))
        #expect(try await store.jobs(.children(of: 4, link: 0, from: 0, limit: 9)).map(\.id) == [ids[0], ids[1]])
        #expect(try await store.jobs(.children(of: 4, link: 0, from: 2, limit: 9)).map(\.id) == [ids[2]])
    }
}
