import JobModel
import TestSupport
import Testing

@testable import JobCore

/// Who gets a free slot.
@Suite struct SchedulerTests {
    private func scheduler(_ concurrency: Int = 4, perUser: Int? = nil, perHost: Int = 6, queues: [String] = ["q"])
        -> Scheduler
    {
        let scheduler = Scheduler(perHost: perHost, openLists: 4)
        for queue in queues {
            scheduler.open(QueueSettings(name: queue, concurrency: concurrency), perUser: perUser ?? concurrency)
        }
        return scheduler
    }

    private func insert(
        _ ids: [JobID], _ owner: UInt32, host: String? = nil, priority: Int = 0, queue: String = "q",
        into scheduler: Scheduler
    ) {
        for id in ids {
            scheduler.insert(
                ReadyWindow.Entry(
                    ReadyPosition(priority: priority, id: id), ConcurrencyKey(host: host), parent: nil, job: nil,
                    isPinned: false), queue: queue, owner: owner)
        }
    }

    /// The ids that get a slot now, and their turns.
    private func fill(_ scheduler: Scheduler, _ queue: String = "q") -> [Scheduler.Turn] {
        var turns: [Scheduler.Turn] = []
        while let turn = scheduler.next(in: queue) { turns.append(turn) }
        return turns
    }

    private func giveBack(_ turn: Scheduler.Turn, to scheduler: Scheduler) {
        scheduler.release(turn.slot)
        if let permit = turn.permit { scheduler.release(permit) }
    }

    private func ids(_ turns: [Scheduler.Turn]) -> [JobID] { turns.map(\.entry.position.id) }

    // MARK: - Slots

    @Test func slots_areAsManyAsTheQueueHas_unlessItIsSuspended() {
        let scheduler = scheduler(2)
        insert([1, 2, 3], 1, into: scheduler)
        let turns = fill(scheduler)
        #expect(ids(turns) == [1, 2])
        #expect(scheduler.running(in: "q") == [1: 2])
        scheduler.open(QueueSettings(name: "q", concurrency: 3, isSuspended: true), perUser: 3)
        #expect(scheduler.next(in: "q") == nil)
        scheduler.open(QueueSettings(name: "q", concurrency: 3), perUser: 3)
        #expect(ids(fill(scheduler)) == [3])
        scheduler.open(QueueSettings(name: "q", concurrency: 1), perUser: 1)
        insert([4], 1, into: scheduler)
        giveBack(turns[0], to: scheduler)
        giveBack(turns[1], to: scheduler)
        #expect(scheduler.next(in: "q") == nil, "one runs, and one may")
    }

    @Test func nothingStarts_inAQueueThatIsNotThere() {
        let scheduler = scheduler()
        insert([1], 1, queue: "none", into: scheduler)
        #expect(scheduler.next(in: "none") == nil && scheduler.windowEntries == 0)
        #expect(scheduler.settings(of: "none") == nil)
    }

    @Test func slots_goToTheOwnerWithTheFewest() {
        let scheduler = scheduler(6)
        insert(Array(1...10), 1, priority: 1000, into: scheduler)
        let first = fill(scheduler)
        #expect(first.count == 6)
        insert([11, 12, 13], 2, into: scheduler)
        insert([14], 3, priority: -1000, into: scheduler)
        for turn in first.prefix(3) { giveBack(turn, to: scheduler) }
        // One has 3, two and three none.
        #expect(ids(fill(scheduler)) == [11, 14, 12])
    }

    @Test func slots_goToTheOwnerServedLongestAgo_amongEquals() {
        let scheduler = scheduler(1)
        insert(Array(1...9), 1, into: scheduler)
        insert(Array(11...19), 2, into: scheduler)
        insert(Array(21...29), 3, into: scheduler)
        var order: [UInt32] = []
        for _ in 0..<9 {
            let turn = fill(scheduler)[0]
            order.append(turn.slot.owner)
            giveBack(turn, to: scheduler)
        }
        #expect(order == [1, 2, 3, 1, 2, 3, 1, 2, 3])
    }

