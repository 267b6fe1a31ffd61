import JobModel
import Testing

@testable import JobCore

/// A program takes its time to end when it is told to; its job does not go on before, and its slot is not another's.
extension StoppingTests {
    private func driver(_ change: (inout CoreSettings) -> Void = { _ in }) -> CoreDriver {
        CoreDriver {
            $0.queues = [QueueSettings(name: "default", concurrency: 1)]
            change(&$0)
        }
    }

    @Test func cancelledProgram_keepsItsSlot_andItsJobRuns_untilItHasEnded() throws {
        let driver = driver()
        let id = try driver.submit(program())
        let next = try driver.submit(url("b"))
        let run = try driver.run(of: id).run
        let request = driver.ask(.cancel(id))
        #expect(driver.cancelled == [run], "it is told at once")
        guard case .job(let snapshot) = driver.answer(to: request) else { return #expect(Bool(false)) }
        #expect(snapshot.job.state == .running && snapshot.job.stop == .cancelled)
        #expect(driver.stored(id)?.stop == .cancelled && driver.stored(id)?.state == .running)
        #expect(driver.atWork == [id], "its slot is not given back")
        // Asked again it is told no second time.
        let again = driver.ask(.cancel(id))
        guard case .job = driver.answer(to: again) else { return #expect(Bool(false)) }
        #expect(driver.cancelled == [run])
        try driver.end(id, .failure(JobError(.cancelled, "")))
        #expect(driver.stored(id)?.state == .cancelled && driver.stored(id)?.outcomes.map(\.link) == [0])
        #expect(driver.atWork == [next])
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func finallyLink_beginsOnceTheCancelledProgramHasEnded_inItsSlot() throws {
        let driver = driver()
        let id = try driver.submit(program(finally()))
        let next = try driver.submit(url("b"))
        driver.ask(.cancel(id))
        #expect(driver.running.map(\.link) == [0])
        // What it made of its end does not count any more.
        try driver.end(id, .success("done"))
        #expect(driver.running.map(\.link) == [1] && driver.atWork == [id])
        #expect(driver.stored(id)?.outcomes.first?.error?.kind == .cancelled)
        try driver.end(id)
        #expect(driver.stored(id)?.state == .cancelled && driver.atWork == [next])
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func programPastItsJobsDeadline_endsTheJob_onceItHasEnded() throws {
        let driver = driver()
        let id = try driver.submit(program(#""deadline":5"#))
        driver.advance(6)
        #expect(driver.cancelled.count == 1 && driver.atWork == [id] && driver.state(id) == .running)
        driver.advance(100)
        try driver.end(id, .failure(JobError(.cancelled, "")))
        #expect(driver.stored(id)?.state == .failed)
        driver.expectQuiet()
    }

    @Test(arguments: [true, false])
    func crashWhileItEnds_leavesTheJobCancelled(_ isCrash: Bool) throws {
        for links in ["", finally()] {
            let driver = driver()
            let id = try driver.submit(program(links))
            driver.ask(.cancel(id))
            if isCrash { driver.crash() } else { driver.restart() }
            driver.advance(1)
            #expect(driver.running.map(\.link) == (links.isEmpty ? [] : [1]), "it does not run again")
            driver.endAll()
            #expect(driver.stored(id)?.state == .cancelled)
            #expect(driver.stored(id)?.outcomes.first?.error?.kind == .cancelled)
            driver.expectQuiet()
        }
    }

    @Test func raceLostByAProgram_isOver_onceThatHasEnded() throws {
        let driver = driver { $0.queues[0].concurrency = 2 }
        let id = try driver.submit(
            #"{"source":{"type":"list","mode":"first","jobs":[\#(program()),\#(url("b"))]}}"#)
        try driver.end(id + 2)
        #expect(driver.cancelled.count == 1 && driver.state(id) == .running)
        try driver.end(id + 1, .failure(JobError(.cancelled, "")))
        #expect(driver.stored(id)?.state == .succeeded && driver.stored(id + 1)?.state == .cancelled)
        driver.expectQuiet()
    }

    @Test func programOfARemovedChild_keepsItsSlot_untilItHasEnded() throws {
        let driver = driver()
        let id = try driver.submit(#"{"source":{"type":"list","jobs":[\#(program())]}}"#)
        let next = try driver.submit(url("b"))
        driver.ask(.cancel(id))
        #expect(driver.stored(id)?.state == .cancelled && driver.state(id + 1) == .running)
        let run = try driver.run(of: id + 1).run
        driver.ask(.remove(id))
        #expect(driver.stored(id + 1) == nil && driver.atWork == [id + 1] && driver.core.inspection.slots == 1)
        #expect(driver.cancelled == [run], "it is told once")
        try driver.end(id + 1, .failure(JobError(.cancelled, "")))
        #expect(driver.atWork == [next])
        driver.endAll()
        driver.expectQuiet()
    }
}
