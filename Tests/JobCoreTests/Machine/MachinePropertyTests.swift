import JobModel
import TestSupport
import Testing

@testable import JobCore

/// In any order of events, a job stays consistent and reaches one end.
@Suite struct MachinePropertyTests {
    private func job(using generator: inout SeededGenerator) throws -> JobRow {
        let step = #"{"return":1}"#
        let links = (0..<Int.random(in: 0..<7, using: &generator)).map { _ in
            let on = generator.chance(0.3) ? #","on":["timeout"]"# : ""
            let retry = generator.chance(0.3) ? #"{"return":1,"retry":{"max":1,"jitter":false}}"# : step
            return generator.pick([
                #"{"then":\#(retry)}"#, #"{"fail":\#(retry)\#(on)}"#, #"{"then":\#(step),"fail":\#(step)\#(on)}"#,
                #"{"both":\#(retry)}"#, #"{"finally":\#(retry)}"#, #"{"finally":\#(step)}"#,
            ])
        }
        let members = generator.pick(["", #""delay":1"#, #""retry":{"max":0}"#, #""retry":{"max":2},"deadline":9"#])
        return try .chain(links.joined(separator: ","), members)
    }

    /// Applies a random event that the job's state allows, and returns the resulting action.
    private func advance(
        _ job: inout JobRow, at now: CoreMoment, isLeftAlone: Bool, using generator: inout SeededGenerator
    ) -> JobRow.Action {
        let chance = isLeftAlone ? 1 : Double.random(in: 0..<1, using: &generator)
        switch job.state {
        case _ where !job.state.isTerminal && chance < 0.15:
            return job.stop(generator.pick([.cancelled, .deadline]), at: now)
        case .scheduled where chance < 0.3, .queued where chance < 0.3: job.leaveTime(as: .held)
        case .scheduled, .held: job.leaveTime(as: .queued)
        case .queued: job.begin(RunID(life: 1, number: now.steady), at: now)
        case .running where chance < 0.25: return job.restart(at: now)
        case .running where chance < 0.35 && !job.isEnding && job.run != nil: job.unbegin(waitingFor: "h:80")
        case .running where chance < 0.5 && !job.isEnding:
            // The source makes children, or is a timer.
            (job.run, job.waiting) = (nil, .children)
        case .running:
            let action = job.finished(generator.pick([.text("x"), .text("x"), .lasting, .passing, .passing]), at: now)
            // The next link starts at once, or waits for a slot.
            if action == .run {
                let keepsSlot = generator.chance(0.7)
                if keepsSlot { job.begin(RunID(life: 2, number: now.steady), at: now) } else { job.state = .queued }
            }
            return action
        case .failed, .cancelled: job.retry(from: generator.pick(RetryPoint.allCases), at: now)
        case .succeeded: break
        }
        return .none
    }

    private func expect(_ action: JobRow.Action, fits job: JobRow, before: JobRow) {
        switch action {
        case .enqueue: #expect(job.state == .queued)
        case .run: #expect(job.state == .running || job.state == .queued)
        case .wait: #expect(job.state == .scheduled)
        case .finish: #expect(job.state.isTerminal && !before.state.isTerminal)
        case .interrupt: #expect(job.isEnding && job.run == before.run)
        case .none: #expect(!job.state.isTerminal || job == before)
        }
    }

    private func expectConsistent(_ job: JobRow, _ sourceLocation: SourceLocation = #_sourceLocation) {
        func check(_ isSo: Bool, _ what: Comment) { #expect(isSo, what, sourceLocation: sourceLocation) }
        let finallyLinks = job.plan.links.indices.map { $0 + 1 }.filter(job.plan.isFinally)
        check(zip(job.ended, job.ended.dropFirst()).allSatisfy { $0 < $1 }, "links end in order, each once")
        check(
            job.outcomes.allSatisfy { $0.attempts >= 1 && $0.finishedAt >= $0.startedAt }, "every outcome was tried for"
        )
        check((0...job.plan.links.count).contains(job.link), "the link is one of the job's")
        check((job.finishedAt != nil) == job.state.isTerminal, "only what is over has an end")
        check((job.notBefore != nil) == (job.state == .scheduled), "only what is scheduled waits for a time")
        check(job.run == nil || job.state == .running, "only what runs has a run")
        check(job.waiting == .nothing || job.state == .running, "only what runs waits for children")
        check((job.deadline == nil) || job.stop == nil && !job.state.isTerminal, "what is stopped passes no deadline")
        switch job.state {
        case .scheduled, .held, .queued, .running:
            check(job.step != nil || job.isEnding, "there is something to run")
            check((job.carried != nil) == (job.link > 0), "what comes in is there behind the source")
            check(job.outcomes.allSatisfy { $0.link < job.link }, "only links before this one have ended")
            check((job.attempt > 0) || job.state != .running, "what runs is tried")
            if let step = job.step { check(job.attempt <= step.retry.max + 1, "the policy bounds the attempts") }
            if job.stop != nil, !job.isEnding {
                check(finallyLinks.contains(job.link), "after a stop only finally links run")
            }
        case .succeeded:
            check(job.stop == nil && job.carried?.error == nil && job.carried != nil, "a success has a result")
        case .failed:
            check(job.carried?.error != nil && job.stop != .cancelled, "a failure has an error")
            if job.stop == .deadline { check(job.carried?.error?.kind == .deadline, "it passed its deadline") }
        case .cancelled:
            check(job.stop == .cancelled && job.carried?.error?.kind == .cancelled, "it was cancelled")
        }
        if job.state.isTerminal {
            check(job.ended.filter(finallyLinks.contains) == finallyLinks, "every finally link ran: \(job.ended)")
        }
    }

    @Test func job_endsOnce_whateverHappens() throws {
        var generator = SeededGenerator(seed: 9)
        for _ in 0..<4000 {
            var job = try job(using: &generator)
            var time = 0.0
            func step(isLeftAlone: Bool) {
                time += 1
                let before = job
                let now = CoreMoment.after(time, random: .random(in: 0..<1, using: &generator))
                let action = advance(&job, at: now, isLeftAlone: isLeftAlone, using: &generator)
                if !before.state.isTerminal { expect(action, fits: job, before: before) }
                expectConsistent(job)
            }
            for _ in 0..<Int.random(in: 0..<30, using: &generator) { step(isLeftAlone: false) }
            // Left alone, it ends within a bounded number of steps.
            var steps = 0
            while !job.state.isTerminal {
                steps += 1
                try #require(steps < 200, "it goes round in circles: \(job)")
                step(isLeftAlone: true)
            }
        }
    }
}
