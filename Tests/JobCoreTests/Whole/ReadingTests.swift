import JobModel
import Testing

@testable import JobCore

/// What is read from the store is old: what comes back after a job changed must not be believed, and what was not known yet
/// can be in it.
@Suite struct ReadingTests {
    private static let large = String(repeating: "r", count: 3000)

    /// A job that is read when its turn comes.
    private func largeJob(_ host: String = "a") -> String {
        url(host, #""then":[{"then":{"return":"\#(Self.large)"}}]"#)
    }

    private func isReady(_ read: StoreRead) -> Bool { if case .ready = read { true } else { false } }
    private func isJobs(_ read: StoreRead) -> Bool { if case .jobs = read { true } else { false } }

    @Test func job_startsOnce_whereAReadFoundItBeforeItsSubmissionWasAnswered() throws {
        let driver = CoreDriver()
        driver.ask(.watch(WatchScope(.all), 7))
        // The queue has more behind its window than it knows of.
        driver.core.scheduler.expectStored(queue: "default", owner: 1)
        driver.holdsReads = true
        driver.feed(.time)
        driver.holdsWrites = true
        let request = try driver.requestSubmit(url())
        driver.commitWrites()
        driver.releaseReads(isLate: true)
        #expect(driver.atWork == [1], "it is stored, and may start")
        driver.holdsReads = false
        driver.holdsWrites = false
        driver.releaseWrites()
        #expect(try driver.submitted(request)[0].get().job == 1)
        driver.releaseReads()
        driver.endAll()
        #expect(driver.started.count == 1)
        #expect(driver.states(of: 1, to: 7) == [.running, .succeeded])
        driver.expectQuiet()
    }

    @Test func child_startsOnce_whereAReadFoundItBeforeItsListKnewOfIt() throws {
        let driver = CoreDriver()
        driver.core.scheduler.expectStored(queue: "default", owner: 1)
        driver.holdsReads = true
        let id = try driver.submit(
            #"{"source":{"type":"value","value":[1,2]},"then":[{"then":{"source":{"type":"each","in":"{{input}}","job":\#(url())}}}]}"#
        )
        driver.releaseReads(where: isReady)
        driver.core.scheduler.expectStored(queue: "default", owner: 1)
        driver.holdsReads = false
        driver.releaseReads()
        #expect(driver.store.children(of: id).count == 2)
        driver.endAll()
        #expect(driver.stored(id)?.state == .succeeded && driver.started.count == 2)
        driver.expectQuiet()
    }

    @Test func children_startOnce_whereTheyAreReadAheadOfTheAnswer() throws {
        let driver = CoreDriver()
        driver.holdsWrites = true
        _ = try driver.requestSubmit(#"{"source":{"type":"list","jobs":[\#(url("a")),\#(url("b"))]}}"#)
        driver.releaseWrites()
        // The children are stored, and their list is not told.
        driver.commitWrites()
        driver.holdsReads = true
        let window = driver.core.scheduler
        for id in 2...3 as ClosedRange<JobID> {
            let job = try #require(driver.stored(id))
            window.insert(
                ReadyWindow.Entry(
                    ReadyPosition(priority: 0, id: id), ConcurrencyKey(job), parent: job.parent, job: job,
                    isPinned: false), queue: "default", owner: 1)
        }
        driver.feed(.time)
        #expect(driver.atWork == [2, 3])
        driver.holdsReads = false
        driver.holdsWrites = false
        driver.releaseReads()
        driver.releaseWrites()
        driver.endAll()
        #expect(driver.stored(1)?.state == .succeeded && driver.started.count == 2)
        driver.expectQuiet()
    }

    @Test func job_isNotLost_whereItLeftTheMemoryWhileAnotherReadIsOpen() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 1 }
        let id = try driver.submit(largeJob())
        driver.holdsReads = true
        driver.crash()
        driver.releaseReads()
        // A read stays open for long: what left meanwhile is remembered.
        let list = driver.ask(.list(JobFilter()), as: .two)
        for _ in 0..<5 { driver.releaseReads { [self] in isReady($0) || isJobs($0) } }
        #expect(driver.atWork == [id])
        driver.holdsReads = false
        driver.releaseReads()
        #expect(driver.answer(to: list) != nil)
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func job_startsOnce_whereItIsRetriedWhileItsTurnIsRead() throws {
        let driver = CoreDriver()
        driver.holdsReads = true
        let id = try driver.submit(largeJob())
        #expect(driver.core.inspection.slots == 1)
        let held = driver.heldReads.count
        // It is cancelled and retried before the read of its turn comes back.
        let cancel = driver.ask(.cancel(id))
        driver.releaseReads(where: { [held] _ in held > 0 && driver.answer(to: cancel) == nil })
        driver.ask(.retry(id, from: .start))
        driver.holdsReads = false
        driver.releaseReads()
        driver.endAll()
        #expect(driver.started.count <= 2 && driver.open.isEmpty)
        driver.expectQuiet()
    }

    @Test func turn_isTakenUpLater_whereItsJobCannotBeRead() throws {
        let driver = CoreDriver()
        driver.failsRead = { if case .jobs = $0 { true } else { false } }
        let id = try driver.submit(largeJob())
        #expect(driver.started.isEmpty && driver.core.inspection.slots == 0)
        driver.advance(5)
        #expect(driver.core.inspection.slots == 0)
        driver.failsRead = { _ in false }
        driver.advance(1)
        #expect(driver.atWork == [id])
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func largeListsThatWait_areNotRead_andTakeNoTurnsOfTheJobsBehindThem() throws {
        let driver = CoreDriver {
            $0.openLists = 1
            $0.queues[0].concurrency = 3
        }
        let list = #"{"source":{"type":"list","jobs":[\#(url("a"))]},"then":[{"then":{"return":"\#(Self.large)"}}]}"#
        let open = try driver.submit(list)
        for _ in 0..<(ReadyWindow.size + 100) { try driver.submit(list) }
        let other = try driver.submit(url("b"), as: .two)
        let last = try driver.submit(url("b"))
        driver.forgetEvents()
        driver.restart()
        #expect(driver.stored(open)?.state == .running)
        // What is behind the window and waits for nothing is found at once, without a look at what waits.
        #expect(driver.atWork == [driver.store.children(of: open)[0].id, other, last])
        #expect(driver.reads.count(where: isJobs) < 10)
    }

    @Test func manyNamedJobs_areReadInParts_soThatOthersHaveTheirTurns() throws {
        let driver = CoreDriver()
        let ids = try (0..<200).map { _ in try driver.submit(#"{"source":{"type":"value","value":1}}"#) }
        driver.forgetEvents()
        #expect(driver.answer(to: driver.ask(.jobs(ids)))?.jobs?.map(\.job.id) == ids)
        let rows = driver.reads.map { if case .firstJobs(let asked, _) = $0 { asked.count } else { 0 } }
        #expect(rows == [64, 64, 64, 8])
    }

    @Test func longPage_isReadInParts_soThatOthersHaveTheirTurns() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 1 }
        let ids = try (0..<300).map { _ in try driver.submit(url()) }
        driver.forgetEvents()
        var filter = JobFilter()
        filter.limit = 1000
        let answer = driver.answer(to: driver.ask(.list(filter)))
        #expect(answer?.page?.jobs.map(\.job.id) == ids.reversed())
        let rows = driver.reads.map { if case .list(let filter) = $0 { filter.limit } else { 0 } }
        #expect(rows.count >= 5 && rows.allSatisfy { 1...64 ~= $0 }, "\(rows)")
    }

    @Test func queue_goesOn_whereItsReadyJobsCouldNotBeRead() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 1 }
        for _ in 0..<3 { try driver.submit(url()) }
        driver.failsRead = { if case .ready = $0 { true } else { false } }
        driver.restart()
        driver.advance(3)
        #expect(driver.atWork.isEmpty)
        driver.failsRead = { _ in false }
        driver.advance(1)
        driver.endAll()
        #expect(driver.store.all.allSatisfy { $0.state == .succeeded })
        driver.expectQuiet()
    }

