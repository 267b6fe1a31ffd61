import JobModel
import Testing

@testable import JobCore

/// The window on an owner's ready jobs: what it keeps, what it leaves to the store, and what it asks for.
@Suite struct ReadyWindowTests {
    private typealias Entry = ReadyWindow.Entry
    private let size = ReadyWindow.size

    private func key(_ host: String?) -> ConcurrencyKey { ConcurrencyKey(host: host) }

    private func entry(_ id: JobID, priority: Int = 0, host: String? = nil, isPinned: Bool = false) -> Entry {
        Entry(ReadyPosition(priority: priority, id: id), key(host), parent: nil, job: nil, isPinned: isPinned)
    }

    private func entries(_ ids: ClosedRange<Int>, host: String? = nil) -> [Entry] {
        ids.map { entry(JobID($0), host: host) }
    }

    private func position(_ id: Int, _ priority: Int = 0) -> ReadyPosition {
        ReadyPosition(priority: priority, id: JobID(id))
    }

    /// The ids of all that can be popped.
    private func drain(_ window: ReadyWindow, where isOpen: (ConcurrencyKey) -> Bool = { _ in true }) -> [JobID] {
        var ids: [JobID] = []
        while let entry = window.first(where: isOpen) {
            window.pop(entry)
            ids.append(entry.position.id)
        }
        return ids
    }

    private func next(_ window: ReadyWindow, hasRoom: Bool = true, isOpen: (ConcurrencyKey) -> Bool = { _ in true })
        -> ReadyWindow.Request?
    {
        window.nextRequest(hasRoom: hasRoom, isOpen: isOpen)
    }

    private func receive(_ window: ReadyWindow, _ entries: [Entry], isLast: Bool? = nil) {
        window.received(entries, isLast: isLast ?? (entries.count < size), last: entries.last?.position)
    }

    /// A window that is full of jobs of these hosts, with more behind it.
    private func full(_ hosts: [String?]) -> ReadyWindow {
        let window = ReadyWindow(horizon: .start)
        _ = next(window)
        receive(window, (1...size).map { entry(JobID($0), host: hosts[$0 % hosts.count]) })
        return window
    }

    // MARK: - Order

    @Test func jobs_comeByPriority_thenById() {
        let window = ReadyWindow(horizon: .end)
        for (id, priority) in [(1, 0), (2, 5), (3, -5), (4, 5), (5, 0)] as [(JobID, Int)] {
            window.insert(entry(id, priority: priority, host: "h\(id % 2)"))
        }
        #expect(drain(window) == [2, 4, 1, 5, 3])
        #expect(window.isEmpty)
    }

    @Test func job_isPassedOver_whileItsKeyIsClosed() {
        let window = ReadyWindow(horizon: .end)
        for (id, host) in [(1, "a"), (2, "a"), (3, "b"), (4, nil)] as [(JobID, String?)] {
            window.insert(entry(id, host: host))
        }
        #expect(drain(window, where: { $0 != .host("a") }) == [3, 4])
        #expect(drain(window, where: { _ in false }).isEmpty)
        #expect(!window.isEmpty)
        #expect(window.waits(for: .host("a")) && !window.waits(for: .host("b")) && !window.waits(for: .none))
        #expect(drain(window) == [1, 2])
    }

    @Test func job_isInTheWindowOnce_untilItComesBack() {
        let window = ReadyWindow(horizon: .end)
        for _ in 0..<3 { window.insert(entry(1)) }
        #expect(drain(window) == [1])
        window.insert(entry(1))
        #expect(drain(window) == [1])
    }

    @Test func removedJob_isNotGiven() {
        let window = ReadyWindow(horizon: .end)
        for id in 1...3 { window.insert(entry(JobID(id), host: "h\(id)")) }
        window.remove(2)
        window.remove(9)
        #expect(!window.waits(for: .host("h2")))
        #expect(drain(window) == [1, 3])
        #expect(window.isEmpty)
    }

    @Test func job_isGivenAsItIsNow_whereItWasRemovedAndCameBack() {
        let window = ReadyWindow(horizon: .end)
        window.insert(entry(1, host: "a"))
        window.remove(1)
        window.insert(entry(1, host: "b"))
        #expect(drain(window, where: { $0 == .host("a") }).isEmpty)
        #expect(drain(window) == [1])
    }

    // MARK: - The window

    @Test func window_isTrimmed_whenItGrowsTooLarge() {
        let window = ReadyWindow(horizon: .end)
        for id in 1...size * 2 { window.insert(entry(JobID(id))) }
        #expect(window.horizon == .end)
        // One more: the last half is left to the store, and this one, too.
        window.insert(entry(JobID(size * 2 + 1)))
        #expect(window.horizon == .at(position(size)))
        window.insert(entry(JobID(size * 2 + 2), priority: 1))
        #expect(drain(window) == [JobID(size * 2 + 2)] + (1...size).map(JobID.init))
        #expect(!window.isEmpty, "the rest is behind the window")
    }

