import JobModel
import JobStore
import Testing

@testable import JobEngine

/// The window on a queue: what it holds, what it leaves to the store, and what it fetches.
@Suite struct ReadyQueueTests {
    private typealias Entry = ReadyQueue.Entry
    private let size = ReadyQueue.windowSize

    private func job(_ id: JobID, priority: Int = 0, host: String? = nil, label: String = "x") throws -> Job {
        let spec = try JobSpecReader.spec(
            ["source": ["type": "error"], "priority": JSON(priority), "label": .string(label)], limits: JobLimits())
        var job = Job(submitting: spec, owner: 1, at: Timestamp(milliseconds: 0))
        job.id = id
        job.host = host
        return job
    }

    private func entry(_ id: JobID, priority: Int = 0, host: String? = nil) throws -> Entry {
        Entry(try job(id, priority: priority, host: host))
    }

    private func queue(concurrency: Int = 1_000_000, storeIsEmpty: Bool = true) -> ReadyQueue {
        ReadyQueue(settings: QueueSettings(name: "q", concurrency: concurrency), storeIsEmpty: storeIsEmpty)
    }

    private func position(_ id: JobID, _ priority: Int = 0) -> ReadyPosition {
        ReadyPosition(priority: priority, id: id)
    }

    /// The numbers of all that can be taken out.
    private func drain(_ queue: ReadyQueue, where isOpen: (String) -> Bool = { _ in true }) -> [JobID] {
        var ids: [JobID] = []
        while let entry = queue.popFirst(where: isOpen) { ids.append(entry.position.id) }
        return ids
    }

    // MARK: - Order

    @Test func jobs_startByPriority_thenByNumber() throws {
        let queue = queue()
        for (id, priority) in [(1, 0), (2, 5), (3, -5), (4, 5), (5, 0)] as [(JobID, Int)] {
            queue.insert(try entry(id, priority: priority, host: "h\(id % 2)"))
        }
        #expect(drain(queue) == [2, 4, 1, 5, 3])
        #expect(queue.isEmpty)
    }

    @Test func job_isPassedOver_whileItsHostIsClosed() throws {
        let queue = queue()
        queue.insert(try entry(1, host: "a"))
        queue.insert(try entry(2, host: "a"))
        queue.insert(try entry(3, host: "b"))
        queue.insert(try entry(4))
        #expect(drain(queue, where: { $0 != "a" }) == [3, 4])
        #expect(drain(queue, where: { _ in false }).isEmpty)
        #expect(!queue.isEmpty)
        #expect(drain(queue) == [1, 2])
    }

    @Test func job_withoutHost_waitsForNone() throws {
        let queue = queue()
        queue.insert(try entry(1))
        #expect(drain(queue, where: { _ in false }) == [1])
    }

    @Test func job_isInTheWindowOnce() throws {
        let queue = queue()
        for _ in 0..<3 { queue.insert(try entry(1)) }
        #expect(drain(queue) == [1])
        queue.insert(try entry(1))
        #expect(drain(queue) == [1], "it may come back")
    }

    @Test func removedJob_isNotGiven() throws {
        let queue = queue()
        for id in 1...3 { queue.insert(try entry(JobID(id), host: "h\(id)")) }
        queue.remove(2)
        queue.remove(9)
        #expect(drain(queue) == [1, 3])
        #expect(queue.isEmpty)
    }

    @Test func entry_keepsItsJob_unlessThatIsLarge() throws {
        var small = try job(1, host: "h")
        #expect(Entry(small).job == small && Entry(small).host == "h" && Entry(small).queue == "default")
        let spec = try JobSpecReader.spec(
            ["source": ["type": "value", "value": .string(String(repeating: "x", count: ReadyQueue.largeSpec))]],
            limits: JobLimits())
        small = Job(submitting: spec, owner: 1, at: Timestamp(milliseconds: 0))
        #expect(Entry(small).job == nil)
    }

    // MARK: - Places

    @Test func place_isFree_belowTheConcurrency_unlessSuspended() {
        let queue = queue(concurrency: 2)
        #expect(queue.hasFreePlace)
        queue.running = 1
        #expect(queue.hasFreePlace)
        queue.running = 2
        #expect(!queue.hasFreePlace)
        queue.settings.concurrency = 3
        #expect(queue.hasFreePlace)
        queue.settings.isSuspended = true
        #expect(!queue.hasFreePlace)
    }

    // MARK: - The window

    @Test func window_isTrimmed_whenItGrowsTooLarge() throws {
        let queue = queue()
        for id in 1...size * 2 { queue.insert(try entry(JobID(id))) }
        #expect(queue.horizon == nil)
        // One more: the last half is left to the store, and this one, too.
        queue.insert(try entry(JobID(size * 2 + 1)))
        #expect(queue.horizon == position(JobID(size)))
        queue.insert(try entry(JobID(size * 2 + 2), priority: 1))
        #expect(drain(queue) == [JobID(size * 2 + 2)] + (1...size).map(JobID.init))
        #expect(!queue.isEmpty, "the rest is behind the window")
    }

