import JobModel
import JobStore
import Testing

@testable import JobEngine

@Suite struct JobCountersTests {
    private func job(_ state: JobState, owner: UInt32 = 1, queue: String = "q") throws -> Job {
        let spec = try JobSpecReader.spec(["source": ["type": "error"], "queue": .string(queue)], limits: JobLimits())
        return Job(spec: spec, owner: owner, state: state, createdAt: Timestamp(milliseconds: 0))
    }

    @Test func counts_areByStateOwnerAndQueue() throws {
        var counters = JobCounters()
        counters.load([
            JobCount(owner: 1, queue: "q", state: .queued, count: 5),
            JobCount(owner: 1, queue: "r", state: .scheduled, count: 2),
            JobCount(owner: 2, queue: "q", state: .queued, count: 3),
            JobCount(owner: 2, queue: "q", state: .failed, count: 7),
        ])
        #expect(counters.totals() == [.queued: 8, .scheduled: 2, .failed: 7])
        #expect(counters.totals(queue: "q") == [.queued: 8, .failed: 7])
        #expect(counters.totals(owner: 1) == [.queued: 5, .scheduled: 2])
        #expect(counters.totals(queue: "q", owner: 2) == [.queued: 3, .failed: 7])
        #expect(counters.totals(queue: "none").isEmpty && counters.totals(owner: 9).isEmpty)
        #expect(counters.allWaiting == 10 && counters.waiting(of: 1) == 7 && counters.waiting(of: 2) == 3)
        #expect(counters.waiting(of: 9) == 0)
    }

    @Test func counts_followAJobsLife() throws {
        var counters = JobCounters()
        var job = try job(.scheduled)
        counters.add(job)
        for state in [JobState.queued, .running, .scheduled, .queued, .running, .failed, .queued, .running, .succeeded]
        {
            let old = job.state
            job.state = state
            counters.move(job, from: old)
            counters.move(job, from: state)
            #expect(counters.totals() == [state: 1])
            let waits = state == .scheduled || state == .queued ? 1 : 0
            #expect(counters.allWaiting == waits && counters.waiting(of: 1) == waits)
        }
        counters.remove(RemovedJob(id: 1, owner: 1, queue: "q", state: .succeeded, links: 0))
        #expect(counters.totals().isEmpty && counters.allWaiting == 0)
    }

    @Test func counts_takeNoRoom_forWhatIsGone() throws {
        var counters = JobCounters()
        for owner in 0..<1000 {
            let job = try job(.queued, owner: UInt32(owner), queue: "q\(owner)")
            counters.add(job)
            counters.remove(RemovedJob(id: 1, owner: UInt32(owner), queue: "q\(owner)", state: .queued, links: 0))
        }
        let held = Mirror(reflecting: counters).children.map { Mirror(reflecting: $0.value).children.count }
        #expect(held.reduce(0, +) == 0)
    }
}