    @Test func owner_isNotPassedOver_whileOthersComeAndGo() {
        let scheduler = scheduler(1)
        insert(Array(1...100), 1, into: scheduler)
        // Two others submit one job each, one after the other, so that one of them is always new.
        insert([1000], 2, into: scheduler)
        var served: [UInt32: Int] = [:]
        for round in 1...60 {
            let turn = fill(scheduler)[0]
            served[turn.slot.owner, default: 0] += 1
            insert([JobID(1000 + round)], turn.slot.owner == 2 ? 3 : 2, into: scheduler)
            giveBack(turn, to: scheduler)
        }
        #expect((served[1] ?? 0) >= 20, "\(served)")
    }

    @Test func owner_getsNoMoreThanPerUser_whileOthersGetTheRest() {
        let scheduler = scheduler(4, perUser: 3)
        insert(Array(1...10), 1, into: scheduler)
        #expect(ids(fill(scheduler)) == [1, 2, 3])
        insert([11, 12], 2, into: scheduler)
        #expect(ids(fill(scheduler)) == [11])
    }

    @Test func jobsAreLookedFor_whereTheHostIsOthersTurn_onceASlotIsFree() throws {
        let scheduler = scheduler(1)
        scheduler.open(QueueSettings(name: "r", concurrency: 1), perUser: 1)
        // One asks the host in another queue, and two waits for it here, where somebody else has the only slot.
        insert([1], 1, host: "h", queue: "r", into: scheduler)
        #expect(scheduler.next(in: "r") != nil)
        insert([2], 3, into: scheduler)
        #expect(fill(scheduler).count == 1)
        insert([3], 2, host: "h", into: scheduler)
        scheduler.expectStored(queue: "q", owner: 1)
        let first = try #require(scheduler.requests(in: "q").first { $0.owner == 1 })
        let entries = (10..<(10 + JobID(ReadyWindow.size))).map { id in
            ReadyWindow.Entry(
                ReadyPosition(priority: 0, id: id), .host("h"), parent: nil, job: nil, isPinned: false)
        }
        scheduler.received(first, entries, rows: ReadyWindow.size, last: entries.last?.position)
        // The slot that becomes free goes to two, and the next one to whoever has something else here.
        #expect(scheduler.requests(in: "q").contains { $0.owner == 1 && $0.excluding == ["h"] })
    }

    @Test func jobsAreLookedFor_whereTheHostIsTheTurnOfWhoHasAllSlots() throws {
        let scheduler = scheduler(1)
        scheduler.open(QueueSettings(name: "r", concurrency: 1), perUser: 1)
        insert([1], 1, host: "h", queue: "r", into: scheduler)
        #expect(scheduler.next(in: "r") != nil)
        // Two has the only slot, as many as they may have, and waits for the host with a job of its last.
        insert([2, 3], 2, into: scheduler)
        insert([4], 2, host: "h", priority: -1, into: scheduler)
        let turns = fill(scheduler)
        #expect(ids(turns) == [2])
        scheduler.expectStored(queue: "q", owner: 1)
        let first = try #require(scheduler.requests(in: "q").first { $0.owner == 1 })
        let entries = (10..<(10 + JobID(ReadyWindow.size))).map { id in
            ReadyWindow.Entry(
                ReadyPosition(priority: 0, id: id), .host("h"), parent: nil, job: nil, isPinned: false)
        }
        scheduler.received(first, entries, rows: ReadyWindow.size, last: entries.last?.position)
        // Whenever that slot is given back two may have it, and so has the host before one.
        let request = try #require(scheduler.requests(in: "q").first { $0.owner == 1 && $0.excluding == ["h"] })
        let other = ReadyPosition(priority: 0, id: 2000)
        scheduler.received(
            request, [ReadyWindow.Entry(other, .none, parent: nil, job: nil, isPinned: false)], rows: 1, last: other)
        giveBack(turns[0], to: scheduler)
        #expect(ids(fill(scheduler)) == [2000], "it is one's turn")
    }

