import JobModel
import Testing

/// Rounds as a whole: what is seen inside one, behind it, and after one that was undone.
@Suite struct RoundTests {
    @Test(arguments: StoreKind.allCases) func readsItsOwnWrites(_ kind: StoreKind) throws {
        let store = try kind.make()
        try store.round { transaction throws in
            let id = try #require(try transaction.create([.sample()]).first)
            var row = try #require(try transaction.job(id))
            #expect(row == JobRow.sample().with { $0.id = id })
            row.state = .running
            row.run = RunID(life: 1, number: 1)
            try transaction.update(row)
            #expect(try transaction.job(id) == row)
            #expect(try transaction.document(of: id) == .spec(Array("{}".utf8)))
            try transaction.delete(id)
            #expect(try transaction.job(id) == nil)
            #expect(try transaction.document(of: id) == nil)
        }
    }

    @Test(arguments: StoreKind.allCases) func keepsEachColumn(_ kind: StoreKind) throws {
        let store = try kind.make()
        let plain = try store.insert([.full, .full.with { $0.carried = .failure(JobError(.dns, "No.")) }])
        let changed = JobRow.full.with {
            $0.state = .succeeded
            $0.waiting = .nothing
            $0.run = nil
            $0.stop = nil
            ($0.due, $0.notBefore, $0.deadline, $0.host) = (nil, nil, nil, nil)
            ($0.startedAt, $0.linkStartedAt) = (nil, nil)
            $0.finishedAt = Timestamp(milliseconds: 5)
            $0.carried = .success(.inline(Array("[]".utf8)))
            ($0.outcomes, $0.blobs, $0.failedLink, $0.lastFailure) = ([], [], nil, nil)
            $0.isRemoving = true
        }
        let first = JobRow.full.with { $0.id = plain[0] }
        let second = changed.with { $0.id = plain[1] }
        try store.round { transaction throws in
            #expect(try transaction.job(plain[0]) == first)
            #expect(try transaction.job(plain[1])?.carried?.error?.message == "No.")
            try transaction.update(second)
        }
        try store.round { transaction throws in
            #expect(try transaction.job(plain[1]) == second)
        }
    }

    @Test(arguments: StoreKind.allCases) func leavesNothingOfAnUndoneRound(_ kind: StoreKind) throws {
        let store = try kind.make()
        let id = try #require(try store.insert([.sample(key: "k", tags: ["t"])]).first)
        let key = CountKey(owner: 1, queue: "q", state: .queued)
        store.undoneRound { transaction throws(StoreError) in
            _ = try transaction.insert([NewJobRow(row: .sample(key: "other"), document: .spec([]))])
            try transaction.delete(id)
            try transaction.put([key: CountValue(jobs: 1, bytes: 2)])
            _ = try transaction.add(WorkRow(kind: .removeTree, job: id, owner: 1))
            try transaction.put(QueueOverrides(), ofQueue: "q")
            try transaction.put(list(of: id, id: 1))
            _ = try transaction.ready(queue: "default", owner: 1000, after: nil, excluding: [], limit: 10)
        }
        try store.round { transaction throws in
            #expect(try transaction.job(id)?.key == "k")
            #expect(try transaction.job(id + 1) == nil)
            #expect(try transaction.counts().isEmpty)
            #expect(try transaction.work(after: 0, limit: 10).isEmpty)
            #expect(try transaction.queues().isEmpty)
            #expect(try transaction.list(of: id) == nil)
            let ready = try transaction.ready(queue: "default", owner: 1000, after: nil, excluding: [], limit: 10)
            #expect(ready.map(\.position.id) == [id])
            #expect(try transaction.holder(ofKey: "other", owner: 1000) == nil)
        }
    }

    @Test(arguments: StoreKind.allCases) func refusesCallsAfterAnErrorAndAfterTheRound(_ kind: StoreKind) throws {
        let store = try kind.make()
        var kept: (any JobTransaction)?
        try store.round { kept = $0 }
        #expect(throws: StoreError.self) { try kept?.job(1) }
    }

    @Test(arguments: StoreKind.allCases) func neverGivesAnIDTwice(_ kind: StoreKind) throws {
        let store = try kind.make()
        let first = try store.insert([.sample(), .sample(), .sample()])
        #expect(first == first.sorted() && Set(first).count == 3)
        try store.round { transaction throws in
            for id in first { try transaction.delete(id) }
        }
        store.undoneRound { transaction throws(StoreError) in
            _ = try transaction.insert([NewJobRow(row: .sample(), document: .spec([]))])
        }
        let second = try store.insert([.sample()])
        #expect(try #require(second.first) > (first.last ?? 0))
        let numbers = try store.round { transaction throws in
            [try transaction.nextNumber(), try transaction.nextNumber()]
        }
        let later = try store.round { try $0.nextNumber() }
        #expect(numbers[0] < numbers[1] && numbers[1] < later)
    }

    @Test(arguments: StoreKind.allCases) func givesAKeyToOneJobOfAnOwner(_ kind: StoreKind) throws {
        let store = try kind.make()
        func new(_ owner: UInt32, _ digest: UInt64) -> NewJobRow {
            NewJobRow(row: .sample(owner: owner, key: "k"), document: .spec([]), digest: digest)
        }
        func expect(_ job: JobID?, _ digest: UInt64, _ transaction: any JobTransaction) throws {
            let holder = try transaction.holder(ofKey: "k", owner: 1)
            #expect(holder?.job == job && holder?.digest ?? 0 == digest)
        }
        let id: JobID = try store.round { transaction throws in
            try expect(nil, 0, transaction)
            let id = try transaction.insert([new(1, .max), new(2, 1)])[0]
            try expect(id, .max, transaction)
            return id
        }
        try store.round { transaction throws in
            try expect(id, .max, transaction)
            var row = try #require(try transaction.job(id))
            row.isRemoving = true
            try transaction.update(row)
            try transaction.releaseKey(of: id)
            #expect(try transaction.job(id) != nil)
            try expect(nil, 0, transaction)
            #expect(try transaction.insert([new(1, 3)]) == [id + 2])
        }
        try store.round { transaction throws in
            try transaction.delete(id + 2)
            try expect(nil, 0, transaction)
            #expect(try transaction.insert([new(1, 5)]) == [id + 3])
            try expect(id + 3, 5, transaction)
        }
    }
}

func list(of job: JobID, id: Int64, template: StoredValue? = nil, link: Int = 0) -> ListRow {
    ListRow(
        job: job, id: id, link: link, phase: .making, mode: .all, concurrency: 2, total: 5, template: template)
}
