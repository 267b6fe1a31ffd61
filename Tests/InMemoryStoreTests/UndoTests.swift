import InMemoryStore
import JobModel
import TestSupport
import Testing

/// Rounds that are undone leave rows and indexes as they were: a store that had such rounds answers like one that had none.
@Suite struct UndoTests {
    @Test(arguments: 1...8) func anUndoneRound_leavesNoTrace(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let (tried, plain) = (InMemoryStore(), InMemoryStore())
        for number in 0..<120 {
            let undone = Changes(seed: seed * 1000 + UInt64(number))
            if random.chance(0.5) { tried.failNextCommit() } else { tried.loseNextCommit() }
            if random.chance(0.5) { tried.failRead(after: Int.random(in: 1...20, using: &random)) }
            _ = tried.round { transaction throws(StoreError) in try undone.make(in: transaction) }
            tried.heal()
            let kept = Changes(seed: seed * 1000 + UInt64(number) + 500)
            for store in [tried, plain] {
                store.commit { transaction throws(StoreError) in try kept.make(in: transaction) }
            }
            #expect(answers(tried) == answers(plain), "after round \(number)")
        }
        #expect(tried.rows.jobCount > 0)
    }

    /// What the queries for jobs find, and all rows.
    private func answers(_ store: InMemoryStore) -> [String] {
        var answers: [String] = []
        store.commit { transaction throws(StoreError) in
            for hosts in [[], ["x"]] as [Set<String>] {
                for row in try transaction.ready(queue: "q", owner: 1, after: nil, excluding: hosts, limit: 100) {
                    answers.append("\(row)")
                }
            }
            let wall = Timestamp(milliseconds: 60)
            var found = [
                try transaction.due(steady: 60, wall: wall, limit: 1000),
                try transaction.running(exceptLife: 2, limit: 100), try transaction.suspects(after: 0, limit: 100),
                try transaction.finished(owner: nil, before: wall, limit: 100),
                try transaction.finished(owner: 1, before: wall, limit: 100),
                try transaction.children(of: 1, fromLink: 0, limit: 100),
            ]
            for which in [ChildSelection.all, .unfinished, .gated] {
                found.append(try transaction.children(of: 1, list: 1, which, after: 0, limit: 100))
            }
            answers += found.map { "\($0.map(\.id))" }
            answers.append("\(try transaction.dueTimes())")
            answers.append("\(try transaction.nextWork(ofOwnerAbove: nil).map(\.id) ?? 0)")
            answers.append("\(try transaction.hasWork(.removeTree, of: 3))")
            let counts = try transaction.counts()
            answers.append("\(counts.map { "\($0.key.state) \($0.value.jobs)" }.sorted())")
            answers.append("\(try transaction.nextNumber())")
        }
        let rows = store.rows
        answers += rows.allJobs.map { "\($0.id) \($0.state) \($0.version) \(rows.holdsKey($0.id))" }
        answers.append("\(Array(rows.allWork)) \(Array(rows.allLists)) \(Array(rows.checkpointOwners))")
        return answers
    }
}

/// Some changes, the same each time for the same seed.
private struct Changes {
    let seed: UInt64

    func make(in transaction: any JobTransaction) throws(StoreError) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<8 {
            let id = JobID.random(in: 1...40, using: &random)
            switch Int.random(in: 0...5, using: &random) {
            case 0, 1: _ = try transaction.insert([NewJobRow(row: row(&random), document: .spec([]))])
            case 2, 3:
                guard var row = try transaction.job(id) else { continue }
                change(&row, &random)
                try transaction.update(row)
            case 4:
                // Mostly of a job that has none.
                for id: JobID in 1...400 where random.chance(0.2) { try transaction.releaseKey(of: id) }
                if random.chance(0.5) { try transaction.delete(id) }
            default: try changeRecords(of: id, in: transaction, &random)
            }
        }
    }

    private func row(_ random: inout SeededGenerator) -> JobRow {
        var row = JobRow.sample(key: random.chance(0.3) ? "k\(Int.random(in: 1...2, using: &random))" : nil)
        if random.chance(0.4) {
            let list = Int64.random(in: 1...2, using: &random)
            row = JobRow(
                owner: 1, groups: nil, parent: JobRow.Parent(job: 1, link: Int(list), list: list, index: 0, depth: 1),
                terms: JobRow.sample().terms, specSize: 2, createdAt: row.createdAt, state: .queued)
        }
        change(&row, &random)
        return row
    }

    private func change(_ row: inout JobRow, _ random: inout SeededGenerator) {
        row.version += 1
        row.state = random.pick(JobState.allCases)
        row.waiting = random.chance(0.3) ? .gate : .nothing
        row.host = random.pick([nil, "x", "y"])
        let time = Int64.random(in: 0...100, using: &random)
        row.due = random.chance(0.3) ? time : nil
        row.deadline = random.chance(0.3) ? time : nil
        row.notBefore = random.chance(0.3) ? Timestamp(milliseconds: time) : nil
        row.run = row.state == .running ? RunID(life: time % 3, number: 1) : nil
        row.finishedAt = row.state.isTerminal ? Timestamp(milliseconds: time) : nil
        row.crashes = random.chance(0.2) ? 1 : 0
    }

    private func changeRecords(
        of id: JobID, in transaction: any JobTransaction, _ random: inout SeededGenerator
    ) throws(StoreError) {
        let number = try transaction.nextNumber()
        try transaction.put(
            ListRow(
                job: id, id: number, link: 0, phase: .open, mode: .first, concurrency: nil, total: 1, template: .null))
        try transaction.save(checkpoint: random.chance(0.5) ? [1] : nil, of: id, link: 0)
        try transaction.put([
            CountKey(owner: 1, queue: "q", state: random.pick(JobState.allCases)): CountValue(jobs: Int(id % 3))
        ])
        let work = try transaction.add(WorkRow(kind: random.pick(WorkRow.Kind.allCases), job: id % 5, owner: 1))
        try transaction.endWork(work - 3)
        if random.chance(0.3) { try transaction.closeList(of: id) }
    }
}
