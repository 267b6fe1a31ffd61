import JobModel
import Testing

@testable import JobCore

/// Cancelling, deadlines, retrying and removing.
@Suite struct StoppingTests {
    let list = #"{"source":{"type":"list","jobs":[\#(url("a")),\#(url("b"))]}}"#

    func finally(_ host: String = "f") -> String { #""then":[{"finally":\#(step(host))}]"# }

    // MARK: - Cancelling

    @Test func cancel_isAnswered_onceItIsStored_andEndsTheSourceAtOnce() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url())
        driver.holdsWrites = true
        let request = driver.ask(.cancel(id))
        #expect(driver.atWork.isEmpty && driver.cancelled.count == 1 && driver.answer(to: request) == nil)
        let second = driver.ask(.cancel(id))
        driver.releaseWrites()
        guard case .job(let snapshot) = driver.answer(to: request) else { return #expect(Bool(false)) }
        #expect(snapshot.job.state == .cancelled && driver.code(second) == .wrongState(.cancelled))
        driver.expectQuiet()
    }

    @Test func cancel_isAnswered_onceTheEndIsStored_thatAFinallyLinkCameToMeanwhile() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", finally()))
        try driver.end(id)
        driver.holdsWrites = true
        let request = driver.ask(.cancel(id))
        try driver.end(id)
        driver.releaseWrites(1)
        #expect(driver.stored(id)?.state == .running && driver.answer(to: request) == nil)
        driver.releaseWrites(1)
        guard case .job(let snapshot) = driver.answer(to: request) else { return #expect(Bool(false)) }
        #expect(snapshot.job.state == .cancelled && driver.stored(id)?.state == .cancelled)
        driver.expectQuiet()
    }