    @Test func times_areReadAgain_whereTheyCouldNotBeRead() throws {
        let driver = CoreDriver()
        let due = try driver.submit(url("a", #""delay":10"#))
        let overdue = try driver.submit(url("b", #""deadline":10"#))
        driver.failsRead = { read in
            switch read {
            case .due, .overdue, .times: true
            default: false
            }
        }
        driver.advance(12)
        #expect(driver.atWork == [overdue])
        driver.failsRead = { _ in false }
        driver.advance(2)
        #expect(driver.atWork == [due] && driver.stored(overdue)?.carried?.kind == .deadline)
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func requests_fail_whereTheirRowsCannotBeRead() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url())
        driver.endAll()
        driver.failsRead = { _ in true }
        var below = JobFilter()
        below.parent = id
        for request in [
            CoreRequest.job(id), .list(JobFilter()), .list(below), .wait([id], timeout: 5), .cancel(id), .remove(id),
            .retry(id, from: .start), .result(id), .watch(WatchScope(.jobs([id])), 1), .watch(WatchScope(.all), 2),
            .watch(WatchScope(.tag("t"), includesChildren: true), 3),
        ] {
            #expect(driver.code(driver.ask(request)) == .storage, "\(request)")
        }
        #expect(driver.core.inspection.subscriptions == 0)
        driver.failsRead = { _ in false }
        driver.expectQuiet()
    }

    @Test func start_fails_whereTheStateCannotBeRead() {
        let driver = CoreDriver(starts: false)
        driver.failsRead = { _ in true }
        driver.start()
        #expect(!driver.hasStarted)
    }

    @Test func core_doesNotReadOnAndOn_whereAllWaitForTheirHost() throws {
        let driver = CoreDriver()
        let jobs = try (0..<1100).map { _ in try driver.new(url("a")) }
        driver.ask(.submit(jobs))
        driver.restart()
        #expect(driver.atWork.count == 6)
        driver.forgetEvents()
        for _ in 0..<10 { driver.feed(.time) }
        #expect(driver.reads.isEmpty, "nothing changed meanwhile")
        let other = try driver.submit(url("b"))
        #expect(driver.atWork.contains(other), "it stands behind all of the others")
        driver.endAll()
        #expect(driver.store.all.allSatisfy { $0.state == .succeeded })
        driver.expectQuiet()
    }

    @Test func listing_showsJobsAsTheyAreNow() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 2 }
        let ids = try (0..<5).map { _ in try driver.submit(url()) }
        let later = try driver.submit(url("a", #""delay":60,"tags":["t"]"#))
        func list(_ states: Set<JobState>, limit: Int = 100, after: JobID? = nil) -> (ids: [JobID], next: JobID?) {
            var filter = JobFilter()
            filter.states = states
            filter.order = .oldest
            filter.limit = limit
            filter.after = after
            guard case .page(let page, let next) = driver.answer(to: driver.ask(.list(filter))) else {
                return ([], nil)
            }
            return (page.map(\.job.id), next)
        }
        #expect(list([.running]) == (Array(ids[0..<2]), nil))
        #expect(list([.queued]) == (Array(ids[2...]), nil))
        #expect(list([.queued], limit: 2) == ([ids[2], ids[3]], ids[3]))
        #expect(list([.queued], limit: 2, after: ids[3]) == ([ids[4]], nil))
        #expect(list([.running, .scheduled]) == ([ids[0], ids[1], later], nil))
        #expect(list([.running], limit: 1) == ([ids[0]], ids[0]))
        #expect(list([]).ids == ids + [later])
        try driver.end(ids[0])
        #expect(list([.succeeded]).ids == [ids[0]] && list([.running]).ids == [ids[1], ids[2]])
    }

    @Test func listing_findsWhatWaitsForItsTurnAgain_afterACrash() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 2 }
        let ids = try (0..<2).map { _ in try driver.submit(url("a", #""then":[{"then":\#(step("b"))}]"#)) }
        for id in ids { try driver.end(id) }
        driver.settings.queues[0].concurrency = 1
        driver.crash()
        var filter = JobFilter()
        filter.states = [.queued]
        guard case .page(let page, _) = driver.answer(to: driver.ask(.list(filter))) else {
            return #expect(Bool(false))
        }
        #expect(driver.atWork == [ids[0]] && page.map(\.job.id) == [ids[1]])
    }

    // MARK: - Large jobs

    /// So many finished jobs with results of half a page.
    private func large(_ driver: CoreDriver, _ count: Int) throws -> [JobID] {
        let half = JSON.string(String(repeating: "x", count: Int(StoredJobPage.largest) / 2 - 2))
        return try (0..<count).map { _ in
            let id = try driver.submit(url())
            try driver.end(id, .success(half))
            return id
        }
    }

    @Test func manyLargeJobs_areReadInPages_andToldWithoutTheirResults() throws {
        let driver = CoreDriver { $0.storedPerUser = 1 << 40 }
        let ids = try large(driver, 7)
        let before = driver.reads.count
        guard case .jobs(let views) = driver.answer(to: driver.ask(.jobs(ids.reversed()))) else {
            return #expect(Bool(false))
        }
        #expect(views.map(\.job.id) == ids.reversed())
        #expect(views.allSatisfy { ($0.job.carried?.json.size ?? .max) < 50 && $0.job.state == .succeeded })
        #expect(views.allSatisfy { $0.json(.brief)["resultSize"]?.int == Int(StoredJobPage.largest) / 2 })
        #expect(driver.reads.count - before >= 4, "two of them fill a page")
        // One by itself is told whole.
        guard case .job(let single) = driver.answer(to: driver.ask(.wait([ids[0]], timeout: nil))) else {
            return #expect(Bool(false))
        }
        #expect(single.job.carried?.json.size ?? 0 > Int(StoredJobPage.largest) / 2)
        guard case .watching(let watched, _) = driver.answer(to: driver.ask(.watch(WatchScope(.jobs(ids)), 1))) else {
            return #expect(Bool(false))
        }
        #expect(watched.map(\.job.id) == ids && watched.allSatisfy { ($0.job.carried?.json.size ?? .max) < 50 })
        var filter = JobFilter()
        filter.order = .oldest
        guard case .page(let page, let next) = driver.answer(to: driver.ask(.list(filter))) else {
            return #expect(Bool(false))
        }
        #expect(page.map(\.job.id) == Array(ids[..<2]) && next == ids[1])
        #expect(page.allSatisfy { ($0.job.carried?.json.size ?? .max) < 50 })
    }

    @Test func manyLargeJobs_areToldAsTheyAre_whenTheyChangeBetweenPages() throws {
        let driver = CoreDriver {
            $0.storedPerUser = 1 << 40
            $0.queues[0].concurrency = 1
        }
        let waiting = try driver.submit(url("a", #""delay":60"#))
        let removed = try driver.submit(url("a", #""delay":60"#))
        let ids = [waiting] + (try large(driver, 5))
        driver.holdsReads = true
        let request = driver.ask(.watch(WatchScope(.jobs(ids)), 1))
        let lost = driver.ask(.watch(WatchScope(.jobs([removed] + ids)), 2))
        // The first page is read while it waits; it is over before the second one is.
        driver.releaseReads()
        driver.holdsReads = false
        driver.ask(.cancel(waiting))
        driver.ask(.cancel(removed))
        driver.ask(.remove(removed))
        #expect(driver.stored(waiting)?.state == .cancelled && driver.stored(removed) == nil)
        driver.releaseReads()
        guard case .watching(let views, _) = driver.answer(to: request) else { return #expect(Bool(false)) }
        #expect(views.map(\.job.id) == ids && views[0].job.state == .cancelled)
        #expect(driver.code(lost) == .notFound)
    }

    @Test func storedJobs_areReadAFewAtOnce_forEachUser() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url())
        try driver.end(id)
        driver.holdsReads = true
        let requests = (0..<10).map { number in
            number.isMultiple(of: 2) ? driver.ask(.wait([id], timeout: nil)) : driver.ask(.job(id))
        }
        #expect(driver.heldReads.count == 4)
        let other = driver.ask(.job(id), as: .root)
        #expect(driver.heldReads.count == 5, "others do not wait for them")
        driver.releaseReads()
        #expect(driver.answers[other]?.job != nil && driver.answers[requests[3]] != nil)
        #expect(driver.heldReads.count == 4 && driver.answers[requests[4]] == nil)
        driver.releaseReads()
        driver.releaseReads()
        for request in requests { #expect(driver.answers[request] != nil) }
        #expect(driver.heldReads.isEmpty)
        let last = (0..<6).map { _ in driver.ask(.job(id)) }
        driver.feed(.stop)
        driver.releaseReads()
        for request in last { #expect(driver.answers[request] != nil) }
    }
}
