import InMemoryStore
import JobModel
import Testing

@testable import JobStore

/// What every store must do, command by command.
@Suite struct ConformanceTests {
    // MARK: Submitting

    @Test(arguments: Conformer.allCases)
    func submission_isNumberedInOrderAndReadWhole(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        var running = try Job.example(#""priority": 3, "queue": "slow", "tags": ["a", "b"], "label": "l""#)
        running.state = .running
        running.startedAt = .after(1)
        running.attempt = 2
        running.crashes = 2
        running.carried = .success(["x": 1.50])
        let jobs = try await store.create(.example(), running)
        #expect(jobs.map(\.id) == [1, 2])
        #expect(try await store.jobs([2, 7, 1]) == [jobs[1], jobs[0]])
        try await store.reopen()
        #expect(try await store.jobs([1, 2]) == jobs)
        #expect(try await store.create(.example()).map(\.id) == [3])
    }

    @Test(arguments: Conformer.allCases)
    func key_joinsOrConflicts_untilItsJobIsRemoved(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let job = try Job.example(#""key": "k""#)
        let other = try Job.example(#""key": "k", "priority": 1"#)
        let foreign = try Job.example(#""key": "k""#, owner: 7)
        let submissions = try await store.submit([job, other, job, foreign])
        #expect(submissions == [.created(1), .conflict(1), .joined(1, .queued), .created(2)])
        _ = try await store.removing(.remove(1))
        #expect(try await store.submit([other]) == [.created(3)])
    }

    @Test(arguments: Conformer.allCases)
    func number_isNeverGivenTwice(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        _ = try await store.create(.example(), .example())
        _ = try await store.removing(.remove(2))
        try await store.reopen()
        #expect(try await store.create(.example()).map(\.id) == [3])
    }

    // MARK: Saving

    @Test(arguments: Conformer.allCases)
    func save_keepsWhatBecameOfJobs_butNotOfRemovedOnes(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let jobs = try await store.create(.example(), .example())
        let ended = try jobs.map { try $0.finished(at: .after(5)) }
        _ = try await store.removing(.remove(2))
        try await store.save(ended[0], ended[1])
        #expect(try await store.jobs([1, 2]) == [ended[0]])
        #expect(try await store.recovery().counts.map(\.count) == [1])
    }

    @Test(arguments: Conformer.allCases)
    func crashes_areKept(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        var job = try await store.create(.example())[0]
        job.crashes = 2
        try await store.save(job)
        #expect(try await store.jobs([1]).map(\.crashes) == [2])
        job.crashes = 0
        try await store.save(job)
        #expect(try await store.jobs([1]).map(\.crashes) == [0])
    }

    // MARK: Long results

    @Test(arguments: Conformer.allCases, [false, true])
    func longOutcome_isReplacedByTheNext(_ conformer: Conformer, _ isLargeSpec: Bool) async throws {
        let store = try StoreUnderTest(conformer)
        // A long spec alone makes no outcome long.
        let text = String(repeating: "s", count: isLargeSpec ? 2 << 20 : 1)
        var job = try await store.create(.example("", source: ##"{"type": "value", "value": "\##(text)"}"##))[0]
        func stored() async throws -> Outcome? { try await store.jobs(.jobs([1])).first?.carried }
        let long = JSON.array((0..<400).map { .string("\($0)\"" + String(repeating: "x", count: 5000)) })
        var failure = JobError(.http, String(repeating: "m", count: 2 << 20))
        failure.failures = [JobError(.dns, "None.")]
        for outcome in [.success(long), .success(1), .failure(failure), .success([long]), nil] as [Outcome?] {
            job.state = .running
            job.carried = outcome
            try await store.save(job)
            #expect(try await stored() == outcome)
        }
    }

    @Test(arguments: Conformer.allCases)
    func longResult_isLeftInTheStore_andReadInParts(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let jobs = try await store.create(.example(), .example(), .example())
        let long = JSON.array((0..<300).map { .string("\($0)ä" + String(repeating: "x", count: 4000)) })
        // The first that is left out, and the last that is not.
        let longest = JSON.string(String(repeating: "y", count: Job.longestResultRead - 2))
        let ended = try zip(jobs, [long, longest]).map { try $0.finished(.success($1), at: .after(5)) }
        try await store.save(ended[0], ended[1])
        let shown = try await store.jobs(.jobs([1, 2]))
        #expect(shown[0] == ended[0].withoutLongResult && shown[0].storedResult == long.size)
        #expect(shown[0].storedSize == ended[0].storedSize && shown[0].memorySize < 1000)
        #expect(shown[1] == ended[1] && ended[1].withoutLongResult == ended[1])
        #expect(try await store.jobs(.firstJobs([1])) == [shown[0]])
        #expect(try await store.jobs(.list(JobFilter())).map(\.storedResult) == [nil, nil, long.size])
        func part(_ id: JobID, _ offset: Int, _ length: Int) async throws -> ResultPart? {
            guard case .result(let part) = try await store.read(.result(of: id, offset: offset, length: length)) else {
                throw WrongAnswer()
            }
            return part
        }
        let text = long.utf8
        for (offset, length) in [
            (0, text.count), (0, 10), (7, 5000), (text.count - 3, 9), (text.count, 9), (.max, .max),
        ] {
            #expect(try await part(1, offset, length) == ResultPart(of: text, offset: offset, length: length))
        }
        #expect(try await part(2, 0, 3)?.bytes == Array(#""yy"#.utf8))
        #expect(try await part(3, 0, 3) == nil)
        #expect(try await part(9, 0, 3) == nil)
    }

    // MARK: Sizes

    @Test(arguments: Conformer.allCases)
    func sizes_addUpToWhatTheJobsSay_whateverBecomesOfThem(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        var jobs = try await store.create(
            .example(), .example(#""label": "\#(String(repeating: "x", count: 200))""#), .example(owner: 7))
        jobs[1] = try jobs[1].finished(.success(.string(String(repeating: "r", count: 5_000))), at: .after(1))
        try await store.save(jobs[1])
        try await store.reopen()
        let counts = try await store.recovery().counts
        #expect(
            counts == [
                JobCount(owner: 7, queue: "default", state: .queued, count: 1, bytes: jobs[2].storedSize),
                JobCount(owner: 1000, queue: "default", state: .queued, count: 1, bytes: jobs[0].storedSize),
                JobCount(owner: 1000, queue: "default", state: .succeeded, count: 1, bytes: jobs[1].storedSize),
            ])
        // A job that was read is as large as it was when it was stored.
        #expect(try await store.jobs([1, 2, 3]).map(\.storedSize) == jobs.map(\.storedSize))
        #expect(try await store.removing(.remove(2)).map(\.size) == [jobs[1].storedSize])
        #expect(try await store.recovery().counts.map(\.state) == [.queued, .queued])
    }

    @Test(arguments: Conformer.allCases)
    func bodiesInFiles_countAsStored(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        var jobs = try await store.create(.example(), .example())
        jobs[0] = try jobs[0].finished(at: .after(1))
        jobs[0].bodies = [0: 3 << 20, 12: 70_000]
        try await store.save(jobs[0])
        try await store.reopen()
        #expect(try await store.jobs([1, 2]) == jobs)
        let size: Int64 = (3 << 20) + 70_000
        #expect(jobs[0].bodySize == size && jobs[0].storedSize > size && jobs[0].memorySize < 1000)
        #expect(
            try await store.recovery().counts.map(\.bytes).reduce(0, +) == jobs.map(\.storedSize).reduce(0, +))
        #expect(try await store.removing(.remove(1)).map(\.size) == [jobs[0].storedSize])
    }

    // MARK: Removing

    @Test(arguments: Conformer.allCases)
    func removal_tellsOfTheWholeTreeAndItsNotes(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let root = try await store.create(.example())[0]
        let children = try await store.children(
            NewChildren(
                parent: root, template: nil,
                children: [.example(0, .spec(valueSpec)), .example(1, .spec(valueSpec))]))
        let child = try await store.jobs([children[0]])[0]
        let grandchildren = try await store.children(
            NewChildren(parent: child, template: nil, children: [.example(0, .spec(valueSpec))]))
        try await store.save(checkpoint: ["part": "a"], of: grandchildren[0], link: 0)
        let removed = try await store.removing(.remove(root.id))
        #expect(removed.map(\.id) == [1, 2, 3, 4])
        #expect(removed.map(\.checkpoints) == [[], [], [], [["part": "a"]]])
        #expect(try await store.jobs([1, 2, 3, 4]).isEmpty)
        #expect(try await store.store.checkpoint(of: 4, link: 0) == nil)
        #expect(try await store.removing(.remove(root.id)).isEmpty)
    }

    @Test(arguments: Conformer.allCases)
    func notes_areFoundByLinks(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        _ = try await store.create(.example(), .example())
        for (job, link) in [(1, 0), (1, 2), (1, 5), (2, 2)] as [(JobID, Int)] {
            try await store.save(checkpoint: [JSON(link)], of: job, link: link)
        }
        #expect(try await store.store.checkpoints(of: 1, links: 1...Int.max) == [2: [2], 5: [5]])
        #expect(try await store.store.checkpoints(of: 1, links: 0...2) == [0: [0], 2: [2]])
        #expect(try await store.store.checkpoints(of: 3, links: 0...2).isEmpty)
    }

    @Test(arguments: Conformer.allCases)
    func note_isKeptUntilTheJobSucceededOrWasCancelled(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let job = try await store.create(.example())[0]
        try await store.save(checkpoint: [1], of: 1, link: 0)
        try await store.save(job.finished(.failure(JobError(.dns, "No.")), at: .after(1)))
        #expect(try await store.store.checkpoint(of: 1, link: 0) == [1])
        try await store.save(job.finished(at: .after(1)))
        #expect(try await store.store.checkpoint(of: 1, link: 0) == nil)
        try await store.save(checkpoint: [1], of: 1, link: 0)
        #expect(try await store.store.checkpoint(of: 1, link: 0) == nil)
    }

    @Test(arguments: Conformer.allCases)
    func children_areRemovedFromTheirLinkOn_withTheTemplates(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        var root = try await store.create(.example(#""then": [{"both": {"return": 1}}, {"both": {"return": 2}}]"#))[0]
        for link in 0...2 {
            root.link = link
            _ = try await store.children(
                NewChildren(parent: root, template: template, children: [.example(0, .item(JSON(link)))]))
        }
        #expect(try await store.removing(.removeChildren(of: 1, fromLink: 1)).map(\.id) == [3, 4])
        #expect(try await store.jobs([1, 2, 3, 4]).map(\.id) == [1, 2])
        #expect(try await store.removing(.removeChildren(of: 1, fromLink: 1)).isEmpty)
        // The link makes other children now, of another template.
        root.link = 1
        let other: JSON = ["source": ["type": "value", "value": ["other", "{{item}}"]]]
        let ids = try await store.children(
            NewChildren(parent: root, template: other, children: [.example(0, .item("i"))]))
        #expect(try await value(store.jobs(ids)[0]) == ["other", "i"])
        #expect(try await value(store.jobs([2])[0]) == [0, 0])
    }

    @Test(arguments: Conformer.allCases)
    func purge_takesTheOldestFirst_andNoUnfinishedOnes(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let jobs = try await store.create(.example(), .example(), .example(), .example(), .example())
        for (job, time) in zip(jobs, [40, 10, 30, 20]) { try await store.save(job.finished(at: .after(time))) }
        func purge(_ time: Int, keeping count: Int, atMost limit: Int = 10) async throws -> [JobID] {
            try await store.removing(.purge(finishedBefore: .after(time), keeping: count, atMost: limit)).map(\.id)
        }
        #expect(try await purge(10, keeping: 4).isEmpty)
        #expect(try await store.times().firstEnd == .after(10))
        #expect(try await purge(11, keeping: 4) == [2])
        #expect(try await purge(0, keeping: 1, atMost: 1) == [4])
        #expect(try await purge(0, keeping: 1) == [3])
        #expect(try await purge(0, keeping: 1).isEmpty)
        #expect(try await purge(100, keeping: 9) == [1])
        #expect(try await store.jobs([1, 2, 3, 4, 5]).map(\.id) == [5])
        #expect(try await store.times().firstEnd == nil)
    }

    @Test(arguments: Conformer.allCases)
    func purge_takesFromWhoHasMost(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let jobs = try await store.create(
            .example(owner: 3), .example(owner: 1), .example(owner: 1), .example(owner: 2), .example(owner: 1),
            .example(owner: 1), .example(owner: 2))
        for (job, time) in zip(jobs, 10...) { try await store.save(job.finished(at: .after(time))) }
        func purge(keeping count: Int) async throws -> [JobID] {
            try await store.removing(.purge(finishedBefore: .after(0), keeping: count, atMost: 10)).map(\.id)
        }
        #expect(try await purge(keeping: 7).isEmpty)
        #expect(try await purge(keeping: 6) == [2], "the oldest of the one who has most, not of all")
        #expect(try await purge(keeping: 5) == [3])
        #expect(try await purge(keeping: 3) == [5, 4])
        #expect(try await store.times() == StoredTimes(firstEnd: .after(10), lastEnd: .after(16)))
        #expect(try await store.removing(.purgeOldest(count: 9, freeing: .max, owner: 2)).map(\.id) == [7])
        #expect(try await purge(keeping: 0) == [6, 1])
    }

    @Test(arguments: Conformer.allCases)
    func purgeOfTheOldest_takesAsManyAsAsked(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let jobs = try await store.create(.example(), .example(), .example(), .example())
        for (job, time) in zip(jobs, [40, 10, 30]) { try await store.save(job.finished(at: .after(time))) }
        _ = try await store.children(
            NewChildren(
                parent: jobs[1].finished(at: .after(10)), template: nil, children: [.example(0, .spec(valueSpec))]))
        #expect(
            try await store.removing(.purgeOldest(count: 2, freeing: .max, owner: 1000)).map(\.id).sorted() == [
                2, 3, 5,
            ])
        #expect(try await store.removing(.purgeOldest(count: 2, freeing: .max, owner: 1000)).map(\.id) == [1])
        #expect(try await store.removing(.purgeOldest(count: 2, freeing: .max, owner: 1000)).isEmpty)
    }

    @Test(arguments: Conformer.allCases)
    func purgeOfTheOldest_stops_onceItHasFreedEnough(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        var jobs = try await store.create(.example(), .example(), .example(), .example())
        for index in jobs.indices {
            jobs[index] = try jobs[index].finished(at: .after(index))
            jobs[index].bodies = [0: 10_000]
        }
        for job in jobs { try await store.save(job) }
        func purge(_ bytes: Int64) async throws -> [JobID] {
            try await store.removing(.purgeOldest(count: 9, freeing: bytes, owner: 1000)).map(\.id)
        }
        #expect(try await purge(0) == [])
        #expect(try await purge(1) == [1])
        #expect(try await purge(jobs[0].storedSize + 1) == [2, 3])
        #expect(try await purge(.max) == [4])
    }

    // MARK: Children

    @Test(arguments: Conformer.allCases)
    func children_areNotStored_whenTheParentIsGone(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let root = try await store.create(.example())[0]
        _ = try await store.removing(.remove(1))
        let ids = try await store.children(
            NewChildren(parent: root, template: template, children: [.example(0, .item(1))]))
        #expect(ids.isEmpty)
        #expect(try await store.recovery().counts.isEmpty)
    }

    @Test(arguments: Conformer.allCases)
    func child_isMadeOfTheTemplateAndItsItem_andKeepsWhatItInherits(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        var root = try await store.create(.example())[0]
        root.children = 3
        let ids = try await store.children(
            NewChildren(
                parent: root, template: template,
                children: (0..<3).map { .example($0, .item(["n": JSON($0 * 10)]), queue: "slow", priority: 5) }))
        #expect(ids == [2, 3, 4])
        #expect(try await store.jobs([1]) == [root])
        try await store.reopen()
        let children = try await store.jobs(.children(of: 1, link: 0, from: 1, limit: 5))
        #expect(children.map(\.id) == [3, 4])
        #expect(value(children[1]) == [["n": 20], 2])
        #expect(children[0].parent == .init(job: 1, link: 0, index: 1, depth: 1))
        #expect(children.map(\.spec.queue) == ["slow", "slow"])
        #expect(children.map(\.spec.priority) == [5, 5])
        #expect(children.map(\.storedSize) == Array(repeating: Job.rowSize + Int64((["n": 10] as JSON).size), count: 2))
        // Nothing of the template is stored with the child when it is saved.
        try await store.save(children[0].finished(at: .after(1)))
        #expect(try await value(store.jobs([3])[0]) == [["n": 10], 1])
        let counts = try await store.recovery().counts.filter { $0.queue == "slow" }
        #expect(counts.map(\.state) == [.queued, .succeeded])
        #expect(try await counts.map(\.bytes).reduce(0, +) == store.jobs([2, 3, 4]).map(\.storedSize).reduce(0, +))
        #expect(try await store.ready("slow") == [2, 4])
        let states = try await store.childStates(of: 1)
        #expect(states.map(\.state) == [.queued, .succeeded, .queued])
        #expect(states.map(\.index) == [0, 1, 2])
    }

    @Test(arguments: Conformer.allCases)
    func childThatCannotBe_isStoredAsFailed(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let root = try await store.create(.example())[0]
        let error = JobError(.invalid, "\"seconds\" must be from 0.")
        let body = NewChild.Body.invalid(error)
        let ids = try await store.children(
            NewChildren(
                parent: root, template: template, children: [.example(0, .item(1)), .example(1, body, queue: "slow")]))
        let child = try await store.jobs([ids[1]])[0]
        #expect(child.state == .failed)
        #expect(child.carried == .failure(error))
        #expect(child.finishedAt == .after(0))
        #expect(child.spec.queue == "slow")
        #expect(child.spec.source.type == .error)
        #expect(child.storedSize == body.storedSize(queue: "slow", priority: 0))
        let failed = try await store.recovery().counts.filter { $0.state == .failed }
        #expect(failed == [JobCount(owner: 1000, queue: "slow", state: .failed, count: 1, bytes: child.storedSize)])
        // Only root jobs are purged; it goes with its parent.
        #expect(try await store.times().firstEnd == nil)
    }

    @Test(arguments: Conformer.allCases)
    func child_hasNoKey(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let root = try await store.create(.example())[0]
        let spec: JSON = ["source": ["type": "value", "value": 1], "key": "k"]
        let children = [NewChild.example(0, .spec(spec)), .example(1, .spec(spec))]
        #expect(try await store.children(NewChildren(parent: root, template: nil, children: children)) == [2, 3])
        #expect(try await store.submit([.example(#""key": "k""#)]) == [.created(4)])
    }

    // MARK: Starting

    @Test(arguments: Conformer.allCases)
    func recovery_tellsAllThatADaemonNeeds(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        var jobs = try await store.create(.example(), .example(#""delay": 5"#), .example())
        jobs[2].state = .running
        try await store.save(jobs[2])
        _ = try await store.write(.queue(QueueSettings(name: "slow", concurrency: 2, perUser: 1, isSuspended: true)))
        _ = try await store.write(.queue(QueueSettings(name: "fast", concurrency: 2)))
        _ = try await store.write(.queue(QueueSettings(name: "fast", concurrency: 9)))
        _ = try await store.write(.probe)
        let state = try await store.recovery()
        #expect(state.counts.map(\.state) == [.scheduled, .queued, .running])
        #expect(
            state.queues == [
                QueueSettings(name: "fast", concurrency: 9),
                QueueSettings(name: "slow", concurrency: 2, perUser: 1, isSuspended: true),
            ])
        #expect(state.running == [jobs[2].id])
        #expect(state.crashed.isEmpty)
        #expect(state.times == StoredTimes(due: .after(5)))
    }

    @Test(arguments: Conformer.allCases)
    func marks_areGone_afterACleanClose(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let jobs = try await store.create(.example(), .example(), .example(), .example())
        for job in jobs { store.store.mark(job.id, isWorking: true) }
        store.store.mark(2, isWorking: false)
        store.store.mark(99, isWorking: true)
        try await store.save(jobs[3].finished(at: .after(1)))
        // Finished jobs, unknown ones and those at rest did not crash.
        #expect(try await store.recovery().crashed.map(\.id) == [1, 3])
        try await store.reopen()
        #expect(try await store.recovery().crashed.isEmpty)
    }

    // MARK: Closing

    @Test(arguments: Conformer.allCases)
    func command_isRefused_whenTheStoreIsClosed(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        await store.store.close()
        let write = await #expect(throws: StoreError.self) { try await store.write(.probe) }
        #expect(write?.code == .closed)
        let read = await #expect(throws: StoreError.self) { try await store.read(.times) }
        #expect(read?.code == .closed)
    }

    // MARK: Examples

    private let valueSpec: JSON = ["source": ["type": "value", "value": 1]]
    let template: JSON = ["source": ["type": "value", "value": ["{{item}}", "{{index}}"]]]

    func value(_ job: Job) -> JSON? { job.spec.json["source"]?["value"] }
}
