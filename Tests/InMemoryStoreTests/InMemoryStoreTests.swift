import InMemoryStore
import JobModel
import Testing

/// Faults that are asked for, and what an oracle sees. What all stores have in common has a suite of its own.
@Suite struct InMemoryStoreTests {
    let store = InMemoryStore()

    @Test(arguments: [false, true]) func aCommit_leavesNothing_whenItIsToFail(isLost: Bool) {
        let id = store.insert(.sample(key: "k"))
        if isLost { store.loseNextCommit() } else { store.failNextCommit() }
        let end = store.round { transaction throws(StoreError) in
            _ = try transaction.insert([NewJobRow(row: .sample(), document: .spec([]))])
            try transaction.delete(id)
            _ = try transaction.nextNumber()
        }
        switch (isLost, end) {
        case (false, .undone), (true, .unknown): break
        default: Issue.record("\(end)")
        }
        #expect(store.rows.allJobs.map(\.id) == [id])
        #expect(store.changes.isEmpty)
        #expect(store.insert(.sample()) == id + 1)
    }

    @Test(arguments: [false, true]) func aRoundOfUnknownEnd_isBackAfterAKill_unlessAnotherFollowed(follows: Bool) {
        let id = store.insert(.sample())
        store.loseNextCommit()
        _ = store.round { transaction throws(StoreError) in try transaction.delete(id) }
        #expect(store.isUnsettled)
        if follows { #expect(store.insert(.sample()) == id + 1) }
        #expect(store.isUnsettled != follows)
        store.bringBack()
        #expect(store.rows.allJobs.map(\.id) == (follows ? [id, id + 1] : []))
        #expect(store.changes.count == 1)
    }

    @Test func theCallAskedFor_fails_andAllBehindIt() {
        store.failRead(after: 2)
        var failures = 0
        let end = store.round { transaction throws(StoreError) in
            for _ in 0..<4 {
                do throws(StoreError) {
                    _ = try transaction.insert([NewJobRow(row: .sample(), document: .spec([]))])
                } catch {
                    failures += 1
                }
            }
        }
        guard case .undone = end else {
            Issue.record("\(end)")
            return
        }
        #expect(failures == 3)
        #expect(!store.isFaulty)
        #expect(store.rows.jobCount == 0)
    }

    @Test func aDamagedRow_countsAsNone() {
        let ids = [store.insert(.sample()), store.insert(.sample()), store.insert(.sample())]
        store.setDamaged(ids[1], true)
        store.commit { transaction throws(StoreError) in
            #expect(try transaction.job(ids[1]) == nil)
            let ready = try transaction.ready(queue: "q", owner: 1, after: nil, excluding: [], limit: 2)
            #expect(ready.map(\.position.id) == [ids[0], ids[2]])
        }
    }

    @Test func anUnreadableRow_failsEachRound_thatReadsIt() {
        let id = store.insert(.sample())
        store.setUnreadable(id, true)
        for _ in 0..<2 {
            let end = store.round { transaction throws(StoreError) in _ = try transaction.job(id) }
            guard case .undone = end else {
                Issue.record("\(end)")
                return
            }
        }
        store.setUnreadable(id, false)
        store.commit { transaction throws(StoreError) in #expect(try transaction.job(id) != nil) }
    }

    @Test func aFullStore_takesNoJobs_butDropsThem() {
        let id = store.insert(.sample())
        store.setFull(true)
        let end = store.round { transaction throws(StoreError) in
            _ = try transaction.insert([NewJobRow(row: .sample(), document: .spec([]))])
        }
        guard case .undone = end else {
            Issue.record("\(end)")
            return
        }
        store.commit { transaction throws(StoreError) in try transaction.delete(id) }
        #expect(store.rows.jobCount == 0)
    }

    @Test func changes_tellEachRowOnce_asItWasAndAsItIs() {
        let id = store.insert(.sample())
        store.commit { transaction throws(StoreError) in
            guard var row = try transaction.job(id) else { return }
            for state in [JobState.running, .failed] {
                row.state = state
                try transaction.update(row)
            }
            let new = try transaction.insert([NewJobRow(row: .sample(), document: .spec([]))])
            guard case .created(let second)? = new.first else { return }
            try transaction.delete(second)
        }
        #expect(store.changes.map(\.id) == [id])
        #expect(store.changes.map(\.before?.state) == [.queued])
        #expect(store.changes.map(\.after?.state) == [.failed])
    }
}

extension InMemoryStore {
    func insert(_ row: JobRow) -> JobID {
        var id: JobID = 0
        commit { transaction throws(StoreError) in
            guard case .created(let new)? = try transaction.insert([NewJobRow(row: row, document: .spec([]))]).first
            else { return }
            id = new
        }
        return id
    }

    /// Runs a round that is to be committed.
    func commit(_ body: (any JobTransaction) throws(StoreError) -> Void) {
        if case .committed = round(body) { return }
        Issue.record("The round is not committed.")
    }
}

extension JobRow {
    static func sample(key: String? = nil) -> JobRow {
        JobRow(
            owner: 1, groups: nil, parent: nil,
            terms: JobTerms(
                plan: JobPlan(
                    source: JobPlan.Step(source: .url, timeout: nil, retry: .standard), links: [],
                    deadline: nil),
                queue: "q", priority: 0, key: key, tags: []),
            specSize: 2, createdAt: Timestamp(milliseconds: 0), state: .queued)
    }
}
