import JobModel
import Testing
@testable import JobCore

extension StoppingTests {
    @Test func failedJob_isRetried_fromWhereItFailed_orFromItsStart() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", #""then":[{"then":\#(step("b"))}]"#))
        for (point, link) in [(Job.RetryPoint.failed, 1), (.start, 0)] {
            driver.endAll { $0.link == 1 ? .lasting : .success("in") }
            #expect(driver.stored(id)?.state == .failed)
            let request = driver.ask(.retry(id, from: point))
            guard case .job(let snapshot) = driver.answer(to: request) else { return #expect(Bool(false)) }
            #expect(snapshot.job.state == .queued || snapshot.job.state == .running)
            #expect(try driver.run(of: id).link == link && driver.run(of: id).attempt == 1)
        }
        driver.endAll()
        #expect(driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test(arguments: [#""delay":60"#, ""])
    func job_isNotRetried_unlessItFailed(_ members: String) throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", members))
        let state = try #require(driver.state(id))
        #expect(driver.code(driver.ask(.retry(id, from: .failed))) == .wrongState(state))
        driver.advance(60)
        driver.endAll()
        #expect(driver.code(driver.ask(.retry(id, from: .failed))) == .wrongState(.succeeded))
        driver.expectQuiet()
    }

    @Test func job_isNotRetried_whereNoFurtherOneWouldBeTaken() throws {
        let driver = CoreDriver { $0.limits.queuedJobsPerUser = 2 }
        let failed = try driver.submit(url())
        try driver.end(failed, .lasting)
        let waiting = try (0..<2).map { _ in try driver.submit(url("a", #""delay":60"#)) }
        #expect(driver.code(driver.ask(.retry(failed, from: .failed))) == .busy(retryAfter: 1))
        driver.ask(.cancel(waiting[0]))
        driver.feed(.room(shortage: "the disk is nearly full"))
        #expect(driver.code(driver.ask(.retry(failed, from: .failed))) == .storage)
        #expect(driver.stored(failed)?.state == .failed)
        driver.feed(.room(shortage: nil))
        driver.ask(.retry(failed, from: .failed))
        #expect(driver.atWork == [failed])
    }

    @Test func retry_andRemoval_wait_whileTheEndIsStored() throws {
        let driver = CoreDriver()
        let failed = try driver.submit(url())
        let succeeded = try driver.submit(url())
        driver.holdsWrites = true
        try driver.end(failed, .lasting)
        try driver.end(succeeded)
        let retry = driver.ask(.retry(failed, from: .start))
        let removal = driver.ask(.remove(succeeded))
        #expect(driver.answer(to: retry) == nil && driver.answer(to: removal) == nil)
        driver.holdsWrites = false
        driver.releaseWrites()
        guard case .job = driver.answer(to: retry), case .done = driver.answer(to: removal) else {
            Issue.record("\(String(describing: driver.answer(to: retry)))")
            return
        }
        #expect(driver.atWork == [failed] && driver.stored(succeeded) == nil)
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func retriedList_makesItsChildrenAnew() throws {
        let driver = CoreDriver()
        let id = try driver.submit(#"{"source":{"type":"list","mode":"all","jobs":[\#(url("a")),\#(url("b"))]}}"#)
        let old = driver.store.children(of: id).map(\.id)
        try driver.end(old[0], .lasting)
        #expect(driver.stored(id)?.state == .failed)
        driver.holdsCleanUps = true
        let request = driver.ask(.retry(id, from: .failed))
        #expect(Set(driver.removed.map(\.id)) == Set(old) && driver.answer(to: request) == nil)
        driver.holdsCleanUps = false
        driver.releaseCleanUps()
        guard case .job = driver.answer(to: request) else { return #expect(Bool(false)) }
        driver.endAll()
        let job = driver.stored(id)
        #expect(job?.state == .succeeded && job?.children == 2 && driver.store.children(of: id).count == 2)
        driver.expectQuiet()
    }

    @Test func childrenThatARetryRemoves_countNoMore_whateverTheyComeToMeanwhile() throws {
        let driver = CoreDriver()
        let child = url("b", finally())
        let id = try driver.submit(#"{"source":{"type":"list","jobs":[\#(child),\#(child)]}}"#)
        let old = driver.store.children(of: id).map(\.id)
        driver.ask(.cancel(id))
        #expect(driver.stored(id)?.state == .cancelled && driver.atWork == old, "what is left of them runs")
        // One ends once they are gone, and that is told before the retry is stored.
        driver.holdsWrites = true
        let request = driver.ask(.retry(id, from: .failed))
        driver.commitWrites()
        try driver.end(old[0])
        driver.releaseWrites(2)
        #expect(driver.atWork.isEmpty && driver.removed.map(\.id).sorted() == old)
        driver.expectCounted()
        driver.holdsWrites = false
        driver.releaseWrites()
        guard case .job = driver.answer(to: request) else { return #expect(Bool(false)) }
        driver.expectCounted()
        driver.endAll()
        #expect(driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test func retry_isUndone_whereItsChildrenCannotBeRemoved() throws {
        let driver = CoreDriver()
        let id = try driver.submit(#"{"source":{"type":"list","mode":"all","jobs":[\#(url("a"))]}}"#)
        driver.endAll { _ in .lasting }
        driver.failsWrite = { if case .removeChildren = $0 { true } else { false } }
        driver.ask(.watch(WatchScope(.all), 7))
        driver.holdsWrites = true
        let retry = driver.ask(.retry(id, from: .failed))
        // Who asks meanwhile is told what became of it.
        let wait = driver.ask(.wait([id], timeout: nil))
        driver.ask(.watch(WatchScope(.jobs([id])), 8))
        driver.holdsWrites = false
        driver.releaseWrites()
        #expect(driver.code(retry) == .storage && driver.answer(to: wait) != nil)
        #expect(driver.states(of: id, to: 8) == [.failed] && driver.states(of: id, to: 7).isEmpty)
        #expect(driver.state(id) == .failed)
        driver.expectCounted()
        driver.failsWrite = { _ in false }
        // Nothing starts until storing is known to work again.
        driver.advance(1)
        driver.ask(.retry(id, from: .failed))
        driver.endAll()
        #expect(driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test(arguments: ["list", "url"], [true, false])
    func cancel_waitsForTheRetry_thatIsBeingStored(_ source: String, _ fails: Bool) throws {
        let driver = CoreDriver()
        let list = #"{"source":{"type":"list","mode":"all","jobs":[\#(url("a"))]}}"#
        let id = try driver.submit(source == "list" ? list : url("a"))
        driver.endAll { _ in .lasting }
        driver.holdsWrites = true
        let retry = driver.ask(.retry(id, from: .failed))
        let cancel = driver.ask(.cancel(id))
        // What is refused does not happen, nor does what was asked of it.
        driver.failsWrite = { _ in fails }
        driver.releaseWrites(1)
        driver.failsWrite = { _ in false }
        if fails {
            #expect(driver.code(retry) == .storage && driver.code(cancel) == .wrongState(.failed))
        } else if source == "list" {
            // The children are gone, and the job is stored as it was before.
            #expect(driver.stored(id)?.state == .failed && driver.answer(to: retry) == nil)
            driver.releaseWrites(1)
        }
        if !fails { #expect(driver.stored(id)?.state == .queued && driver.answer(to: cancel) == nil) }
        driver.releaseWrites()
        driver.advance(2)
        driver.releaseWrites()
        #expect(driver.answer(to: retry) != nil && driver.answer(to: cancel) != nil && driver.started.count == 1)
        #expect(driver.stored(id)?.state == (fails ? .failed : .cancelled))
        driver.holdsWrites = false
        driver.expectQuiet()
    }

    @Test func deadline_thatPassesWhileARetryIsStored_endsTheJobOnceItIs() throws {
        let driver = CoreDriver()
        let id = try driver.submit(#"{"source":{"type":"url","url":"http://a/"},"deadline":10}"#)
        try driver.end(id, .lasting)
        driver.holdsWrites = true
        driver.ask(.retry(id, from: .failed))
        driver.advance(60)
        driver.commitWrites()
        #expect(driver.stored(id)?.state == .queued)
        driver.holdsWrites = false
        driver.releaseWrites()
        driver.advance(1)
        #expect(driver.stored(id)?.state == .failed && driver.started.count == 1)
        driver.expectQuiet()
    }

    @Test func cancel_thatWaitsForARetry_isOfNoJob_whereItIsPurgedMeanwhile() throws {
        let driver = CoreDriver { $0.retentionCount = 0 }
        let id = try driver.submit(url())
        driver.endAll { _ in .lasting }
        driver.holdsWrites = true
        driver.advance(61)
        let requests = [driver.ask(.retry(id, from: .failed)), driver.ask(.cancel(id))]
        driver.releaseWrites()
        #expect(requests.allSatisfy { driver.code($0) == .notFound } && driver.stored(id) == nil)
        driver.expectQuiet()
    }

    @Test func retry_isOfNoJob_whereItIsPurgedMeanwhile() throws {
        let driver = CoreDriver { $0.retentionCount = 0 }
        let id = try driver.submit(url())
        driver.endAll { _ in .lasting }
        driver.holdsWrites = true
        driver.advance(61)
        let retry = driver.ask(.retry(id, from: .failed))
        driver.releaseWrites()
        #expect(driver.code(retry) == .notFound && driver.stored(id) == nil)
        driver.expectQuiet()
    }

    @Test func child_isNeitherRetried_norRemoved() throws {
        let driver = CoreDriver()
        let id = try driver.submit(list)
        driver.endAll { _ in .lasting }
        let child = driver.store.children(of: id)[0].id
        #expect(driver.code(driver.ask(.retry(child, from: .failed))) == .wrongState(.failed))
        #expect(driver.code(driver.ask(.remove(child))) == .wrongState(.failed))
    }
}
