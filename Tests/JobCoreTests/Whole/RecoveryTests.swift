import JobModel
import Testing

@testable import JobCore

/// Crashes, clean stops, and what the next daemon makes of what the last one left.
@Suite struct RecoveryTests {
    private static let finally = #""then":[{"fail":\#(step("c"))},{"finally":\#(step("f"))}]"#

    @Test(arguments: [true, false])
    func job_runsAgain_withoutUsingUpAnAttempt(_ isCrash: Bool) throws {
        let driver = CoreDriver()
        let first = try driver.submit(url("a", #""then":[{"then":\#(step("b"))}]"#))
        let second = try driver.submit(url("a"))
        try driver.end(first)
        driver.advance(1)
        if isCrash { driver.crash() } else { driver.restart() }
        #expect(Set(driver.atWork) == [first, second])
        #expect(try driver.run(of: first).link == 1, "its source is not run again")
        #expect(try driver.run(of: first).attempt == 1 && driver.run(of: second).attempt == 1)
        #expect(try driver.run(of: first).mayResume && driver.run(of: second).mayResume)
        driver.endAll()
        #expect(driver.store.all.allSatisfy { $0.state == .succeeded && $0.outcomes.allSatisfy { $0.attempts == 1 } })
        driver.expectQuiet()
    }

    @Test func jobs_startInOrder_afterARestart() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 2 }
        let ids = try (0..<1300).map { number in
            try driver.submit(url("h\(number)", number == 1299 ? #""priority":5"# : ""))
        }
        driver.restart()
        #expect(driver.atWork == [ids[1299], ids[0]])
        driver.endAll()
        #expect(driver.started.suffix(1298).map(\.job) == Array(ids[1..<1299]))
        driver.expectQuiet()
    }

    // MARK: - Poison

    @Test func job_isInterrupted_afterThreeCrashesInARow() throws {
        for links in [0, 1] {
            let driver = CoreDriver()
            let spec =
                links == 0
                ? url("a", Self.finally)
                : url("x", #""then":[{"then":\#(step("a"))},{"fail":\#(step("c"))},{"finally":\#(step("f"))}]"#)
            let id = try driver.submit(spec)
            if links == 1 { try driver.end(id) }
            for crash in 1...2 {
                driver.crash()
                #expect(try driver.run(of: id).link == links, "after crash \(crash)")
            }
            driver.crash()
            #expect(try driver.run(of: id).link == links + 1, "its fail link catches it")
            driver.endAll()
            let job = try #require(driver.stored(id))
            #expect(job.state == .succeeded && job.crashes == 0)
            #expect(job.outcomes.map(\.link) == [0, 1, 2] + (links == 1 ? [3] : []))
            #expect(job.outcomes[links].error?.kind == .interrupted)
            driver.expectQuiet()
        }
    }

    @Test func row_ofCrashes_endsWithACleanStop_aFinishedLinkOrARetry() throws {
        let driver = CoreDriver()
        let stopped = try driver.submit(url("a"))
        driver.crash()
        driver.crash()
        driver.restart()
        #expect(driver.stored(stopped)?.crashes == 0)
        driver.crash()
        driver.crash()
        #expect(driver.atWork == [stopped])
        driver.crash()
        #expect(driver.stored(stopped)?.carried?.kind == .interrupted)
        driver.ask(.retry(stopped, from: .failed))
        driver.crash()
        driver.crash()
        #expect(driver.atWork == [stopped])
        driver.endAll()
        let linked = try driver.submit(url("a", #""then":[{"then":\#(step("b"))}]"#))
        driver.crash()
        driver.crash()
        try driver.end(linked)
        driver.crash()
        driver.crash()
        #expect(try driver.run(of: linked).link == 1)
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func row_ofCrashes_endsWithACleanStop_alsoForAJobThatWaits() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 2 }
        let ids = try (0..<2).map { _ in try driver.submit(url("a")) }
        driver.settings.queues[0].concurrency = 1
        driver.crash()
        #expect(driver.atWork == [ids[0]] && driver.stored(ids[1])?.crashes == 1)
        driver.restart()
        #expect(ids.map { driver.stored($0)?.crashes } == [0, 0])
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func jobThatWaits_isNotCountedAsCrashed() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 2 }
        let ids = try (0..<2).map { _ in try driver.submit(url("x", #""then":[{"then":\#(step("a"))}]"#)) }
        for id in ids { try driver.end(id) }
        driver.settings.queues[0].concurrency = 1
        for _ in 0..<2 { driver.crash() }
        #expect(driver.atWork == [ids[0]])
        #expect(driver.stored(ids[0])?.crashes == 2 && driver.stored(ids[1])?.crashes == 1)
        driver.crash()
        #expect(driver.stored(ids[0])?.carried?.kind == .interrupted && driver.atWork == [ids[1]])
        driver.endAll()
        #expect(driver.stored(ids[1])?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test func list_isNotPoisoned_byItsChildren() throws {
        let driver = CoreDriver()
        let id = try driver.submit(#"{"source":{"type":"list","jobs":[\#(url("a")),\#(url("b"))]}}"#)
        for _ in 0..<3 { driver.crash() }
        #expect(driver.stored(id)?.state == .succeeded)
        let children = driver.store.children(of: id)
        #expect(children.allSatisfy { $0.carried?.kind == .interrupted })
        driver.expectQuiet()
    }

    // MARK: - Orphans

    @Test func childrenOfAListThatIsOver_areCancelled_afterACrash() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 2 }
        let id = try driver.submit(
            #"{"source":{"type":"list","jobs":[\#(url("a", #""then":[{"then":\#(step("x"))}]"#)),\#(url("b")),\#(url("c"))]}}"#
        )
        let children = driver.store.children(of: id).map(\.id)
        try driver.end(children[0])
        // The cancelled list is durable, its children are not.
        driver.holdsWrites = true
        driver.ask(.cancel(id))
        var left = driver.heldWrites.count
        while left > 0, driver.stored(id)?.state != .cancelled {
            driver.commitWrites(1)
            left -= 1
        }
        driver.holdsWrites = false
        driver.crash()
        driver.advance(1)
        #expect(driver.started.count { $0.job == children[0] && $0.link == 1 } <= 1)
        #expect(driver.open.isEmpty && driver.store.all.allSatisfy { $0.state.isTerminal })
        driver.expectQuiet()
    }

    @Test(arguments: [false, true])
    func gatedChildrenOfAListThatIsOver_areCancelled_afterACrash(_ failsToRead: Bool) throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 500 }
        let jobs = (0..<600).map { _ in url("a") }.joined(separator: ",")
        let id = try driver.submit(#"{"source":{"type":"list","jobs":[\#(jobs)],"concurrency":1}}"#)
        driver.failsRead = { if case .firstJobs = $0 { true } else { false } }
        driver.ask(.cancel(id))
        #expect(driver.stored(id)?.state == .cancelled)
        driver.failsRead = { if case .orphans = $0 { failsToRead } else { false } }
        driver.crash()
        #expect(driver.store.all.allSatisfy { $0.state == .cancelled } != failsToRead)
        driver.failsRead = { _ in false }
        driver.advance(1)
        #expect(driver.store.all.allSatisfy { $0.state == .cancelled } && driver.open.isEmpty)
        driver.expectQuiet()
    }

    @Test func gatedChildThatWaitsForItsRetry_isCancelledWhenItIsDue_whereItsListEndedBeforeACrash() throws {
        let driver = CoreDriver()
        let child = url("b", #""retry":{"max":2,"initial":2,"jitter":false}"#)
        let id = try driver.submit(
            #"{"source":{"type":"list","jobs":[\#(child),\#(url("c"))],"concurrency":1}}"#)
        let children = driver.store.children(of: id).map(\.id)
        try driver.end(children[0], .passing)
        driver.failsRead = { if case .firstJobs = $0 { true } else { false } }
        driver.ask(.cancel(id))
        driver.failsRead = { _ in false }
        driver.crash()
        #expect(driver.stored(id)?.state == .cancelled && driver.stored(children[0])?.state == .scheduled)
        driver.advance(3)
        #expect(children.map { driver.stored($0)?.state } == [.cancelled, .cancelled] && driver.open.isEmpty)
        driver.expectQuiet()
    }

    @Test func list_goesOn_onceItsChildrenCanBeReadAgain() throws {
        let driver = CoreDriver()
        let id = try driver.submit(
            #"{"source":{"type":"list","jobs":[\#(url("a")),\#(url("b")),\#(url("c"))],"concurrency":1}}"#)
        driver.failsRead = { if case .childStates = $0 { true } else { false } }
        driver.crash()
        driver.advance(5)
        #expect(driver.stored(id)?.state == .running)
        driver.failsRead = { _ in false }
        driver.advance(1)
        driver.endAll()
        #expect(driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test func list_isCancelled_withItsChildren_beforeTheyAreReadAfterACrash() throws {
        let driver = CoreDriver()
        let id = try driver.submit(
            #"{"source":{"type":"list","jobs":[\#(url("a")),\#(url("b")),\#(url("c"))],"concurrency":1}}"#)
        driver.failsRead = { if case .childStates = $0 { true } else { false } }
        driver.crash()
        driver.ask(.cancel(id))
        #expect(driver.stored(id)?.state == .cancelled)
        driver.failsRead = { _ in false }
        driver.advance(2)
        #expect(driver.store.all.allSatisfy { $0.state == .cancelled } && driver.open.isEmpty)
        driver.expectQuiet()
    }

    @Test func turn_isTakenUp_whereItCouldNotBeReadAfterACrash_whileAnotherReadIsOpen() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 1 }
        let large = String(repeating: "r", count: 3000)
        let id = try driver.submit(url("a", #""then":[{"then":{"return":"\#(large)"}}]"#))
        driver.holdsReads = true
        driver.crash()
        driver.releaseReads { if case .recovery = $0 { true } else { false } }
        // A read that stays open since before the job left the memory.
        driver.failsRead = { if case .jobs = $0 { true } else { false } }
        driver.releaseReads { if case .ready = $0 { true } else { false } }
        driver.releaseReads { if case .jobs = $0 { true } else { false } }
        #expect(driver.started.count == 1 && driver.core.inspection.pendingReads > 0)
        driver.failsRead = { _ in false }
        driver.advance(2)
        driver.releaseReads { if case .jobs = $0 { true } else { false } }
        #expect(driver.atWork == [id])
        driver.holdsReads = false
        driver.releaseReads()
        driver.endAll()
        driver.expectQuiet()
    }

    // MARK: - Everywhere

    private static let specs = [
        url("a"),
        url("a", #""then":[{"then":\#(step("b"))},{"finally":\#(step("f"))}]"#),
        url("a", #""delay":5,"retry":{"max":2,"initial":3,"jitter":false}"#),
        #"{"source":{"type":"timer","seconds":7},"then":[{"then":\#(step("b"))}]}"#,
        #"{"source":{"type":"list","jobs":[\#(url("a")),\#(url("b")),\#(url("c", #""delay":4"#))],"concurrency":1}}"#,
        #"{"source":{"type":"list","mode":"first","jobs":[\#(url("a")),\#(url("b", #""delay":900"#))]}}"#,
        #"{"source":{"type":"value","value":["x","y"]},"then":[{"then":{"source":{"type":"each","in":"{{input}}","mode":"all","job":{"source":{"type":"list","jobs":[\#(url("{{item}}"))]}}}}},{"both":\#(step("z"))}]}"#,
    ]

    /// Kills the daemon after each write that becomes durable, and lets the next one finish the work.
    @Test(arguments: 0..<7)
    func everything_ends_whereverTheDaemonIsKilled(_ number: Int) throws {
        let spec = Self.specs[number]
        let sources = try expected(spec)
        for boundary in 1..<60 {
            let driver = CoreDriver()
            driver.writesUntilCrash = boundary
            let request = try driver.requestSubmit(spec)
            let wasAnswered = driver.answer(to: request) != nil
            work(driver)
            let crashed = driver.hasCrashed
            if crashed {
                if driver.store.all.isEmpty {
                    #expect(!wasAnswered)
                    continue
                }
                driver.crash()
                driver.advance(0)
                work(driver)
            }
            let root = try #require(driver.store.all.first)
            #expect(root.state == .succeeded, "killed after write \(boundary)")
            #expect(driver.store.all.allSatisfy { $0.state.isTerminal }, "killed after write \(boundary)")
            // Each link that was stored as ended ran once more at most: the one that was at work.
            let twice = Dictionary(grouping: driver.started) { [$0.job, JobID($0.link)] }.values.filter { $0.count > 1 }
            #expect(twice.allSatisfy { $0.count == 2 }, "killed after write \(boundary)")
            #expect(Set(driver.started.map(\.parameters.host)) == sources, "killed after write \(boundary)")
            driver.expectQuiet()
            guard crashed else { return }
        }
        Issue.record("It never ended without a crash.")
    }

    private func work(_ driver: CoreDriver) {
        for _ in 0..<30 where !driver.hasCrashed {
            driver.endAll()
            driver.advance(1)
        }
    }

    /// The hosts that a spec asks where nothing happens.
    private func expected(_ spec: String) throws -> Set<String> {
        let driver = CoreDriver()
        try driver.submit(spec)
        work(driver)
        driver.expectQuiet()
        return Set(driver.started.map(\.parameters.host))
    }

    @Test func cancel_isForgottenOrWhole_whereverTheDaemonIsKilled() throws {
        for boundary in 1..<20 {
            let driver = CoreDriver()
            let id = try driver.submit(
                #"{"source":{"type":"list","jobs":[\#(url("a")),\#(url("b"))]},"then":[{"finally":\#(step("f"))}]}"#)
            driver.writesUntilCrash = boundary
            let request = driver.ask(.cancel(id))
            let wasAnswered = driver.answer(to: request) != nil
            driver.endAll()
            let crashed = driver.hasCrashed
            if crashed {
                driver.crash()
                driver.advance(1)
                driver.endAll()
            }
            let state = driver.stored(id)?.state
            #expect(state == .cancelled || state == .succeeded && !wasAnswered, "killed after write \(boundary)")
            #expect(driver.store.all.allSatisfy { $0.state.isTerminal })
            driver.expectQuiet()
            guard crashed else { return }
        }
    }

    // MARK: - Stopping

    @Test func stop_endsNothing_andAnswersWhatIsStored() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", #""then":[{"then":\#(step("b"))}]"#))
        driver.holdsWrites = true
        try driver.end(id)
        let submission = try driver.requestSubmit(url("c"))
        driver.feed(.stop)
        driver.holdsWrites = false
        driver.releaseWrites()
        #expect(driver.answer(to: submission) != nil && driver.started.count == 1)
        #expect(driver.stored(id)?.state == .running && driver.stored(id)?.link == 1)
        for request in [CoreRequest.cancel(id), .retry(id, from: .start), .remove(id)] {
            let code = driver.code(driver.ask(request))
            #expect(code == .shuttingDown || code == .wrongState(.running), "\(request)")
        }
        driver.advance(100)
        #expect(driver.started.count == 1)
        driver.feed(.stop)
    }
}
