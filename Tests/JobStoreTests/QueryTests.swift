import JobModel
import TestSupport
import Testing

@testable import JobStore

@Suite struct QueryTests {
    let directory: TemporaryDirectory
    let store: SQLiteStore

    init() throws {
        directory = try TemporaryDirectory()
        store = try SQLiteStore(path: directory.path)
    }

    /// Every combination of what a filter may ask for, twice; and children of the first job.
    private func populate() async throws -> [Job] {
        var jobs: [Job] = []
        for _ in 0..<2 {
            for owner in [UInt32(0), 1000] {
                for queue in ["default", "other"] {
                    for source in [#"{"type": "value", "value": 1}"#, #"{"type": "timer", "seconds": 1}"#] {
                        for tags in ["", #", "tags": ["t", "u"]"#] {
                            let job = try Job.example(#""queue": "\#(queue)"\#(tags)"#, source: source, owner: owner)
                            jobs += [job, try job.finished(at: .after(5))]
                        }
                    }
                }
            }
        }
        for index in 0..<4 {
            jobs.append(
                try .example(
                    #""tags": ["\#(index < 2 ? "t" : "u")"]"#,
                    parent: .init(job: 1, link: index % 2, index: index, depth: 1)))
        }
        let ids = try await store.submit(jobs)
        return zip(jobs, ids).compactMap { job, id in
            if case .created(let id) = id { job.numbered(id) } else { nil }
        }
    }

    private func fits(_ job: Job, _ filter: JobFilter) -> Bool {
        job.parent?.job == filter.parent && (filter.states.isEmpty || filter.states.contains(job.state))
            && (filter.queue == nil || filter.queue == job.spec.queue)
            && (filter.tag.map(job.spec.tags.contains) ?? true)
            && (filter.source == nil || filter.source == job.spec.source.type)
            && (filter.owner == nil || filter.owner == job.owner)
    }

    @Test(arguments: [JobFilter.Order.newest, .oldest])
    func jobs_areThoseThatTheFilterAsksFor_inPages(_ order: JobFilter.Order) async throws {
        let all = try await populate()
        for states in [[], [.queued], [.queued, .succeeded, .running]] as [Set<JobState>] {
            for (queue, source) in [(nil, nil), ("other", nil), (nil, .timer), ("default", .value)]
                as [(String?, SourceType?)]
            {
                for (tag, parent) in [(nil, nil), ("t", nil), (nil, 1), ("u", 1)] as [(String?, JobID?)] {
                    for owner in [nil, UInt32(1000)] {
                        var filter = JobFilter()
                        filter.states = states
                        filter.queue = queue
                        filter.tag = tag
                        filter.source = source
                        filter.parent = parent
                        filter.owner = owner
                        filter.order = order
                        filter.limit = 5
                        let wanted = all.filter { fits($0, filter) }.sorted {
                            order == .oldest ? $0.id < $1.id : $0.id > $1.id
                        }
                        var found: [Job] = []
                        while case let page = try await store.jobs(filter), let last = page.last {
                            #expect(page.count <= 5)
                            found += page
                            filter.after = last.id
                        }
                        #expect(found == wanted, "\(filter)")
                    }
                }
            }
        }
    }

    @Test func ready_givesJobsInStartingOrder() async throws {
        let ids = try await store.create(
            .example(), .example(#""priority": 5"#), .example(), .example(#""priority": -5"#),
            .example(#""priority": 5"#), .example(#""queue": "other""#), .example(#""delay": 5"#))
        let order = [1, 4, 0, 2, 3].map { ids[$0] }
        #expect(try await store.ready(limit: 10).map(\.id) == order)
        #expect(
            try await store.ready(limit: 2).map(\.id)
                == Array(order[..<2]))
        for index in order.indices {
            let job = try await store.existing(order[index])
            let position = ReadyPosition(priority: job.spec.priority, id: job.id)
            let rest = try await store.ready(after: position, limit: 10)
            #expect(rest.map(\.id) == Array(order[(index + 1)...]))
        }
    }

    @Test func ready_leavesOutJobsForExcludedHosts() async throws {
        let hosts: [String?] = ["a:80", nil, "b:80", "a:80", "c:\"443"]
        let jobs = try hosts.map { host in
            var job = try Job.example()
            job.host = host
            return job
        }
        _ = try await store.submit(jobs)
        let ready = try await store.ready(excluding: ["a:80", "c:\"443"], limit: 10)
        #expect(ready.map(\.id) == [2, 3])
    }

    @Test func ready_findsJobsBehindThoseForExcludedHosts_howeverMany() async throws {
        var jobs: [Job] = []
        for number in 0..<9_000 {
            var job = try Job.example(#""priority": \#(number % 3)"#)
            job.host = number % 1000 == 7 ? "b:\(number)" : number % 1000 == 8 ? nil : "a:80"
            jobs.append(job)
        }
        _ = try await store.submit(jobs)
        let wanted = jobs.enumerated().filter { $0.element.host != "a:80" }
            .map { ReadyPosition(priority: $0.element.spec.priority, id: JobID($0.offset) + 1) }.sorted()
        for limit in [1, 4, 100] {
            var found: [ReadyPosition] = []
            while case let page = try await store.ready(
                after: found.last, excluding: ["a:80"], limit: limit), !page.isEmpty
            {
                #expect(page.count <= limit)
                found += page
            }
            #expect(found == wanted)
        }
    }

    @Test func due_givesScheduledJobsEarliestFirst() async throws {
        let ids = try await store.create(
            .example(#""delay": 30"#), .example(#""delay": 10"#), .example(#""delay": 20"#), .example())
        #expect(try await store.jobs(.due(at: .after(9), limit: 10)).isEmpty)
        #expect(try await store.jobs(.due(at: .after(20), limit: 10)).map(\.id) == [ids[1], ids[2]])
        #expect(try await store.jobs(.due(at: .after(99), limit: 2)).map(\.id) == [ids[1], ids[2]])
        #expect(try await store.times().due == .after(10))
    }

    @Test func overdue_givesUnfinishedJobsPastTheirDeadline() async throws {
        let ids = try await store.create(
            .example(#""deadline": 30"#), .example(#""deadline": 10"#), .example(#""deadline": 5"#), .example())
        try await store.save(store.existing(ids[2]).finished(at: .after(1)))
        #expect(try await store.jobs(.overdue(at: .after(9), limit: 10)).isEmpty)
        #expect(try await store.jobs(.overdue(at: .after(30), limit: 10)).map(\.id) == [ids[1], ids[0]])
        #expect(try await store.times().deadline == .after(10))
        #expect(try await store.times().due == nil)
    }

    @Test func firstEnd_isOfTheRootJobThatEndedFirst() async throws {
        let parent = try await store.stored()
        let child = Job.Parent(job: parent.id, link: 0, index: 0, depth: 1)
        let ids =
            try await store.create(.example(), .example(), .example())
            + store.submit(children: [.example(parent: child)], of: parent)
        #expect(try await store.times().firstEnd == nil)
        for (id, end) in zip(ids, [20, 10, 30, 5]) {
            try await store.save(store.existing(id).finished(at: .after(end)))
        }
        #expect(try await store.times().firstEnd == .after(10))
    }

    @Test func interrupted_givesRunningJobs() async throws {
        let parent = Job.Parent(job: 1, link: 0, index: 0, depth: 1)
        let ids = try await store.create(
            .example(), .example(#""queue": "other""#, owner: 1), .example(), .example(parent: parent))
        for id in [ids[3], ids[0], ids[1]] {
            var job = try await store.existing(id)
            _ = try job.handle(.start, at: .after(1))
            try await store.save(job)
        }
        #expect(try await store.recovery().running == [ids[0], ids[1], ids[3]])
    }

    @Test func counts_areByOwnerQueueAndState() async throws {
        let all = try await populate()
        let wanted = Dictionary(grouping: all) { [String($0.owner), $0.spec.queue, $0.state.rawValue] }
        let counts = try await store.counts()
        #expect(counts.count == wanted.count)
        for count in counts {
            #expect(wanted[[String(count.owner), count.queue, count.state.rawValue]]?.count == count.count)
        }
    }

    @Test func children_areInTheOrderOfTheirIndex() async throws {
        let parent = try await store.stored()
        let children = try [3, 1, 0, 2].map { index in
            try Job.example(parent: .init(job: parent.id, link: 1, index: index, depth: 1))
        }
        let ids = try await store.submit(children: children, of: parent)
        let order = [ids[2], ids[1], ids[3], ids[0]]
        #expect(try await store.jobs(.children(of: parent.id, link: 1, from: 0, limit: 10)).map(\.id) == order)
        #expect(
            try await store.jobs(.children(of: parent.id, link: 1, from: 1, limit: 2)).map(\.id) == Array(order[1...2]))
        #expect(try await store.jobs(.children(of: parent.id, link: 0, from: 0, limit: 2)).isEmpty)
        try await store.save(children[2].numbered(ids[2]).finished(at: .after(1)))
        let states = try await store.childStates(of: parent.id, link: 1)
        #expect(states.map(\.id) == order)
        #expect(states.map(\.state) == [.succeeded, .queued, .queued, .queued])
    }
}