    @Test func window_keepsWhatIsPinned_whereverItStands() {
        let window = ReadyWindow(horizon: .end)
        for id in 1...size * 2 { window.insert(entry(JobID(id))) }
        window.insert(entry(9_000_000, priority: -5, host: "h", isPinned: true))
        window.insert(entry(JobID(size * 2 + 1)))
        #expect(window.horizon == .at(position(size)))
        window.insert(entry(9_000_001, priority: -5, isPinned: true))
        #expect(drain(window) == (1...size).map(JobID.init) + [9_000_000, 9_000_001])
    }

    @Test func window_neverReachesFarther_whenItIsTrimmed() {
        // Much was read around closed hosts and stands behind the horizon; in front of it only a little is left.
        let window = full(["a"])
        for host in ["b", "c"] {
            _ = next(window, isOpen: { _ in false })
            let first = host == "b" ? 50_000 : 60_000
            receive(window, entries(first + 1...first + size, host: host), isLast: false)
        }
        for id in 1...300 { window.remove(JobID(id)) }
        window.insert(entry(100_000, priority: 1))
        #expect(window.horizon == .at(position(size)), "what lies between was never read")
    }

    @Test func window_admitsOnlyWhatIsBeforeItsEnd() {
        let window = ReadyWindow(horizon: .start)
        #expect(next(window) == .more(after: nil))
        receive(window, (1...size).map { entry(JobID($0), priority: 5) })
        #expect(window.horizon == .at(position(size, 5)))
        window.insert(entry(5000, priority: 5))
        window.insert(entry(5001, priority: 4))
        window.insert(entry(5002, priority: 6))
        #expect(drain(window) == [5002] + (1...size).map(JobID.init))
    }

    // MARK: - Reading

    @Test func nothingIsRead_whereTheStoreHasNothing() {
        let window = ReadyWindow(horizon: .end)
        #expect(next(window) == nil)
        #expect(window.isEmpty)
    }

    @Test func more_isRead_whenTheWindowRunsLow_onceAtATime() {
        let window = ReadyWindow(horizon: .start)
        #expect(!window.isEmpty && window.request == nil)
        #expect(next(window) == .more(after: nil))
        #expect(window.request != nil && next(window) == nil)
        receive(window, entries(1...size))
        #expect(window.request == nil && next(window) == nil, "it is full")
        for _ in 0..<size / 2 { window.first { _ in true }.map(window.pop) }
        #expect(next(window) == nil)
        window.first { _ in true }.map(window.pop)
        #expect(next(window) == .more(after: position(size)))
        receive(window, entries(size + 1...size + 1))
        #expect(window.horizon == .end, "fewer than asked for is the end of the queue")
        #expect(drain(window) == (size / 2 + 2...size + 1).map(JobID.init))
        #expect(window.isEmpty)
    }

    @Test func read_endsWithItsLastRow_whereAllOfItWasLeftOut() {
        let window = ReadyWindow(horizon: .start)
        _ = next(window)
        // Every row was of a job that changed meanwhile.
        window.received([], isLast: false, last: position(size))
        #expect(window.horizon == .at(position(size)))
        #expect(next(window) == .more(after: position(size)))
    }

    @Test func read_doublesNothing_thatIsInTheWindow() {
        let window = ReadyWindow(horizon: .start)
        _ = next(window)
        window.insert(entry(3, isPinned: true))
        receive(window, entries(1...5))
        #expect(drain(window) == [1, 2, 3, 4, 5])
    }

    @Test func job_isInTheWindow_whereItCameDuringARead() {
        let window = ReadyWindow(horizon: .start)
        _ = next(window)
        // Behind the window, but what was read may have been read before it was there.
        window.insert(entry(7))
        window.insert(entry(8))
        window.remove(8)
        receive(window, entries(1...1))
        #expect(drain(window) == [1, 7])
        #expect(window.isEmpty)
    }

    @Test func job_isLeftToTheStore_whereItCameDuringAReadThatEndsBeforeIt() {
        let window = ReadyWindow(horizon: .start)
        _ = next(window)
        window.insert(entry(JobID(size + 7)))
        receive(window, entries(1...size))
        #expect(drain(window) == (1...size).map(JobID.init))
        #expect(next(window) == .more(after: position(size)))
    }

    @Test func read_isDoneAgain_whereTooManyCameMeanwhile() {
        let window = ReadyWindow(horizon: .start)
        _ = next(window)
        let ids = 1...size + 1
        for id in ids { window.insert(entry(JobID(id))) }
        receive(window, [])
        #expect(next(window) == .more(after: nil))
        receive(window, entries(1...size))
        #expect(drain(window) == (1...size).map(JobID.init))
        #expect(!window.isEmpty)
    }

    @Test func read_isTriedAgain_afterItFailed() {
        let window = ReadyWindow(horizon: .start)
        #expect(next(window) == .more(after: nil))
        window.insert(entry(7))
        window.readFailed()
        #expect(next(window) == .more(after: nil))
        receive(window, entries(7...7))
        #expect(drain(window) == [7])
    }

