import JobModel
import Testing

@testable import JobCore

@Suite struct RestingJobsTests {
    private func job(_ id: JobID, of owner: UInt32) throws -> Job {
        var job = Job(
            submitting: try .parsing(#"{"source":{"type":"timer","seconds":1}}"#), owner: owner,
            at: Timestamp(milliseconds: 0))
        job.id = id
        return job
    }

    private func resting(_ jobs: [(id: JobID, owner: UInt32)]) throws -> RestingJobs {
        var resting = RestingJobs()
        for (id, owner) in jobs { resting.insert(try job(id, of: owner), .timer(isTooLong: false), nil) }
        return resting
    }

    @Test func jobs_areCounted_byTheirOwner() throws {
        var resting = try resting([(1, 7), (2, 7), (3, 8)])
        #expect(resting.count == 3 && resting.count(of: 7) == 2 && resting.count(of: 9) == 0)
        let first = resting.remove(1)
        let again = resting.remove(1)
        #expect(first?.owner == 7 && again == nil && resting.count(of: 7) == 1)
        _ = resting.remove(2)
        #expect(resting.count == 1 && resting.count(of: 7) == 0)
    }

    @Test func owners_takeTurns_withWhatIsDue() throws {
        var resting = try resting([(1, 7), (2, 7), (3, 7), (4, 8), (5, 8)])
        for id in [1, 2, 3, 4, 5, 4] as [JobID] { resting.fell(due: id) }
        var pages: [[JobID]] = []
        while case let page = resting.nextDue(2, where: { _ in true }), !page.isEmpty { pages.append(page) }
        #expect(pages == [[1, 2], [4, 5], [3]])
    }

    @Test func owner_whoMayNotGoOn_isPassedOver() throws {
        var resting = try resting([(1, 7), (2, 8)])
        resting.fell(due: 1)
        resting.fell(due: 2)
        let others = resting.nextDue(9) { $0 != 7 }
        let none = resting.nextDue(9) { $0 != 7 }
        let later = resting.nextDue(9) { _ in true }
        #expect(others == [2] && none.isEmpty && later == [1])
    }

    @Test func whatWasNotRead_comesFirst_theNextTime() throws {
        var resting = try resting([(1, 7), (2, 7), (3, 7)])
        for id in [1, 2, 3] as [JobID] { resting.fell(due: id) }
        let page = resting.nextDue(2) { _ in true }
        _ = resting.remove(1)
        resting.putBack(page)
        let next = resting.nextDue(9) { _ in true }
        #expect(next == [2, 3], "without the one that is gone")
    }

    @Test func jobThatCameBack_isNotDue() throws {
        var resting = try resting([(1, 7)])
        resting.fell(due: 1)
        _ = resting.remove(1)
        resting.insert(try job(1, of: 7), .turn, nil)
        let due = resting.nextDue(9) { _ in true }
        #expect(due.isEmpty && resting[1]?.isDue == false)
    }
}
