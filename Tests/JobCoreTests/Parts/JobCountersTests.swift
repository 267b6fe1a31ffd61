import JobModel
import Testing

@testable import JobCore

@Suite struct JobCountersTests {
    private func job(_ state: JobState, owner: UInt32 = 1, queue: String = "q") throws -> Job {
        let spec = try JobSpecReader.spec(["source": ["type": "error"], "queue": .string(queue)], limits: JobLimits())
        return Job(spec: spec, owner: owner, state: state, createdAt: Timestamp(milliseconds: 0))
    }

    @Test func counts_areByStateOwnerAndQueue() {
        var counters = JobCounters()
        counters.load([
            JobCount(owner: 1, queue: "q", state: .queued, count: 5, bytes: 50),
            JobCount(owner: 1, queue: "r", state: .scheduled, count: 2, bytes: 20),
            JobCount(owner: 2, queue: "q", state: .queued, count: 3, bytes: 30),
            JobCount(owner: 2, queue: "q", state: .failed, count: 7, bytes: 70),
        ])
        #expect(counters.totals() == [.queued: 8, .scheduled: 2, .failed: 7])
        #expect(counters.totals(queue: "q") == [.queued: 8, .failed: 7])
        #expect(counters.totals(owner: 1) == [.queued: 5, .scheduled: 2])
        #expect(counters.totals(queue: "q", owner: 2) == [.queued: 3, .failed: 7])
        #expect(counters.totals(queue: "none").isEmpty && counters.totals(owner: 9).isEmpty)
        #expect(counters.allWaiting == 10 && counters.waiting(of: 1) == 7 && counters.waiting(of: 2) == 3)
        #expect(counters.waiting(of: 9) == 0)
        #expect(counters.queues() == ["q", "r"])
        #expect(counters.keys(with: .queued).map(\.owner) == [1, 2])
        #expect(counters.bytes(of: 1) == 70 && counters.bytes(of: 2) == 100 && counters.bytes(of: 9) == 0)
        #expect(counters.finishedBytes == 70)
    }

    @Test func counts_followAJobsLife() throws {
        var counters = JobCounters()
        var job = try job(.scheduled)
        counters.add(1, owner: 1, queue: "q", .scheduled)
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
        counters.remove(
            RemovedJob(id: 1, owner: 1, queue: "q", state: .succeeded, links: 0), countedAs: .succeeded, stored: nil)
        #expect(counters.totals().isEmpty && counters.allWaiting == 0)
    }

    @Test func job_isCountedOut_asItWasCounted_whereItIsInMemory() {
        var counters = JobCounters()
        counters.add(1, owner: 1, queue: "q", .running)
        counters.addBytes(300, 1, .queued)
        // The store had saved more of it than is known here.
        counters.remove(
            RemovedJob(id: 1, owner: 1, queue: "q", state: .succeeded, links: 0, size: 900), countedAs: .running,
            stored: (300, .queued))
        #expect(counters.totals().isEmpty && counters.bytes(of: 1) == 0 && counters.finishedBytes == 0)
    }

    @Test func bytes_doNotOverflow() {
        var counters = JobCounters()
        for _ in 0..<3 { counters.addBytes(.max, 1, .failed) }
        #expect(counters.bytes(of: 1) == .max && counters.finishedBytes == .max)
    }

    @Test func counts_takeNoRoom_forWhatIsGone() {
        var counters = JobCounters()
        for owner in 0..<1000 as Range<UInt32> {
            counters.add(1, owner: owner, queue: "q\(owner)", .queued)
            counters.addBytes(10, owner, .queued)
            counters.remove(
                RemovedJob(id: 1, owner: owner, queue: "q\(owner)", state: .queued, links: 0, size: 10),
                countedAs: .queued, stored: nil)
        }
        let held = Mirror(reflecting: counters).children.map { Mirror(reflecting: $0.value).children.count }
        #expect(held.reduce(0, +) == 0)
    }
}
