import JobModel
import TestSupport
import Testing

/// Whatever happens in whatever order, a job stays consistent and comes to one end.
@Suite struct JobMachinePropertyTests {
    private func spec(using generator: inout SeededGenerator) throws -> JobSpec {
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

    private func event(using generator: inout SeededGenerator) -> Job.Event {
        switch Int.random(in: 0..<17, using: &generator) {
        case 0, 1: .due
        case 2, 3, 4: .start
        case 5, 6, 7: .finished(.success(.random(depth: 1, using: &generator)), random: 0.5)
        case 8: .finished(.lasting, random: 0.5)
        case 9, 10: .finished(.passing, random: .random(in: 0..<1, using: &generator))
        case 11: .restart
        case 12: .stop(.cancelled)
        case 13: .stop(.deadline)
        case 14: .stop(generator.pick([.cancelled, .deadline]), awaitsEnd: true)
        case 15: .retry(.failed)
        default: .retry(.start)
        }
    }

    private func expectConsistent(_ job: Job, _ sourceLocation: SourceLocation = #_sourceLocation) {
        func check(_ isSo: Bool, _ what: Comment) { #expect(isSo, what, sourceLocation: sourceLocation) }
        let finallyLinks = job.spec.links.indices.filter { job.spec.links[$0].isFinally }.map { $0 + 1 }
        check(zip(job.ended, job.ended.dropFirst()).allSatisfy { $0 < $1 }, "links end in order, each once")
        check(
            job.outcomes.allSatisfy { $0.attempts >= 1 && $0.finishedAt >= $0.startedAt }, "every outcome was tried for"
        )
        check((0...job.spec.links.count).contains(job.link), "the link is one of the job's")
        check((job.finishedAt != nil) == job.state.isTerminal, "only what is over has an end")
        check((job.notBefore != nil) == (job.state == .scheduled), "only what is scheduled waits for a time")
        switch job.state {
        case .scheduled, .queued, .running:
            check(job.step != nil || job.isEnding, "there is something to run")
            check((job.carried != nil) == (job.link > 0), "what comes in is there behind the source")
            check(job.outcomes.allSatisfy { $0.link < job.link }, "only links before this one have ended")
            check((job.attempt > 0) || job.state != .running, "what runs is tried")
            if let step = job.step {
                check(job.attempt <= job.spec.retryPolicy(of: step).max + 1, "the policy bounds the attempts")
            }
            if job.stop != nil, !job.isEnding {
                check(finallyLinks.contains(job.link), "after a stop only finally links run")
            }
        case .succeeded:
            check(job.stop == nil && job.carried?.kind == nil && job.carried != nil, "a success has a result")
        case .failed:
            check(job.carried?.kind != nil && job.stop != .cancelled, "a failure has an error")
            if job.stop == .deadline { check(job.carried?.kind == .deadline, "it passed its deadline") }
        case .cancelled:
            check(job.stop == .cancelled && job.carried?.kind == .cancelled, "it was cancelled")
        }
        if job.state.isTerminal {
            check(
                job.ended.filter(finallyLinks.contains) == finallyLinks,
                "every finally link ran: \(job.ended) of \(job.spec)")
        }
    }

    private func expect(_ action: Job.Action, fits job: Job, before: Job) {
        switch action {
        case .enqueue: #expect(job.state == .queued)
        case .run: #expect(job.state == .running)
        case .wait: #expect(job.state == .scheduled)
        case .finish: #expect(job.state.isTerminal)
        case .interrupt(let runs):
            #expect(before.state == .running && (runs ? job.state == .running : job.state.isTerminal))
        case .none: #expect(job.state == before.state && job.link == before.link)
        }
    }

    @Test func job_endsOnce_whateverHappens() throws {
        var generator = SeededGenerator(seed: 9)
        for _ in 0..<4000 {
            var job = Job(submitting: try spec(using: &generator), owner: 1, at: .after(0))
            var time = 0.0
            for _ in 0..<Int.random(in: 0..<30, using: &generator) {
                time += 1
                let before = job
                let event = event(using: &generator)
                do {
                    let action = try job.handle(event, at: .after(time))
                    expect(action, fits: job, before: before)
                    if before.state.isTerminal {
                        guard case .retry = event else {
                            Issue.record("\(event) led out of \(before.state)")
                            return
                        }
                        #expect(before.state != .succeeded && job.state == .queued)
                    }
                } catch {
                    #expect(error.state == before.state)
                    #expect(job == before)
                }
                expectConsistent(job)
            }
            // Left alone it comes to its end, in a bounded number of steps.
            var steps = 0
            while !job.state.isTerminal {
                time += 1
                steps += 1
                try #require(steps < 200, "it goes round in circles: \(job)")
                switch job.state {
                case .scheduled: _ = try job.handle(.due, at: .after(time))
                case .queued: _ = try job.handle(.start, at: .after(time))
                default:
                    let outcome: Outcome = generator.pick([.success(1), .lasting, .passing])
                    _ = try job.handle(.finished(outcome, random: 0.5), at: .after(time))
                }
                expectConsistent(job)
            }
        }
    }

    @Test func finallyLinks_allRun_whereverItIsCancelled() throws {
        var generator = SeededGenerator(seed: 10)
        for _ in 0..<500 {
            let spec = try spec(using: &generator)
            for steps in 0..<12 {
                var job = Job(submitting: spec, owner: 1, at: .after(0))
                for _ in 0..<steps where !job.state.isTerminal {
                    switch job.state {
                    case .scheduled: _ = try job.handle(.due, at: .after(1))
                    case .queued: _ = try job.handle(.start, at: .after(1))
                    default: try job.finish(generator.pick([.success(1), .lasting, .passing]))
                    }
                }
                if job.state.isTerminal { continue }
                _ = try job.handle(.stop(generator.pick([.cancelled, .deadline])), at: .after(3))
                expectConsistent(job)
                if job.state == .queued { try job.start(at: 4) }
                while !job.state.isTerminal {
                    #expect(job.state == .running)
                    try job.finish(at: 4)
                }
                expectConsistent(job)
                #expect(job.state != .succeeded)
            }
        }
    }
}