    @Test func window_keepsWhatIsUnderWay_whereverItStands() throws {
        let queue = queue()
        for id in 1...size * 2 { queue.insert(try entry(JobID(id))) }
        let late = Entry(position: position(9_000_000, -5), queue: "q", host: "h", job: nil, isUnderWay: true)
        queue.insert(late)
        queue.insert(try entry(JobID(size * 2 + 1)))
        #expect(queue.horizon == position(JobID(size)))
        queue.insert(Entry(position: position(9_000_001, -5), queue: "q", host: nil, job: nil, isUnderWay: true))
        #expect(drain(queue) == (1...size).map(JobID.init) + [9_000_000, 9_000_001])
    }

    @Test func window_takesWhatIsBeforeItsEnd_only() throws {
        let queue = queue(storeIsEmpty: false)
        #expect(queue.nextFetch { _ in false } == .more(after: nil))
        queue.fetched(.more(after: nil), try (1...size).map { try job(JobID($0), priority: 5) }, limit: size) { _ in
            false
        }
        #expect(queue.horizon == position(JobID(size), 5))
        queue.insert(try entry(5000, priority: 5))
        queue.insert(try entry(5001, priority: 4))
        queue.insert(try entry(5002, priority: 6))
        #expect(drain(queue) == [5002] + (1...size).map(JobID.init))
    }

    // MARK: - Fetching

    @Test func nothingIsFetched_whereTheStoreHasNothing() {
        let queue = queue(storeIsEmpty: true)
        #expect(queue.nextFetch { _ in true } == nil)
        #expect(queue.isEmpty)
    }

    @Test func more_isFetched_whenTheWindowRunsLow_onceAtATime() throws {
        let queue = queue(storeIsEmpty: false)
        #expect(!queue.isEmpty && !queue.isFetching)
        #expect(queue.nextFetch { _ in false } == .more(after: nil))
        #expect(queue.isFetching && queue.nextFetch { _ in false } == nil)
        queue.fetched(.more(after: nil), try (1...size).map { try job(JobID($0)) }, limit: size) { _ in false }
        #expect(!queue.isFetching && queue.nextFetch { _ in false } == nil, "it is full")
        for _ in 0..<size / 2 { _ = queue.popFirst { _ in true } }
        #expect(queue.nextFetch { _ in false } == nil)
        _ = queue.popFirst { _ in true }
        #expect(queue.nextFetch { _ in false } == .more(after: position(JobID(size))))
        queue.fetched(.more(after: position(JobID(size))), [try job(JobID(size + 1))], limit: size) { _ in false }
        #expect(queue.horizon == nil, "fewer than asked for is the end of the queue")
        #expect(drain(queue) == (size / 2 + 2...size + 1).map(JobID.init))
        #expect(queue.isEmpty)
    }

    @Test func fetch_leavesOut_whatTheEngineRuns() throws {
        let queue = queue(storeIsEmpty: false)
        _ = queue.nextFetch { _ in false }
        queue.fetched(.more(after: nil), try (1...5).map { try job($0) }, limit: size) { $0 % 2 == 0 }
        #expect(drain(queue) == [1, 3, 5])
    }

    @Test func fetch_doublesNothing_thatIsInTheWindow() throws {
        let queue = queue(storeIsEmpty: false)
        _ = queue.nextFetch { _ in false }
        queue.insert(Entry(position: position(3), queue: "q", host: nil, job: nil, isUnderWay: true))
        queue.fetched(.more(after: nil), try (1...5).map { try job($0) }, limit: size) { _ in false }
        #expect(drain(queue) == [1, 2, 3, 4, 5])
    }

    @Test func job_thatCameDuringAFetch_isFetchedWithTheNext() throws {
        let queue = queue(storeIsEmpty: false)
        _ = queue.nextFetch { _ in false }
        // Behind the window, so it is left to the store, which may have read before it was there.
        queue.insert(try entry(7))
        queue.fetched(.more(after: nil), [try job(1)], limit: size) { _ in false }
        #expect(queue.horizon == position(1), "it may not be taken for the end")
        #expect(queue.nextFetch { _ in false } == .more(after: position(1)))
        queue.fetched(.more(after: position(1)), [try job(7)], limit: size) { _ in false }
        #expect(drain(queue) == [1, 7])
        #expect(queue.isEmpty)
    }

    @Test func job_thatCameDuringAnEmptyFetch_isFetchedWithTheNext() throws {
        let queue = queue(storeIsEmpty: false)
        _ = queue.nextFetch { _ in false }
        queue.insert(try entry(7))
        queue.fetched(.more(after: nil), [], limit: size) { _ in false }
        #expect(queue.nextFetch { _ in false } == .more(after: nil))
        queue.fetched(.more(after: nil), [try job(7)], limit: size) { _ in false }
        #expect(drain(queue) == [7] && queue.isEmpty)
    }

