import JobModel
import Testing

@testable import JobCore

/// Which rows of the store may be believed.
@Suite struct JobTableTests {
    private func job(_ id: JobID, _ state: JobState = .queued, parent: JobID? = nil) throws -> Job {
        let spec = try JobSpecReader.spec(["source": ["type": "error"]], limits: JobLimits())
        return Job(
            id: id, spec: spec, owner: 1, parent: parent.map { Job.Parent(job: $0, link: 0, index: 0, depth: 1) },
            state: state, createdAt: Timestamp(milliseconds: 0))
    }

    private func insert(_ job: Job, into table: inout JobTable) -> ActiveJob {
        let entry = ActiveJob(job)
        table.insert(entry)
        return entry
    }

    @Test func row_isBelieved_whereNothingElseIsKnown() throws {
        let table = JobTable()
        #expect(try table.present(job(1))?.state == .queued && table.known(1) == nil)
    }

    @Test func row_givesWayToTheJobInMemory() throws {
        var table = JobTable()
        let entry = insert(try job(1), into: &table)
        entry.job.state = .running
        #expect(try table.present(job(1))?.state == .running && table.count == 1)
    }

    @Test func row_givesWayToWhatLeft_untilTheReadIsOver() throws {
        var table = JobTable()
        let first = table.beginRead()
        let entry = insert(try job(1), into: &table)
        entry.job.state = .succeeded
        table.remove(1)
        let second = table.beginRead()
        #expect(try table.present(job(1))?.state == .succeeded && table.departureCount == 1)
        // Of what was asked after it left, rows are as it left.
        table.endRead(second)
        #expect(try table.present(job(1))?.state == .succeeded)
        table.endRead(first)
        #expect(try table.present(job(1))?.state == .queued && table.departureCount == 0)
    }

    @Test func row_isOfNoJob_whereItWasRemovedMeanwhile() throws {
        var table = JobTable()
        let read = table.beginRead()
        table.remove(1, isRemoved: true)
        _ = insert(try job(2), into: &table)
        table.remove(2, isRemoved: true)
        #expect(try table.present(job(1)) == nil && table.present(job(2)) == nil)
        table.endRead(read)
        #expect(try table.present(job(1)) != nil && table.departureCount == 0)
    }

    @Test func nothingIsRemembered_whereNothingIsAsked() throws {
        var table = JobTable()
        _ = insert(try job(1), into: &table)
        table.remove(1)
        table.remove(7, isRemoved: true)
        #expect(table.departureCount == 0)
    }

    @Test func departure_isTheLastOne_whereAJobCameAndLeftAgain() throws {
        var table = JobTable()
        let first = table.beginRead()
        _ = insert(try job(1), into: &table)
        table.remove(1)
        let second = table.beginRead()
        let entry = insert(try job(1), into: &table)
        entry.job.state = .failed
        table.remove(1)
        table.endRead(first)
        #expect(try table.present(job(1))?.state == .failed)
        table.endRead(second)
        #expect(table.departureCount == 0)
    }

    @Test func departures_areBoundedByTheOldestOpenRead() throws {
        var table = JobTable()
        for id in 1...10_000 as ClosedRange<JobID> {
            let read = table.beginRead()
            _ = insert(try job(id), into: &table)
            table.remove(id)
            table.endRead(read)
        }
        #expect(table.departureCount == 0 && table.openReads == 0)
        let departed = Mirror(reflecting: table).children.first { $0.label == "departed" }
        let count = try #require(departed.map { Mirror(reflecting: $0.value).children.count })
        #expect(count <= 130)
    }

    @Test func children_areKnownToTheParentInMemory() throws {
        var table = JobTable()
        let parent = insert(try job(1), into: &table)
        _ = insert(try job(2, parent: 1), into: &table)
        let grandchild = insert(try job(3, parent: 2), into: &table)
        #expect(parent.children == [2])
        #expect(table.ancestors(of: grandchild.job).known.map(\.id) == [2, 1])
        #expect(table.ancestors(of: grandchild.job).missing == nil)
        table.remove(2)
        let (known, missing) = table.ancestors(of: grandchild.job)
        #expect(parent.children.isEmpty && known.isEmpty && missing == 2)
        grandchild.lineage = [Ancestor(parent.job)]
        #expect(table.ancestors(of: grandchild.job).known.map(\.id) == [1])
        #expect(table.all.map(\.job.id) == [1, 3])
    }
}
