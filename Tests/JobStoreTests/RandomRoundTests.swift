import JobModel
import TestSupport
import Testing

/// The same random rounds on two stores give the same answers: on one all that a round does in one go, on the other each
/// change is in the database before the next call.
@Suite struct RandomRoundTests {
    @Test(arguments: StoreKind.allCases, 1...4) func answersAlike(_ kind: StoreKind, seed: UInt64) throws {
        let store = try kind.make()
        let other = try StoreKind.sqlite.make()
        var rounds = RandomRounds(seed: seed)
        for number in 0..<150 {
            let round = rounds.next()
            let answers = try answers(round, store, isEager: false)
            let others = try self.answers(round, other, isEager: true)
            for (index, (answer, expected)) in zip(answers, others).enumerated() where answer != expected {
                Issue.record("round \(number), call \(index) of seed \(seed):\n\(answer)\n\(expected)")
                return
            }
            #expect(answers.count == others.count)
        }
    }

    private func answers(_ round: RandomRounds.Round, _ store: StoreUnderTest, isEager: Bool) throws -> [String] {
        var answers: [String] = []
        func run(_ transaction: any JobTransaction) throws(StoreError) {
            for call in round.calls {
                if isEager { _ = try transaction.suspects(after: 0, limit: 0) }
                answers.append(try call(transaction))
            }
        }
        if round.isUndone {
            store.undoneRound(run)
        } else {
            try store.round { transaction throws in try run(transaction) }
        }
        return answers
    }
}

/// Makes rounds of random calls.
struct RandomRounds {
    typealias Call = (any JobTransaction) throws(StoreError) -> String

    struct Round {
        var calls: [Call] = []
        var isUndone = false
    }

    private var random: SeededGenerator
    /// Jobs that were inserted, gone ones among them.
    private var jobs: JobID = 0
    private static let owners: [UInt32] = [0, 1000, 1001]
    private static let queues = ["a", "b"]
    private static let wall = Timestamp(milliseconds: 1_700_000_000_000)

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    mutating func next() -> Round {
        var round = Round(isUndone: random.chance(0.1))
        for _ in 0..<Int.random(in: 1...40, using: &random) {
            round.calls.append(random.chance(0.5) ? change(round.isUndone) : query())
        }
        return round
    }

    private mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    private mutating func job() -> JobID { JobID(number(max(1, Int(jobs) - 60)...max(1, Int(jobs)))) }

    // MARK: Changes

    private mutating func change(_ isUndone: Bool) -> Call {
        switch number(0...9) {
        case 0...3 where !isUndone: insert()
        case 0...6: update()
        case 7: delete()
        case 8: list()
        default: records()
        }
    }

    private mutating func row() -> JobRow {
        let owner = random.pick(Self.owners)
        var parent: JobRow.Parent?
        // Indexes grow with ids.
        if jobs > 5, random.chance(0.4) {
            let link = number(0...1)
            parent = JobRow.Parent(
                job: JobID(number(1...5)), link: link, list: Int64(link + 1), index: Int(jobs), depth: 1)
        }
        let row = JobRow.sample(
            owner: owner, queue: random.pick(Self.queues), priority: number(-1...1),
            key: random.chance(0.2) ? "k\(number(0...20))" : nil, tags: random.chance(0.3) ? ["t"] : [], parent: parent)
        return changed(row)
    }

    private mutating func changed(_ row: JobRow) -> JobRow {
        var row = row
        row.state = random.pick(JobState.allCases)
        row.waiting = random.chance(0.2) ? .gate : .nothing
        row.host = random.pick([nil, "x:80", "y:80"])
        row.due = random.chance(0.3) ? Int64(number(0...100)) : nil
        row.notBefore = random.chance(0.3) ? Self.wall.adding(seconds: Double(number(0...100))) : nil
        row.deadline = random.chance(0.3) ? Int64(number(0...100)) : nil
        row.run = row.state == .running ? RunID(life: Int64(number(1...3)), number: Int64(number(1...9))) : nil
        row.finishedAt = row.state.isTerminal ? Timestamp(milliseconds: Int64(number(1...1000))) : nil
        row.crashes = random.chance(0.1) ? 1 : 0
        row.isRemoving = random.chance(0.05)
        row.carried = random.chance(0.5) ? .success(.inline(Array("\(number(0...1000))".utf8))) : nil
        row.version += 1
        return row
    }

