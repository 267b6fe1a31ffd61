import JobModel
import Testing

@testable import JobCore

/// Jobs that wait in the middle of their chains: in the store only, and going on as if they had been in memory.
@Suite struct RestingTests {
    private static func timer(_ seconds: Double) -> String {
        #"{"source":{"type":"timer","seconds":\#(seconds)}}"#
    }

    /// A value, then a timer, then a request.
    private static let waiting =
        #"{"source":{"type":"value","value":[1,2]},"then":[{"then":\#(timer(100))},{"then":\#(step("a"))}]}"#

    private func resting(_ driver: CoreDriver) -> Int { driver.core.inspection.restingJobs }
    private func resident(_ driver: CoreDriver) -> Int { driver.core.inspection.residentJobs }

    @Test func timer_isInTheStoreOnly_andGoesOn() throws {
        let driver = CoreDriver()
        let id = try driver.submit(Self.waiting)
        #expect(resident(driver) == 0 && resting(driver) == 1 && driver.state(id) == .running)
        driver.advance(100)
        #expect(driver.atWork == [id] && resting(driver) == 0)
        driver.endAll()
        #expect(driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test func jobThatWaitsForAHost_isInTheStoreOnly_andGoesOn() throws {
        let driver = CoreDriver { $0.perHost = 1 }
        let first = try driver.submit(url("b"))
        let id = try driver.submit(url("a", #""then":[{"then":\#(step("b"))}]"#))
        try driver.end(id)
        #expect(resident(driver) == 1 && resting(driver) == 1 && driver.core.inspection.slots == 1)
        driver.forgetEvents()
        try driver.end(first)
        #expect(driver.atWork == [id] && driver.started.first?.link == 1)
        driver.endAll()
        driver.expectQuiet()
    }

    @Test(arguments: [true, false])
    func restingJobs_areResumed_andRestAgain(_ isCrash: Bool) throws {
        let driver = CoreDriver { $0.perHost = 1 }
        let timer = try driver.submit(Self.waiting)
        let first = try driver.submit(url("b"))
        let parked = try driver.submit(url("c", #""then":[{"then":\#(step("b"))}]"#))
        try driver.end(parked)
        #expect(resting(driver) == 2)
        if isCrash { driver.crash() } else { driver.restart() }
        #expect(resting(driver) == 1, "what waits for a turn is queued again")
        #expect(driver.state(parked) == .queued && driver.state(timer) == .running && driver.atWork == [first])
        driver.endAll()
        driver.advance(100)
        driver.endAll()
        #expect(driver.store.all.allSatisfy { $0.state == .succeeded })
        driver.expectQuiet()
    }

    @Test func takingOver_isPageByPage() throws {
        let driver = CoreDriver()
        for _ in 0..<600 { try driver.submit(Self.timer(100)) }
        driver.forgetEvents()
        driver.holdsReads = true
        driver.crash()
        var most = 0
        for _ in 0..<4 {
            #expect(!driver.hasStarted)
            driver.releaseReads()
            most = max(most, resident(driver))
        }
        #expect(driver.hasStarted && resting(driver) == 600 && most == 0)
        driver.holdsReads = false
        driver.releaseReads()
        driver.advance(100)
        #expect(driver.store.all.allSatisfy { $0.state == .succeeded })
        driver.expectQuiet()
    }

    @Test func timersThatEndedWhileNoDaemonWasThere_areInMemory_aFewAtATime() throws {
        let driver = CoreDriver()
        let text = String(repeating: "x", count: 400 << 10)
        // What came into the failed link is kept for a retry.
        let spec =
            #"{"source":{"type":"value","value":"\#(text)"},"then":[{"then":{"throw":{"message":"x"}}},{"fail":\#(Self.timer(100))}]}"#
        for _ in 0..<40 { try driver.submit(spec) }
        #expect(resting(driver) == 40)
        driver.holdsReads = true
        driver.stopAndWait(200)
        var most = 0
        while !driver.heldReads.isEmpty {
            driver.releaseReads()
            most = max(most, resident(driver))
        }
        #expect(most < 10, "\(most)")
        #expect(driver.store.all.allSatisfy { $0.state == .succeeded })
        driver.holdsReads = false
        driver.advance(1)
        driver.expectQuiet()
    }

    @Test func daemonThatIsStopped_beforeItHasTakenOver_saysSo() throws {
        let driver = CoreDriver()
        try driver.submit(Self.timer(100))
        driver.holdsReads = true
        driver.crash()
        driver.releaseReads()
        driver.feed(.stop)
        #expect(!driver.hasStarted && driver.startFailure != nil)
        driver.releaseReads()
        #expect(!driver.hasStarted)
        driver.holdsReads = false
        driver.restart()
        driver.advance(100)
        #expect(driver.stored(1)?.state == .succeeded)
    }

    @Test func jobsThatAreResumed_areNotThere_whereTheyCannotBeRead() throws {
        let driver = CoreDriver()
        try driver.submit(Self.timer(100))
        driver.failsRead = { if case .firstJobs = $0 { true } else { false } }
        driver.crash()
        #expect(!driver.hasStarted && driver.startFailure?.code == .read)
    }

    @Test func restingJob_isCancelled_whatever_itWaitsFor() throws {
        let driver = CoreDriver { $0.perHost = 1 }
        let timer = try driver.submit(Self.waiting)
        try driver.submit(url("b"))
        let parked = try driver.submit(url("a", #""then":[{"then":\#(step("b"))}]"#))
        try driver.end(parked)
        for id in [timer, parked] {
            guard case .job(let view) = driver.answer(to: driver.ask(.cancel(id))) else {
                Issue.record("no answer")
                continue
            }
            #expect(view.job.state == .cancelled)
        }
        #expect(resting(driver) == 0 && driver.core.inspection.timers == 1)
        driver.endAll()
        driver.advance(100)
        driver.expectQuiet()
    }

    @Test func cancelledJob_goesOnWaiting_atAFinallyLink() throws {
        let driver = CoreDriver { $0.perHost = 1 }
        let timer = try driver.submit(
            #"{"source":{"type":"value","value":1},"then":[{"finally":\#(Self.timer(100))},{"then":\#(step("c"))}]}"#)
        try driver.submit(url("b"))
        let parked = try driver.submit(url("a", #""then":[{"finally":\#(step("b"))}]"#))
        try driver.end(parked)
        for id in [timer, parked] { driver.ask(.cancel(id)) }
        #expect(resting(driver) == 2 && resident(driver) == 1)
        driver.endAll()
        driver.advance(100)
        #expect(driver.store.all.map(\.state) == [.cancelled, .succeeded, .cancelled])
        #expect(driver.open.isEmpty, "no link behind it runs")
        driver.expectQuiet()
    }

    @Test func childWhoseListIsOver_doesNotGoOn_beforeItIsStopped() throws {
        let driver = CoreDriver()
        let id = try driver.submit(
            #"{"source":{"type":"list","mode":"first","jobs":[\#(url("b")),\#(Self.waiting)]}}"#)
        driver.advance(99)
        #expect(resting(driver) == 1)
        driver.holdsReads = true
        try driver.end(id + 1)
        // Its time has come, and it is being read to be cancelled.
        driver.advance(2)
        driver.releaseReads { if case .firstJobs = $0 { true } else { false } }
        #expect(driver.open.isEmpty)
        driver.holdsReads = false
        driver.releaseReads()
        #expect(driver.stored(id + 2)?.state == .cancelled && driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test func childAtAFinallyLink_whoseListIsOver_runsNoLinkBehindIt() throws {
        let driver = CoreDriver()
        let child =
            #"{"source":{"type":"value","value":1},"then":[{"finally":\#(Self.timer(100))},{"then":\#(Self.timer(50))}]}"#
        let id = try driver.submit(#"{"source":{"type":"list","mode":"first","jobs":[\#(url("b")),\#(child)]}}"#)
        driver.advance(99)
        #expect(resting(driver) == 1)
        driver.holdsReads = true
        try driver.end(id + 1)
        // Its time has come, and it is read for that before it is read to be cancelled.
        driver.advance(2)
        var count = 0
        driver.releaseReads {
            if case .firstJobs = $0 { count += 1 }
            return count == 2
        }
        driver.holdsReads = false
        driver.releaseReads()
        #expect(driver.stored(id + 2)?.link == 1)
        #expect(driver.stored(id + 2)?.state == .cancelled && driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test func runningJobs_areListed_alsoThoseThatRest() throws {
        let driver = CoreDriver()
        var ids: [JobID] = []
        for index in 0..<200 {
            ids.append(try driver.submit(index.isMultiple(of: 20) ? url("h\(index)") : Self.timer(100)))
        }
        try driver.submit(url("z", #""delay":5"#))
        var filter = JobFilter()
        filter.states = [.running]
        for order in [JobFilter.Order.oldest, .newest] {
            filter.order = order
            filter.limit = 70
            filter.after = nil
            var listed: [JobID] = []
            repeat {
                guard case .page(let views, let next) = driver.answer(to: driver.ask(.list(filter))) else { break }
                #expect(views.count == 70 || next == nil)
                listed += views.map(\.job.id)
                filter.after = next
            } while filter.after != nil
            #expect(listed == (order == .oldest ? ids : ids.reversed()))
        }
    }

    @Test func manyTimersAtOnce_areReadAFewAtATime() throws {
        let driver = CoreDriver()
        for _ in 0..<300 { try driver.submit(Self.timer(100)) }
        driver.holdsWrites = true
        driver.advance(100)
        let pages = driver.reads.compactMap { if case .firstJobs(let ids, nil) = $0 { ids.count } else { nil } }
        #expect(pages.reduce(0, +) == 300 && pages.allSatisfy { $0 <= 64 })
        driver.holdsWrites = false
        driver.releaseWrites()
        #expect(driver.store.all.allSatisfy { $0.state == .succeeded })
        driver.expectQuiet()
    }

    @Test func timers_endLater_whereTheyCannotBeRead() throws {
        let driver = CoreDriver()
        let id = try driver.submit(Self.timer(100))
        driver.failsRead = { if case .firstJobs = $0 { true } else { false } }
        driver.advance(105)
        #expect(driver.state(id) == .running)
        driver.failsRead = { _ in false }
        driver.advance(5)
        #expect(driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test func timerThatCannotBeRead_letsTheOthersEnd() throws {
        let driver = CoreDriver()
        var ids: [JobID] = []
        for _ in 0..<100 { ids.append(try driver.submit(Self.timer(100))) }
        let unreadable = ids.remove(at: 40)
        driver.failsRead = { if case .firstJobs(let ids, nil) = $0 { ids.contains(unreadable) } else { false } }
        driver.advance(100)
        for _ in 0..<8 { driver.advance(1) }
        #expect(ids.allSatisfy { driver.stored($0)?.state == .succeeded })
        #expect(driver.state(unreadable) == .running)
        driver.failsRead = { _ in false }
        driver.advance(10)
        #expect(driver.stored(unreadable)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test func nothingMoreIsTaken_whileVeryManyWait() throws {
        let driver = CoreDriver { $0.limits.queuedJobsPerUser = 5 }
        for _ in 0..<5 { try driver.submit(Self.timer(100)) }
        let refused = try driver.submitted(driver.requestSubmit(url()))
        guard case .failure(let error)? = refused.first else { return #expect(Bool(false), "it is taken") }
        #expect(error.code == .busy(retryAfter: 1))
        try driver.submit(url("b"), as: .two)
        driver.advance(100)
        try driver.submit(url())
    }

    @Test func nestedLists_areOpen_forSoMuchMemoryAtEachDepth() throws {
        let driver = CoreDriver()
        let text = String(repeating: "x", count: 200 << 10)
        let id = try driver.submit(
            #"{"source":{"type":"each","in":[0,1,2,3,4,5],"job":{"source":{"type":"value","value":"{{item}}\#(text)"},"then":[{"then":{"source":{"type":"list","jobs":[\#(url("a"))]}}}]}}}"#
        )
        for left in (1...4).reversed() {
            #expect(driver.core.inspection.joins == 3, "the list itself, and those that begin within 512 KiB")
            #expect(resting(driver) == left)
            try driver.end(#require(driver.atWork.first))
        }
        driver.endAll()
        #expect(driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test func listsThatWaitedToBeOpen_waitAfterARestart_whereAnEarlierLinkMadeChildren() throws {
        let driver = CoreDriver()
        let text = String(repeating: "x", count: 900 << 10)
        for name in "abcdefghijkl" {
            try driver.submit(
                #"{"source":{"type":"list","jobs":[{"source":{"type":"value","value":1}}]},"then":[{"then":\#(Self.timer(10))},{"then":{"source":{"type":"value","value":"\#(text)"}}},{"then":{"source":{"type":"list","jobs":[\#(url(String(name)))]}}}]}"#
            )
        }
        driver.advance(10)
        let open = driver.core.inspection.joins
        #expect(open > 1 && open < 12 && resting(driver) == 12 - open, "\(open)")
        driver.crash()
        #expect(driver.core.inspection.joins == open && resting(driver) == 12 - open)
        driver.endAll()
        #expect(driver.store.all.allSatisfy { $0.state == .succeeded })
        driver.expectQuiet()
    }

    /// Whatever wakes many of them together, they are in memory a few at a time.
    @Test(arguments: [false, true])
    func largeJobs_areStopped_aFewAtATime(_ isOverdue: Bool) throws {
        let driver = CoreDriver()
        let text = String(repeating: "x", count: 400 << 10)
        let child = #"{"source":{"type":"value","value":"{{item}}\#(text)"},"then":[{"then":\#(Self.timer(100))}]}"#
        let items = (0..<60).map(String.init).joined(separator: ",")
        let deadline = isOverdue ? #","deadline":50"# : ""
        let id = try driver.submit(
            #"{"source":{"type":"each","in":[\#(items)],"job":{\#(child.dropFirst().dropLast())\#(deadline)}}}"#)
        #expect(resting(driver) == 60 && resident(driver) == 1)
        driver.holdsWrites = true
        if isOverdue { driver.advance(50) } else { driver.ask(.cancel(id)) }
        var most = 0
        repeat {
            most = max(most, resident(driver))
            driver.releaseWrites(1)
            driver.advance(isOverdue ? 0.1 : 0.001)
        } while !driver.heldWrites.isEmpty
        #expect(most > 1 && most < 30, "\(most)")
        driver.holdsWrites = false
        driver.advance(2)
        #expect(resting(driver) == 0 && driver.store.all.allSatisfy { $0.state.isTerminal })
        driver.expectQuiet()
    }
}