    @Test func jobs_areNotLost_whereTheWindowIsTrimmedDuringARead() {
        let window = full([nil])
        for _ in 0..<size { window.first { _ in true }.map(window.pop) }
        #expect(next(window) == .more(after: position(size)))
        // Meanwhile so many come in front of the window's end that its last half is left to the store.
        let urgent = (1...size * 2 + 1).map { position(10_000 + $0, 1) }
        for position in urgent { window.insert(entry(position.id, priority: 1)) }
        #expect(window.horizon == .at(position(10_000 + size, 1)))
        receive(window, entries(size + 1...size + 1))
        var seen = Set(drain(window))
        while case .more(let after) = next(window) {
            let stored = urgent + [position(size + 1)]
            let rest = stored.filter { position in after.map { position > $0 } ?? true && !seen.contains(position.id) }
            receive(window, rest.sorted().prefix(size).map { entry($0.id, priority: $0.priority) })
            seen.formUnion(drain(window))
        }
        #expect(Set(urgent.map(\.id)).subtracting(seen).isEmpty)
        #expect(seen.contains(JobID(size + 1)))
    }

    // MARK: - Reading around closed hosts

    @Test func othersAreRead_whereAllInTheWindowWaitForHosts() {
        let window = full(["a", "b"])
        #expect(next(window, isOpen: { $0 != .host("a") }) == nil, "b can be asked")
        #expect(next(window, hasRoom: false, isOpen: { _ in false }) == nil, "there is no slot")
        #expect(next(window, isOpen: { _ in false }) == .around(["a", "b"], after: position(size)))
        #expect(next(window, isOpen: { _ in false }) == nil)
        receive(window, [entry(9000, host: "c"), entry(9001)])
        #expect(window.horizon == .at(position(size)), "they stand behind it, but the window ends where it did")
        #expect(drain(window, where: { $0 == .host("c") || $0 == .none }) == [9000, 9001])
        // What lies between is still read.
        #expect(drain(window).count == size)
        #expect(next(window) == .more(after: position(size)))
    }

    @Test func othersAreNotRead_whereAJobWaitsForNoHost() {
        #expect(next(full(["a", nil]), isOpen: { $0 == .none }) == nil)
    }

    @Test func othersAreNotReadAgain_whereThereWereNone() {
        let window = full(["a", "b"])
        #expect(next(window, isOpen: { _ in false }) == .around(["a", "b"], after: position(size)))
        receive(window, [])
        #expect(next(window, isOpen: { _ in false }) == nil, "nothing can have come meanwhile")
        // One of a closed host changes nothing, one of another does.
        window.insert(entry(9000, host: "a"))
        #expect(next(window, isOpen: { _ in false }) == nil)
        window.insert(entry(9001, host: "c"))
        #expect(next(window, isOpen: { _ in false }) == .around(["a", "b"], after: position(size)))
        receive(window, [])
        // Neither does a closed host more in the window, but one that opens does: its jobs were left out.
        window.insert(entry(9002, priority: 1, host: "d"))
        _ = drain(window, where: { $0 == .host("b") })
        #expect(next(window, isOpen: { _ in false }) == nil)
        #expect(next(window, isOpen: { $0 == .host("b") }) == .around(["a", "d"], after: position(size)))
    }

    @Test func others_areFoundBehindManyClosedHosts_withAWindowThatIsBounded() {
        let window = full(["a"])
        var last = size
        for host in 1...40 {
            guard case .around(let hosts, let after) = next(window, isOpen: { _ in false }) else {
                Issue.record("The search ended at host \(host).")
                return
            }
            #expect(after == position(last) && hosts.count == host)
            let rows = entries(last + 1...last + ReadyWindow.aroundSize, host: "h\(host)")
            window.received(rows, isLast: false, last: rows.last?.position)
            last += ReadyWindow.aroundSize
            #expect(window.count <= size * 2)
        }
        _ = next(window, isOpen: { _ in false })
        receive(window, [entry(90_000, host: "open")])
        #expect(drain(window, where: { $0 == .host("open") }) == [90_000])
    }

    @Test func othersAreReadOn_behindThoseThatRun() {
        let window = full(["a"])
        _ = next(window, isOpen: { _ in false })
        // As many rows as were asked for, all of jobs at work.
        window.received([], isLast: false, last: position(7000))
        #expect(next(window, isOpen: { _ in false }) == .around(["a"], after: position(7000)))
        receive(window, [entry(7001, host: "c")])
        #expect(drain(window, where: { $0 == .host("c") }) == [7001])
    }

    // MARK: - Memory

    @Test func memory_isBounded_whereJobsComeAndAreRemoved() throws {
        let window = ReadyWindow(horizon: .end)
        for id in 1...size * 8 {
            window.insert(entry(JobID(id), host: "h\(id)"))
            window.remove(JobID(id))
        }
        let partitions = Mirror(reflecting: window).children.first { $0.label == "partitions" }
        let count = try #require(partitions.map { Mirror(reflecting: $0.value).children.count })
        #expect(count <= size * 2)
    }
}