    @Test func jobsAreLookedFor_onceASlotIsFree_whereTheirHostWasOthersTurnBefore() throws {
        let scheduler = scheduler(2, perUser: 1)
        scheduler.open(QueueSettings(name: "r", concurrency: 1), perUser: 1)
        insert([1], 1, host: "h", queue: "r", into: scheduler)
        #expect(scheduler.next(in: "r") != nil)
        insert([2], 2, into: scheduler)
        insert([4], 3, into: scheduler)
        let turns = fill(scheduler)
        #expect(ids(turns) == [2, 4])
        insert([3], 2, host: "h", into: scheduler)
        #expect(scheduler.backOff(host: "g", for: 1))
        scheduler.expectStored(queue: "q", owner: 1)
        let first = try #require(scheduler.requests(in: "q").first { $0.owner == 1 })
        let entries = (10..<(10 + JobID(ReadyWindow.size))).map { id in
            ReadyWindow.Entry(
                ReadyPosition(priority: 0, id: id), .host(id == 10 ? "h" : "g"), parent: nil, job: nil,
                isPinned: false)
        }
        scheduler.received(first, entries, rows: ReadyWindow.size, last: entries.last?.position)
        // While no slot is free what asks the host is passed over, as it is two's turn there.
        let request = try #require(scheduler.requests(in: "q").first { $0.owner == 1 })
        #expect(request.excluding == ["g", "h"])
        scheduler.received(request, [], rows: 0, last: nil)
        scheduler.remove(10, queue: "q", owner: 1)
        giveBack(turns[1], to: scheduler)
        #expect(fill(scheduler).isEmpty)
        #expect(scheduler.requests(in: "q").contains { $0.owner == 1 && $0.excluding == ["g"] })
    }