    @Test(arguments: [#""delay":60"#, #""queue":"closed""#])
    func waitingJob_isCancelled_withoutRunning(_ members: String) throws {
        let driver = CoreDriver {
            $0.queues.append(QueueSettings(name: "closed", concurrency: 1, isSuspended: true))
        }
        let id = try driver.submit(url("a", members))
        driver.ask(.cancel(id))
        #expect(driver.stored(id)?.state == .cancelled && driver.started.isEmpty)
        driver.advance(100)
        driver.expectQuiet()
    }

    @Test func finallyLink_runsInTheSlot_ofWhatWasCancelled() throws {
        let driver = CoreDriver { $0.queues = [QueueSettings(name: "default", concurrency: 1)] }
        let id = try driver.submit(url("a", finally()))
        let next = try driver.submit(url("b"))
        driver.ask(.cancel(id))
        #expect(driver.atWork == [id])
        #expect(driver.state(id) == .running)
        try driver.end(id)
        #expect(driver.stored(id)?.state == .cancelled && driver.stored(id)?.outcomes.map(\.link) == [0, 1])
        #expect(driver.atWork == [next])
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func finallyLinks_keepToSlotsAndHosts_howeverManyJobsAreCancelled() throws {
        let driver = CoreDriver {
            $0.queues = [
                QueueSettings(name: "default", concurrency: 3),
                QueueSettings(name: "closed", concurrency: 9, isSuspended: true),
            ]
            $0.perHost = 2
        }
        let ids = try (0..<9).map { try driver.submit(url("a\($0)", finally())) }
        let waiting = try driver.submit(url("a", #""queue":"closed",\#(finally())"#))
        // Those that run come last, so that none of the others begins.
        for id in ids.reversed() + [waiting] { driver.ask(.cancel(id)) }
        #expect(driver.atWork.count == 2, "as many as the host takes")
        #expect(ids.filter { driver.state($0) == .queued }.count == 6, "the others are in the store, not in memory")
        // None is forgotten by a crash.
        driver.crash()
        driver.advance(1)
        #expect(driver.atWork.count == 2)
        for _ in 0..<20 { driver.endAll() }
        for id in ids { #expect(driver.stored(id)?.state == .cancelled && driver.stored(id)?.outcomes.last?.link == 1) }
        #expect(driver.state(waiting) == .queued, "its queue is suspended")
        driver.ask(.setQueue("closed", QueueChange(isSuspended: false)), as: .root)
        driver.endAll()
        #expect(driver.stored(waiting)?.state == .cancelled)
        driver.expectQuiet()
    }

    @Test func listOfAFinallyLink_runsItsChildren_afterACancelAndACrash() throws {
        let driver = CoreDriver()
        let list =
            #"{"source":{"type":"list","jobs":[\#(url("b")),\#(url("c", #""then":[{"then":\#(step("d"))}]"#))]}}"#
        let id = try driver.submit(url("a", #""then":[{"finally":\#(list)}]"#))
        driver.ask(.cancel(id))
        #expect(driver.atWork.count == 2)
        driver.crash()
        driver.advance(1)
        #expect(driver.atWork.count == 2, "what the stop left to run is no orphan")
        for _ in 0..<4 { driver.endAll() }
        #expect(driver.stored(id)?.state == .cancelled)
        for child in [id + 1, id + 2] { #expect(driver.stored(child)?.state == .succeeded) }
        driver.expectQuiet()
    }

    @Test func finallyLink_runs_whereTheDeadlinePassesBeforeItBegins() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", #""deadline":60,\#(finally())"#))
        driver.holdsWrites = true
        try driver.end(id)
        // The outcome is being stored while the time passes.
        driver.advance(61)
        driver.holdsWrites = false
        driver.releaseWrites()
        #expect(driver.running.map(\.link) == [1])
        driver.endAll()
        #expect(driver.stored(id)?.state == .failed && driver.stored(id)?.stop == .deadline)
        driver.expectQuiet()
    }

    @Test func cancel_isRemembered_whereAFinallyLinkRuns() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", finally()))
        try driver.end(id)
        let request = driver.ask(.cancel(id))
        guard case .job = driver.answer(to: request) else { return #expect(Bool(false)) }
        driver.crash()
        #expect(driver.atWork == [id])
        try driver.end(id)
        #expect(driver.stored(id)?.state == .cancelled)
        driver.expectQuiet()
    }

    @Test func job_isCancelled_whileItsOutcomeIsStored() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", #""then":[{"then":\#(step("b"))},{"finally":\#(step("f"))}]"#))
        driver.holdsWrites = true
        try driver.end(id)
        driver.ask(.cancel(id))
        driver.releaseWrites(1)
        #expect(driver.started.count == 1, "the link after the first does not run any more")
        driver.holdsWrites = false
        driver.releaseWrites()
        #expect(driver.started.map(\.link) == [0, 2])
        driver.endAll()
        #expect(driver.stored(id)?.state == .cancelled)
        driver.expectQuiet()
    }

    @Test func cancel_isRefused_whereTheEndIsBeingStored() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url())
        driver.holdsWrites = true
        try driver.end(id)
        let request = driver.ask(.cancel(id))
        driver.releaseWrites()
        #expect(driver.code(request) == .wrongState(.succeeded) && driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test func job_isCancelled_whileItWaitsInTheMiddleOfItsChain() throws {
        let driver = CoreDriver { $0.perHost = 1 }
        let first = try driver.submit(url("b"))
        let id = try driver.submit(url("a", #""then":[{"then":\#(step("b"))}]"#))
        try driver.end(id)
        driver.ask(.cancel(id))
        #expect(driver.stored(id)?.state == .cancelled)
        try driver.end(first)
        driver.expectQuiet()
    }

    @Test func job_isCancelled_whileItIsRead() throws {
        let driver = CoreDriver()
        let large = url(
            "a",
            #""label":"x","tags":["\#(String(repeating: "t", count: 100))"],"then":[{"then":{"return":"\#(String(repeating: "r", count: 3000))"}}]"#
        )
        driver.holdsReads = true
        let id = try driver.submit(large)
        #expect(driver.started.isEmpty && driver.core.inspection.slots == 1)
        let request = driver.ask(.cancel(id))
        driver.releaseReads { if case .jobs = $0 { true } else { false } }
        driver.releaseReads()
        guard case .job(let snapshot) = driver.answer(to: request) else { return #expect(Bool(false)) }
        #expect(snapshot.job.state == .cancelled || driver.stored(id)?.state == .cancelled)
        driver.releaseReads()
        #expect(driver.open.isEmpty)
        driver.expectQuiet()
    }

    @Test func download_isCancelled_onceItsPartIsGone() throws {
        let driver = CoreDriver()
        let id = try driver.submit(
            #"{"source":{"type":"download","url":"http://a/","path":"f"},"retry":{"max":3,"initial":60,"jitter":false}}"#
        )
        try driver.end(id, .passing)
        #expect(driver.state(id) == .scheduled)
        driver.holdsCleanUps = true
        let request = driver.ask(.cancel(id))
        #expect(driver.discarded.map(\.job) == [id] && driver.answer(to: request) == nil)
        let again = driver.ask(.cancel(id))
        driver.releaseCleanUps()
        guard case .job = driver.answer(to: request) else { return #expect(Bool(false)) }
        #expect(driver.stored(id)?.state == .cancelled && driver.code(again) == .wrongState(.cancelled))
        driver.expectQuiet()
    }

    /// The source removes it as it ends, which takes the file system's time.
    @Test func downloadAtWork_isCancelled_onceItsPartIsGone() throws {
        let driver = CoreDriver()
        let id = try driver.submit(#"{"source":{"type":"download","url":"http://a/","path":"f"}}"#)
        driver.holdsCleanUps = true
        let request = driver.ask(.cancel(id))
        #expect(driver.cancelled.count == 1 && driver.discarded.map(\.job) == [id])
        #expect(driver.answer(to: request) == nil && driver.stored(id)?.state != .cancelled)
        driver.releaseCleanUps()
        guard case .job(let view) = driver.answer(to: request) else { return #expect(Bool(false)) }
        #expect(view.job.state == .cancelled && driver.stored(id)?.state == .cancelled)
        driver.expectQuiet()
    }

    /// Once its failure was caught nobody goes on with it; where the job fails, a retry can.
    @Test(arguments: [true, false]) func partOfAFailure_isRemoved_whereItIsCaught(isCaught: Bool) throws {
        let driver = CoreDriver()
        let id = try driver.submit(
            #"{"source":{"type":"download","url":"http://a/","path":"f"},"then":[{"\#(isCaught ? "fail" : "then")":{"return":1}}]}"#
        )
        try driver.end(id, .failure(JobError(.network, "It was cut.")))
        #expect(driver.stored(id)?.state == (isCaught ? .succeeded : .failed))
        #expect(driver.discarded.map(\.job) == (isCaught ? [id] : []))
        #expect(driver.discarded.allSatisfy { $0.links == 0...0 })
        driver.expectQuiet()
    }

    /// A crash between the start of a link and its save leaves the part of a link that the job has not come to, as far as anybody
    /// knows; so does a retry of the whole job.
    @Test(arguments: [true, false]) func partsOfLaterLinks_areRemoved_withTheEnd(isCancelled: Bool) throws {
        let driver = CoreDriver()
        let id = try driver.submit(
            #"{"source":{"type":"url","url":"http://a/"},"then":[{"then":{"source":{"type":"download","url":"http://a/","path":"f"}},"fail":{"return":1}}]}"#
        )
        if isCancelled {
            driver.ask(.cancel(id))
        } else {
            try driver.end(id, .failure(JobError(.network, "It was cut.")))
        }
        #expect(driver.stored(id)?.state == (isCancelled ? .cancelled : .succeeded))
        #expect(driver.discarded.map(\.job) == [id] && driver.discarded.allSatisfy { $0.links.contains(1) })
        driver.expectQuiet()
    }

    @Test func othersJobs_areNotThere() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url())
        for request in [
            CoreRequest.cancel(id), .retry(id, from: .start), .remove(id), .job(id), .wait([id], timeout: nil),
            .jobs([id]),
            .result(id), .watch(WatchScope(.jobs([id])), 9), .list(children(of: id)),
        ] {
            #expect(driver.code(driver.ask(request, as: .two)) == .notFound, "\(request)")
        }
        #expect(driver.atWork == [id] && driver.core.inspection.subscriptions == 0)
    }

    func children(of id: JobID) -> JobFilter {
        var filter = JobFilter()
        filter.parent = id
        return filter
    }

    // MARK: - Deadlines

    @Test func job_fails_whenItsDeadlinePasses() throws {
        let driver = CoreDriver { $0.queues.append(QueueSettings(name: "closed", concurrency: 1, isSuspended: true)) }
        let ids = [
            try driver.submit(url("a", #""deadline":60,\#(finally())"#)),
            try driver.submit(url("a", #""deadline":60,"queue":"closed""#)),
            try driver.submit(url("a", #""deadline":60,"delay":100"#)),
        ]
        driver.advance(59)
        #expect(driver.atWork == [ids[0]])
        driver.advance(1)
        #expect(driver.running.map(\.link) == [1], "its finally link runs")
        driver.endAll()
        for id in ids {
            let job = driver.stored(id)
            #expect(job?.state == .failed && job?.carried?.kind == .deadline, "job \(id)")
        }
        driver.advance(200)
        driver.expectQuiet()
    }

    @Test func overdueJob_neverStarts_afterARestart() throws {
        let driver = CoreDriver()
        driver.ask(.setQueue("default", QueueChange(isSuspended: true)), as: .root)
        let id = try driver.submit(url("a", #""deadline":60"#))
        driver.ask(.setQueue("default", QueueChange(isSuspended: false)), as: .root)
        try driver.end(id, .passing)
        driver.advance(0)
        driver.holdsReads = true
        driver.stopAndWait(1000)
        driver.forgetEvents()
        // What is ready comes before what is overdue.
        driver.releaseReads { if case .recovery = $0 { true } else { false } }
        driver.releaseReads { if case .ready = $0 { true } else { false } }
        #expect(driver.started.isEmpty)
        driver.holdsReads = false
        driver.releaseReads()
        #expect(driver.stored(id)?.carried?.kind == .deadline)
        driver.expectQuiet()
    }

    @Test func deadline_thatWasRead_doesNotEndARetry() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", #""deadline":60"#))
        driver.holdsReads = true
        driver.advance(60)
        // It fails by itself and is retried, before what was read of its deadline arrives.
        try driver.end(id, .lasting)
        let request = driver.ask(.retry(id, from: .start))
        driver.releaseReads { if case .jobs = $0 { true } else { false } }
        #expect(driver.error(request) == nil)
        driver.holdsReads = false
        driver.releaseReads()
        #expect(driver.atWork == [id] && driver.state(id) == .running, "it has another 60 seconds")
        driver.advance(60)
        #expect(driver.stored(id)?.carried?.kind == .deadline)
        driver.expectQuiet()
    }

    // MARK: - Removing

    @Test func job_isRemoved_withAllBelowIt() throws {
        let driver = CoreDriver()
        let id = try driver.submit(list)
        #expect(driver.code(driver.ask(.remove(id))) == .wrongState(.running))
        driver.endAll()
        driver.holdsWrites = true
        let request = driver.ask(.remove(id))
        let again = driver.ask(.remove(id))
        let retry = driver.ask(.retry(id, from: .start))
        #expect(driver.code(again) == .notFound && driver.code(retry) == .notFound)
        driver.releaseWrites()
        guard case .done = driver.answer(to: request) else { return #expect(Bool(false)) }
        #expect(driver.store.all.isEmpty && driver.removed.count == 3)
        #expect(driver.code(driver.ask(.job(id))) == .notFound)
        driver.expectQuiet()
    }

    @Test func job_isRemoved_whileItsChildrenAreBeingCancelled() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 1 }
        let id = try driver.submit(list)
        let children = driver.store.children(of: id).map(\.id)
        driver.holdsReads = true
        driver.failsWrite = {
            if case .save(let jobs) = $0 { jobs.contains { children.contains($0.id) } } else { false }
        }
        driver.ask(.cancel(id))
        driver.releaseReads()
        #expect(driver.stored(id)?.state == .cancelled)
        let request = driver.ask(.remove(id))
        driver.releaseReads()
        guard case .done = driver.answer(to: request) else { return #expect(Bool(false)) }
        driver.failsWrite = { _ in false }
        driver.holdsReads = false
        driver.releaseReads()
        driver.advance(10)
        #expect(driver.store.all.isEmpty)
        driver.expectQuiet()
    }

    @Test func rowsOfARemovedJob_areNotBelieved() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url())
        driver.endAll()
        driver.holdsReads = true
        let show = driver.ask(.job(id))
        let watch = driver.ask(.watch(WatchScope(.jobs([id])), 5))
        let wait = driver.ask(.wait([id], timeout: nil))
        let list = driver.ask(.list(JobFilter()))
        let remove = driver.ask(.remove(id))
        driver.releaseReads { _ in true }
        // The removal asked last, and its row is the one that is left.
        guard case .done = driver.answer(to: remove) else { return #expect(Bool(false)) }
        for request in [show, watch, wait, list] { #expect(driver.answer(to: request) != nil) }
        driver.expectQuiet()
        let late = try driver.submit(url())
        driver.endAll()
        let before = driver.ask(.job(late))
        let after = driver.ask(.remove(late))
        driver.releaseReads { if case .jobs = $0 { true } else { false } }
        #expect(driver.answer(to: before) != nil && driver.answer(to: after) != nil)
        driver.expectQuiet()
    }
}
