import JobModel
import Testing

@testable import JobCore

/// What the log tells of jobs.
@Suite struct JobLogTests {
    private func story(_ core: CoreDriver, of job: JobID) -> [String] {
        core.logs.filter { $0.job == job }.map(\.message)
    }

    @Test func story_hasEveryTurnOfAJob() throws {
        let core = CoreDriver { $0.jobLogging = .all }
        let job = try core.submit(
            #"{"source": {"type": "url", "url": "http://first/"}, "retry": {"max": 1, "initial": 2, "jitter": false},"#
                + #" "then": [{"then": {"source": {"type": "url", "url": "http://second/"}}}]}"#)
        try core.end(job, .failure(JobError(.network, "The cable was pulled.", retryable: true)))
        core.advance(3)
        try core.end(job)
        core.restart()
        try core.end(job)
        #expect(
            story(core, of: job) == [
                "Job \(job) was accepted.",
                "Job \(job) runs its link 0, attempt 1.",
                "Job \(job) tries its link 0 again in 2 seconds: network: The cable was pulled.",
                "Job \(job) runs its link 0, attempt 2.",
                "Link 0 of job \(job) ended.",
                "Job \(job) goes on at its link 1, as the daemon has started.",
                "Job \(job) runs its link 1, attempt 1.",
                "Job \(job) succeeded.",
            ])
        guard case .job(let entry) = core.logs.first(where: { $0.job == job })?.content else {
            Issue.record("no entry")
            return
        }
        #expect(entry.owner == 1 && entry.host == "first" && entry.queue == "default")
    }

    @Test func story_endsWithTheError_orTheCancel() throws {
        let core = CoreDriver { $0.jobLogging = .bounded }
        let failed = try core.submit(#"{"source": {"type": "url", "url": "http://first/"}, "retry": {"max": 0}}"#)
        try core.end(failed, .failure(JobError(.http, String(repeating: "long ", count: 1000))))
        let last = try #require(core.logs.last { $0.job == failed })
        #expect(last.event == .jobFailed && last.message.hasPrefix("Job \(failed) failed: http: long"))
        #expect(last.message.utf8.count < 400)
        let cancelled = try core.submit(#"{"source": {"type": "url", "url": "http://first/"}}"#)
        core.ask(.cancel(cancelled))
        #expect(story(core, of: cancelled).last == "Job \(cancelled) was cancelled.")
        core.ask(.retry(cancelled, from: .start))
        #expect(story(core, of: cancelled).suffix(2).first == "Job \(cancelled) runs again, as its owner asked.")
    }

    @Test func story_hasTheChildrenOfAList() throws {
        let core = CoreDriver { $0.jobLogging = .all }
        let list = try core.submit(
            #"{"source": {"type": "list", "jobs": [{"source": {"type": "url", "url": "http://child/"}}]}}"#)
        core.endAll()
        let child = try #require(core.logs.compactMap(\.job).first { $0 != list })
        #expect(story(core, of: child).first == "Job \(child) was accepted.")
        #expect(story(core, of: child).last == "Job \(child) succeeded.")
        guard case .job(let entry) = core.logs.first(where: { $0.job == child })?.content else {
            Issue.record("no entry")
            return
        }
        #expect(entry.parent == list)
    }

    @Test func jobs_areNotLogged_whereNobodyWantsIt() throws {
        let core = CoreDriver()
        let job = try core.submit(#"{"source": {"type": "url", "url": "http://first/"}}"#)
        try core.end(job)
        #expect(core.logs.isEmpty)
        var settings = core.settings
        settings.jobLogging = .bounded
        core.ask(.configure(settings), as: .root)
        for _ in 0..<2000 { try core.submit(#"{"source": {"type": "value", "value": 1}}"#) }
        #expect(core.logs.count == 1000, "a flood of jobs is no flood of entries")
    }
}