    @Test func owner_startsByPriority_amongItsOwnOnly() {
        let scheduler = scheduler(4)
        insert([1], 1, into: scheduler)
        insert([2], 1, priority: 5, into: scheduler)
        insert([3], 2, priority: -5, into: scheduler)
        #expect(ids(fill(scheduler)) == [2, 3, 1])
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func owners_getTheirShareOfAnyHundredStarts(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let scheduler = scheduler(8, perUser: 6)
        let owners = 4
        var last: JobID = 0
        for owner in 1...owners {
            // The first floods with the highest priority.
            for _ in 0..<(owner == 1 ? 900 : 500) {
                last += 1
                insert([last], UInt32(owner), priority: owner == 1 ? 1000 : 0, into: scheduler)
            }
        }
        var running: [Scheduler.Turn] = []
        var starts: [UInt32] = []
        while starts.count < 1000 {
            let turns = fill(scheduler)
            starts += turns.map(\.slot.owner)
            running += turns
            // Jobs take about as long as each other.
            giveBack(running.remove(at: Int.random(in: 0..<min(4, running.count), using: &generator)), to: scheduler)
        }
        for start in 0...(starts.count - 100) {
            let window = starts[start..<start + 100]
            for owner in 1...UInt32(owners) {
                #expect(window.count { $0 == owner } >= 100 / (2 * owners), "owner \(owner) from start \(start)")
            }
        }
    }

    // MARK: - Hosts

    @Test func host_isAskedByAsManyAsItMayBe_overAllQueues() {
        let scheduler = scheduler(10, perHost: 3, queues: ["a", "b"])
        insert([1, 2], 1, host: "h", queue: "a", into: scheduler)
        insert([3, 4, 5], 1, host: "h", queue: "b", into: scheduler)
        insert([6], 1, host: "i", queue: "b", into: scheduler)
        let first = fill(scheduler, "a")
        #expect(ids(first) == [1, 2])
        #expect(ids(fill(scheduler, "b")) == [3, 6])
        #expect(scheduler.keys == [.host("h"): 3, .host("i"): 1])
        giveBack(first[0], to: scheduler)
        #expect(ids(fill(scheduler, "b")) == [4])
    }

    @Test func host_isSharedByOwners() {
        let scheduler = scheduler(20, perHost: 4)
        insert(Array(1...10), 1, host: "h", into: scheduler)
        var running = fill(scheduler)
        #expect(running.count == 4)
        insert(Array(11...20), 2, host: "h", into: scheduler)
        for _ in 0..<4 {
            giveBack(running.removeFirst(), to: scheduler)
            running += fill(scheduler)
        }
        #expect(running.count { $0.slot.owner == 1 } == 2 && running.count { $0.slot.owner == 2 } == 2)
    }

    @Test func host_isSharedByOwners_whoseJobsAreInOtherQueues() {
        let scheduler = scheduler(20, perHost: 4, queues: ["a", "b"])
        insert(Array(1...10), 1, host: "h", queue: "a", into: scheduler)
        insert(Array(11...20), 2, host: "h", queue: "b", into: scheduler)
        let first = fill(scheduler, "a")
        #expect(first.count == 1, "the other, who waits for it, has none")
        #expect(fill(scheduler, "b").count == 2)
        #expect(fill(scheduler, "a").count == 1)
        #expect(scheduler.keys == [.host("h"): 4])
    }

    @Test func host_isNotKeptFree_forWhoCannotStart() {
        let scheduler = scheduler(20, perHost: 4, queues: ["a", "b"])
        scheduler.open(QueueSettings(name: "b", concurrency: 2, isSuspended: true), perUser: 2)
        insert(Array(1...10), 1, host: "h", queue: "a", into: scheduler)
        insert(Array(11...20), 2, host: "h", queue: "b", into: scheduler)
        #expect(fill(scheduler, "a").count == 4, "the other's queue is suspended")
    }

    @Test func job_goesOn_onlyWhereItsNextHostIsOpen() throws {
        let scheduler = scheduler(10, perHost: 1)
        let permit = try #require(scheduler.acquire(.host("h"), for: 1))
        #expect(scheduler.acquire(.host("h"), for: 2) == nil)
        #expect(scheduler.acquire(.none, for: 1) == nil)
        scheduler.release(permit)
        #expect(scheduler.acquire(.host("h"), for: 2) != nil)
        #expect(scheduler.acquireAnyway(.host("h"), for: 1) != nil)
        #expect(scheduler.keys == [.host("h"): 2])
    }

    @Test func host_isLeftAlone_whileItIsBackedOff() {
        let scheduler = scheduler()
        insert([1, 2], 1, host: "h", into: scheduler)
        insert([3], 1, host: "i", into: scheduler)
        #expect(scheduler.backOff(host: "h", for: 1))
        #expect(ids(fill(scheduler)) == [3])
        scheduler.reopen(host: "h")
        #expect(ids(fill(scheduler)) == [1, 2])
    }

    // MARK: - Work is conserved

    /// No slot stays free while somebody has a job ready that may start.
    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func noSlotStaysFree_whileAJobMayStart(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let names = ["a", "b", "c"]
        let scheduler = scheduler(5, perUser: 4, perHost: 2, queues: names)
        var waiting: [JobID: (queue: String, owner: UInt32, key: ConcurrencyKey)] = [:]
        var running: [Scheduler.Turn] = []
        var last: JobID = 0
        for _ in 0..<600 {
            if generator.chance(0.5) {
                last += 1
                let job = (
                    queue: generator.pick(names), owner: generator.pick([1, 2, 3] as [UInt32]),
                    host: generator.pick([nil, "x", "x", "y"] as [String?])
                )
                waiting[last] = (job.queue, job.owner, ConcurrencyKey(host: job.host))
                insert([last], job.owner, host: job.host, queue: job.queue, into: scheduler)
            } else if !running.isEmpty {
                giveBack(running.remove(at: Int.random(in: running.indices, using: &generator)), to: scheduler)
            }
            scheduler.startAll { turn in
                waiting[turn.entry.position.id] = nil
                running.append(turn)
            }
            // None is left that could start, whatever fairness says.
            for (id, job) in waiting {
                let own = running.count { $0.slot.queue == job.queue && $0.slot.owner == job.owner }
                let all = running.count { $0.slot.queue == job.queue }
                let asked = running.count { $0.entry.key == job.key }
                let mayStart = all < 5 && own < 4 && (job.key == .none || asked < 2)
                #expect(!mayStart, "job \(id)")
            }
            for name in names {
                let slots = scheduler.running(in: name)
                #expect(slots.values.reduce(0, +) == running.count { $0.slot.queue == name })
                #expect(slots.values.allSatisfy { $0 <= 4 } && slots.values.reduce(0, +) <= 5)
            }
        }
    }

    // MARK: - Reading

    @Test func storedJobs_areReadByOwnerAndQueue() {
        let scheduler = scheduler(4, queues: ["a", "b"])
        scheduler.expectStored(queue: "a", owner: 2)
        scheduler.expectStored(queue: "a", owner: 1)
        scheduler.expectStored(queue: "b", owner: 1)
        let requests = scheduler.requests(in: "a")
        #expect(requests.map(\.owner) == [1, 2] && requests.allSatisfy { $0.after == nil && $0.limit == 512 })
        #expect(scheduler.requests(in: "a").isEmpty, "they are under way")
        scheduler.readFailed(requests[0])
        #expect(scheduler.requests(in: "a").map(\.owner) == [1])
        let position = ReadyPosition(priority: 0, id: 5)
        scheduler.received(
            requests[1], [ReadyWindow.Entry(position, .none, parent: nil, job: nil, isPinned: false)], rows: 1,
            last: position)
        #expect(ids(fill(scheduler, "a")) == [5])
    }

    @Test func jobsBehindClosedHosts_areRead_whileOthersHaveAllSlots() {
        let scheduler = scheduler(1)
        scheduler.expectStored(queue: "q", owner: 1)
        let first = scheduler.requests()
        let entries = (1...512 as ClosedRange<JobID>).map { id in
            ReadyWindow.Entry(
                ReadyPosition(priority: 9, id: id), ConcurrencyKey(host: "h"), parent: nil, job: nil, isPinned: false)
        }
        _ = scheduler.backOff(host: "h", for: 1)
        scheduler.received(first[0], entries, rows: 512, last: entries.last?.position)
        insert([1000], 2, into: scheduler)
        let turns = fill(scheduler)
        #expect(ids(turns) == [1000])
        // Or the next slot would go to another again, and so for ever.
        let next = scheduler.requests()
        #expect(next.map(\.owner) == [1] && next.first?.excluding == ["h"])
        scheduler.received(
            next[0],
            [ReadyWindow.Entry(ReadyPosition(priority: 0, id: 2000), .none, parent: nil, job: nil, isPinned: false)],
            rows: 1, last: ReadyPosition(priority: 0, id: 2000))
        insert([1001], 2, into: scheduler)
        giveBack(turns[0], to: scheduler)
        #expect(ids(fill(scheduler)) == [2000])
    }

    @Test func owners_areForgotten_onceTheyHaveNothing() {
        let scheduler = scheduler(4)
        for owner in 1...100 as ClosedRange<UInt32> {
            insert([JobID(owner)], owner, into: scheduler)
            if owner.isMultiple(of: 2) { scheduler.remove(JobID(owner), queue: "q", owner: owner) }
            for turn in fill(scheduler) { giveBack(turn, to: scheduler) }
        }
        #expect(scheduler.owners == 0 && scheduler.windowEntries == 0 && scheduler.keys.isEmpty)
    }
}