    @Test func fetch_isTriedAgain_afterItFailed() throws {
        let queue = queue(storeIsEmpty: false)
        #expect(queue.nextFetch { _ in false } == .more(after: nil))
        queue.insert(try entry(7))
        queue.fetchFailed()
        #expect(queue.nextFetch { _ in false } == .more(after: nil))
        queue.fetched(.more(after: nil), [try job(7)], limit: size) { _ in false }
        #expect(drain(queue) == [7])
    }

    /// A queue whose window is full of jobs of these hosts, with more behind it.
    private func full(_ hosts: [String?]) throws -> ReadyQueue {
        let queue = queue(storeIsEmpty: false)
        _ = queue.nextFetch { _ in false }
        queue.fetched(
            .more(after: nil), try (1...size).map { try job(JobID($0), host: hosts[$0 % hosts.count]) }, limit: size
        ) { _ in false }
        return queue
    }

    @Test func othersAreFetched_whereAllInTheWindowWaitForHosts() throws {
        let queue = try full(["a", "b"])
        #expect(queue.nextFetch { $0 == "a" } == nil, "b can be asked")
        queue.running = queue.settings.concurrency
        #expect(queue.nextFetch { _ in true } == nil, "there is no place")
        queue.running = 0
        #expect(queue.nextFetch { _ in true } == .around(["a", "b"]))
        #expect(queue.nextFetch { _ in true } == nil)
        queue.fetched(.around(["a", "b"]), [try job(9000, host: "c"), try job(9001)], limit: 64) { _ in false }
        #expect(queue.horizon == position(JobID(size)), "they stand behind it, but the window ends where it did")
        #expect(drain(queue, where: { $0 == "c" }) == [9000, 9001])
        // What lies between is still fetched.
        #expect(drain(queue).count == size)
        #expect(queue.nextFetch { _ in false } == .more(after: position(JobID(size))))
    }

    @Test func othersAreNotFetched_whereAJobWaitsForNoHost() throws {
        let queue = try full(["a", nil])
        #expect(queue.nextFetch { _ in true } == nil)
    }

    // MARK: - Removal

    @Test func jobs_areNotLost_whereTheWindowIsTrimmedDuringAFetch() throws {
        let queue = try full([nil])
        for _ in 0..<size { _ = queue.popFirst { _ in true } }
        let fetch = try #require(queue.nextFetch { _ in false })
        #expect(fetch == .more(after: position(JobID(size))))
        // Meanwhile so many come in front of the window's end that its last half is left to the store.
        let urgent = (1...size * 2 + 1).map { JobID(10_000 + $0) }
        for id in urgent { queue.insert(try entry(id, priority: 1)) }
        let left = queue.horizon
        queue.fetched(fetch, [try job(JobID(size + 1))], limit: size) { _ in false }
        var seen = Set(drain(queue))
        while let fetch = queue.nextFetch(closed: { _ in false }) {
            guard case .more(let after) = fetch else { break }
            let stored = urgent.map { position($0, 1) } + [position(JobID(size + 1))]
            let rest = stored.filter { position in after.map { position > $0 } ?? true && !seen.contains(position.id) }
            queue.fetched(fetch, try rest.prefix(size).map { try job($0.id, priority: $0.priority) }, limit: size) {
                _ in false
            }
            seen.formUnion(drain(queue))
        }
        #expect(left == position(10_000 + JobID(size), 1))
        #expect(Set(urgent).subtracting(seen).isEmpty)
        #expect(seen.contains(JobID(size + 1)))
    }

    @Test func job_isGivenAsItIsNow_whereItWasRemovedAndCameBack() throws {
        let queue = queue()
        queue.insert(Entry(try job(1, label: "before")))
        queue.remove(1)
        queue.insert(Entry(try job(1, label: "now")))
        let first = queue.popFirst { _ in true }
        #expect(queue.popFirst { _ in true } == nil)
        #expect(first?.job?.spec.label == "now")
        let other = self.queue()
        other.insert(Entry(try job(1, host: "a")))
        other.remove(1)
        other.insert(Entry(try job(1, host: "b")))
        #expect(other.popFirst { $0 == "a" } == nil)
    }

    @Test func memory_isBounded_whereJobsComeAndAreRemoved() throws {
        let queue = queue()
        for id in 1...size * 8 {
            queue.insert(try entry(JobID(id), host: "h\(id)"))
            queue.remove(JobID(id))
        }
        let lanes = Mirror(reflecting: queue).children.first { $0.label == "lanes" }
        let count = try #require(lanes.map { Mirror(reflecting: $0.value).children.count })
        #expect(count <= size * 2)
    }
}