    private mutating func insert() -> Call {
        let new = (0..<number(1...12)).map { _ in
            NewJobRow(row: row(), document: .spec(Array("{}".utf8)), digest: UInt64(number(1...2)))
        }
        // As many ids are given at most.
        jobs += JobID(new.count)
        return { transaction throws(StoreError) in
            try new.map { (job) throws(StoreError) in
                let holder = try job.row.key.flatMap { (key) throws(StoreError) in
                    try transaction.holder(ofKey: key, owner: job.row.owner)
                }
                return if let holder { "\(holder)" } else { "\(try transaction.insert(job))" }
            }.description
        }
    }

    private mutating func update() -> Call {
        let id = job()
        let template = changed(.sample())
        return { transaction throws(StoreError) in
            guard let row = try transaction.job(id) else { return "none" }
            try transaction.update(
                row.with { row in
                    (row.state, row.waiting, row.host, row.due) = (
                        template.state, template.waiting, template.host, template.due
                    )
                    (row.notBefore, row.deadline, row.run) = (template.notBefore, template.deadline, template.run)
                    (row.finishedAt, row.crashes, row.carried) = (
                        template.finishedAt, template.crashes, template.carried
                    )
                    row.isRemoving = template.isRemoving
                    row.version += 1
                })
            return row.text
        }
    }

    private mutating func delete() -> Call {
        let id = job()
        return { transaction throws(StoreError) in
            try transaction.delete(id)
            return "\(try transaction.job(id) == nil)"
        }
    }

    private mutating func list() -> Call {
        let id = JobID(number(1...5))
        var list = list(of: id, id: Int64(number(1...3)), template: .inline(Array("{}".utf8)))
        list.made = number(0...5)
        let isClosed = random.chance(0.3)
        return { [list] transaction throws(StoreError) in
            if isClosed { try transaction.closeList(of: id) } else { try transaction.put(list) }
            return "\(String(describing: try transaction.list(of: id)))"
        }
    }

    private func list(of job: JobID, id: Int64, template: StoredValue?) -> ListRow {
        ListRow(job: job, id: id, link: 0, phase: .open, mode: .first, concurrency: nil, total: 9, template: template)
    }

    private mutating func records() -> Call {
        let id = job()
        let key = CountKey(owner: random.pick(Self.owners), queue: random.pick(Self.queues), state: .queued)
        let count = CountValue(jobs: number(0...2), bytes: 5)
        let link = number(0...2)
        return { transaction throws(StoreError) in
            try transaction.put([key: count])
            if try transaction.job(id) != nil { try transaction.save(checkpoint: [UInt8(link)], of: id, link: link) }
            return "\(try transaction.checkpoints(of: id, fromLink: 0))"
        }
    }

    // MARK: Queries

    /// What tells rows apart; one read by its id is looked at as a whole.
    private static func text(_ rows: [JobRow]) -> String {
        rows.map { "\($0.id) \($0.version) \($0.state)" }.joined(separator: ", ")
    }

    private mutating func query() -> Call {
        let id = job()
        let parent = JobID(number(1...5))
        let owner = random.pick(Self.owners)
        let queue = random.pick(Self.queues)
        let limit = random.pick([1, 3, 1000])
        let hosts: Set<String> = random.pick([[], ["x:80"], ["x:80", "y:80"]])
        let link = number(0...1)
        let areGated = random.chance(0.5)
        let time = Int64(number(0...100))
        let wall = Self.wall.adding(seconds: Double(time))
        let position = random.chance(0.5) ? ReadyPosition(priority: number(-1...1), id: id) : nil
        switch number(0...9) {
        case 0, 1: return { try $0.job(id)?.text ?? "" }
        case 2, 3:
            return {
                "\(try $0.ready(queue: queue, owner: owner, after: position, excluding: hosts, limit: limit))"
            }
        case 4: return { Self.text(try $0.due(steady: time, wall: wall, limit: 10_000)) }
        case 5: return { "\(try $0.dueTimes())" }
        case 6:
            return {
                Self.text(
                    try $0.unfinishedChildren(
                        of: parent, list: Int64(link + 1), areGated: areGated, after: id / 2, limit: limit))
            }
        case 7: return { Self.text(try $0.children(of: parent, fromLink: link, limit: 10_000)) }
        case 8:
            return {
                Self.text(
                    try $0.finished(
                        owner: limit == 1 ? nil : owner, before: Timestamp(milliseconds: time * 10), limit: limit))
            }
        default:
            return {
                Self.text(try $0.lostRuns(limit: limit))
                    + Self.text(try $0.suspects(after: id, limit: limit))
                    + "\(try $0.counts().map { "\($0)" }.sorted())"
            }
        }
    }
}

extension JobRow {
    /// Its values, as text that is the same for equal rows: the order of a set's elements varies.
    fileprivate var text: String { "\(self) \(plan.source) \(queue) \(priority) \(key ?? "") \(tags)" }
}
