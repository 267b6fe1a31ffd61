import InMemoryStore
import JobModel
import TestSupport
import Testing

@testable import JobStore

/// SQLite and the tables in memory give the same answers, whatever is asked of them.
@Suite struct RandomCommandsTests {
    @Test(arguments: 0..<6 as Range<UInt64>)
    func stores_answerAlike_whateverIsAsked(_ seed: UInt64) async throws {
        let sqlite = try StoreUnderTest(.sqlite)
        var run = CommandRun(seed: seed)
        for step in 0..<150 {
            let write = try run.nextWrite()
            let mine = run.tables.write(write)
            let other = try await sqlite.write(write)
            try #require(text(mine) == text(other), "\(seed) \(step) \(write)")
            run.learn(mine)
            if run.generator.chance(0.3) {
                let (job, isWorking) = (run.someJob(), run.generator.chance(0.5))
                run.tables.mark(job, isWorking: isWorking)
                sqlite.store.mark(job, isWorking: isWorking)
                let checkpoint: JSON? = run.generator.chance(0.7) ? ["checkpoint": JSON(step)] : nil
                run.tables.save(checkpoint: checkpoint, of: job, link: 0)
                try await sqlite.save(checkpoint: checkpoint, of: job, link: 0)
            }
            if run.generator.chance(0.02) {
                try await sqlite.reopen()
                run.tables.clearMarks()
            }
            let read = run.nextRead()
            let (my, its) = try await (run.tables.read(read), sqlite.read(read))
            try #require(text(my) == text(its), "\(seed) \(step) \(read)")
        }
        let recovered = try await sqlite.read(.recovery)
        #expect(text(run.tables.read(.recovery)) == text(recovered))
        let jobs = run.tables.read(.jobs(Array(0...run.lastJob)))
        #expect(try await text(jobs) == text(sqlite.read(.jobs(Array(0...run.lastJob)))))
        let (counted, said) = try run.sizes
        #expect(counted == said)
        await sqlite.store.close()
    }

    private func text(_ written: StoreWritten) -> String {
        guard case .removed(let jobs) = written else { return "\(written)" }
        // Only what was removed counts, not in what order.
        return "\(jobs.sorted { $0.id < $1.id })"
    }

    private func text(_ rows: StoreRows) -> String {
        if case .states(let states) = rows { return "\(states.sorted { $0.key < $1.key })" }
        guard case .ready(let jobs) = rows else { return "\(rows)" }
        return "\(jobs.map { ($0.position, $0.host, $0.parent, $0.job) })"
    }
}

/// Commands that fit what is stored, made of random numbers.
private struct CommandRun {
    var generator: SeededGenerator
    var tables = MemoryTables()
    private(set) var lastJob: JobID = 0
    private var clock = 0

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
    }

    private mutating func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &generator) }

    /// The id of a job that there was, or is to be.
    mutating func someJob() -> JobID { JobID(number(0..<Int(lastJob) + 3)) }

    private mutating func storedJob() -> Job? {
        for _ in 0..<20 {
            if case .jobs(let jobs) = tables.read(.jobs([someJob()])), let job = jobs.first { return job }
        }
        return nil
    }

    mutating func learn(_ written: StoreWritten) {
        switch written {
        case .submitted(let submissions):
            for case .created(let id) in submissions { lastJob = max(lastJob, id) }
        case .numbered(let ids): lastJob = max(lastJob, ids.max() ?? 0)
        default: break
        }
    }

    /// What is counted by state, and what the jobs themselves say.
    var sizes: (counted: [Int64], said: [Int64]) {
        get throws {
            guard case .recovery(let state) = tables.read(.recovery),
                case .jobs(let jobs) = tables.read(.jobs(Array(0...lastJob)))
            else { throw WrongAnswer() }
            let counted = JobState.allCases.flatMap { wanted in
                let counts = state.counts.filter { $0.state == wanted }
                return [Int64(counts.reduce(0) { $0 + $1.count }), counts.reduce(0) { $0 + $1.bytes }]
            }
            let said = JobState.allCases.flatMap { wanted in
                let jobs = jobs.filter { $0.state == wanted }
                return [Int64(jobs.count), jobs.reduce(0) { $0 + $1.storedSize }]
            }
            return (counted, said)
        }
    }

    // MARK: Writing

    mutating func nextWrite() throws -> StoreWrite {
        clock += number(0..<3)
        switch number(0..<26) {
        case 0..<6: return .submit(try (0..<number(1..<40)).map { _ in try newJob() })
        case 6..<9:
            guard let parent = storedJob() else { return .probe }
            return .children(newChildren(of: parent))
        case 9..<15:
            return .save((0..<number(1..<6)).compactMap { _ in storedJob() }.map { changed($0) })
        case 15: return .remove(someJob())
        case 16: return .removeChildren(of: someJob(), fromLink: number(0..<3))
        case 17: return .purge(finishedBefore: .after(clock - 20), keeping: number(0..<30), atMost: number(0..<5))
        case 20...22: return .setSchedule(try newSchedule(), spec: .string(generator.pick(["s", long])))
        case 23, 24:
            // As it is stored or not, or with a job whose key another may have.
            var schedule = try newSchedule()
            if case .recovery(let state) = tables.read(.recovery), let stored = state.schedules.first?.schedule,
                generator.chance(0.8)
            {
                schedule = stored
            }
            schedule.submitted += 1
            schedule.waiting = generator.pick([[], [.after(clock)], [.after(clock), .after(clock + 9)]])
            schedule.lastTime = .after(clock)
            return .advance(schedule, generator.chance(0.6) ? try newJob() : nil)
        case 25: return .removeSchedule(scheduleKey())
        case 18:
            return .purgeOldest(
                count: number(0..<3), freeing: Int64(number(0..<2000)), owner: UInt32(number(1000..<1003)))
        default:
            return .queue(
                QueueSettings(
                    name: generator.pick(["default", "ä", "slow"]), concurrency: number(1..<9),
                    perUser: generator.pick([nil, 1, 5]), isSuspended: generator.chance(0.5)))
        }
    }

    /// A spec that lists of schedules leave out.
    private var long: String { String(repeating: "x", count: 5_000) }

    private mutating func scheduleKey() -> ScheduleKey {
        ScheduleKey(owner: generator.pick([0, 1000, 1001]), name: generator.pick(["a", "A", "b.1", "z-_"]))
    }

    private mutating func newSchedule() throws -> Schedule {
        let calendar = generator.pick(["0 6 * * mon-fri", "@daily", "*/5 1,2 * jan 7"])
        var schedule = Schedule(
            key: scheduleKey(),
            timing: generator.chance(0.5)
                ? .every(Int64(number(1..<100) * 1000))
                : .calendar(
                    calendar, try CalendarExpression(calendar), zone: generator.pick(["UTC", "Europe/Berlin"])),
            catchUp: generator.pick(ScheduleCatchUp.allCases), overlap: generator.pick(ScheduleOverlap.allCases),
            isSuspended: generator.chance(0.3), setAt: .after(clock), specSize: generator.pick([3, 5_002]))
        schedule.doneUntil = .after(clock - number(0..<9))
        schedule.submitted = number(0..<9)
        schedule.skipped = number(0..<9)
        schedule.lastTime = generator.pick([nil, .after(clock - 3)])
        schedule.lastJob = generator.chance(0.3) ? someJob() : nil
        return schedule
    }

    private mutating func newJob() throws -> Job {
        var members = [#""queue": "\#(generator.pick(["default", "slow", "ä"]))""#]
        if generator.chance(0.3) { members.append(#""priority": \#(number(-2..<3))"#) }
        if generator.chance(0.2) { members.append(#""key": "\#(generator.pick(["k", "\u{E9}", "e\u{301}"]))""#) }
        if generator.chance(0.3) { members.append(#""tags": ["\#(generator.pick(["t", "u"]))", "v"]"#) }
        if generator.chance(0.2) { members.append(#""delay": \#(number(1..<50))"#) }
        if generator.chance(0.2) { members.append(#""deadline": \#(number(1..<90))"#) }
        if generator.chance(0.5) { members.append(#""then": [{"both": {"return": 1}}, {"both": {"return": 2}}]"#) }
        let value = String(repeating: "x", count: generator.pick([1, 1, 900, 1_500, 5_000]))
        var job = try Job.example(
            members.joined(separator: ", "),
            source: generator.chance(0.2)
                ? #"{"type": "timer", "seconds": 1}"# : #"{"type": "value", "value": "\#(value)"}"#,
            owner: generator.pick([0, 1000, 1001]), at: .after(clock))
        job.host = generator.pick([nil, nil, "a:80", "b:80"])
        return job
    }

    private mutating func newChildren(of job: Job) -> NewChildren {
        var parent = job
        parent.link = min(number(0..<3), parent.spec.links.count)
        let isTemplate = generator.chance(0.6)
        let large: JSON = .string(String(repeating: "t", count: generator.pick([1, 3_000])))
        let template: JSON = [
            "source": ["type": "value", "value": ["{{item}}", "{{index}}", large]],
            "then": [["then": ["return": "{{item}}"]]],
        ]
        let start = number(0..<3)
        let children = (0..<number(0..<12)).map { offset -> NewChild in
            let value = JSON.string(String(repeating: "i", count: generator.pick([1, 10, 2_000])))
            var body =
                isTemplate ? NewChild.Body.item(["v": value]) : .spec(["source": ["type": "value", "value": value]])
            if generator.chance(0.1) { body = .invalid(JobError(.invalid, "It cannot be.")) }
            let waits = generator.chance(0.2)
            return .example(
                start + offset, body, queue: generator.pick(["default", "slow"]), priority: number(-2..<3),
                state: waits ? .scheduled : .queued, notBefore: waits ? .after(clock + number(1..<9)) : nil,
                deadlineAt: generator.pick([nil, .after(clock + 30)]), host: generator.pick([nil, "a:80"]),
                tags: generator.pick([[], ["t"]]), isGated: generator.chance(0.3))
        }
        return NewChildren(parent: parent, template: isTemplate ? .some(template) : .none, children: children)
    }

    private mutating func changed(_ job: Job) -> Job {
        var job = job
        job.state = generator.pick(JobState.allCases)
        job.notBefore = job.state == .scheduled ? .after(clock + number(0..<20)) : nil
        job.finishedAt = job.state.isTerminal ? .after(clock - number(0..<5)) : nil
        job.startedAt = generator.pick([nil, .after(clock)])
        job.attempt = number(0..<4)
        job.crashes = number(0..<3)
        job.isGated = generator.chance(0.2)
        job.host = generator.pick([nil, "a:80", "c:80"])
        job.stop = generator.pick([nil, .cancelled])
        job.link = number(0..<job.spec.links.count + 1)
        let text = JSON.string(String(repeating: "r", count: generator.pick([1, 3_000])))
        job.carried = generator.pick([nil, .success(text), .failure(JobError(.http, "No.", retryable: true))])
        job.outcomes =
            generator.chance(0.5)
            ? [] : [LinkOutcome(link: 0, error: nil, startedAt: .after(1), finishedAt: .after(2), attempts: 1)]
        job.failedLink = generator.pick([nil, .init(link: 0, incoming: .success(1))])
        return job
    }

    // MARK: Reading

    mutating func nextRead() -> StoreRead {
        let job = someJob()
        switch number(0..<20) {
        case 0: return .recovery
        case 16: return .orphans(limit: number(0..<6))
        case 17: return .schedule(scheduleKey())
        case 18, 19:
            return .schedules(
                after: generator.chance(0.5) ? scheduleKey() : nil, owner: generator.pick([nil, 1000]),
                limit: number(0..<9))
        case 1:
            let ids = (0..<5).map { _ in someJob() }
            return generator.chance(0.5) ? .jobs(ids) : .states(ids, owner: generator.pick([nil, 1000]))
        case 2..<6: return .list(filter())
        case 6: return .children(of: job, link: number(0..<3), from: number(0..<5), limit: number(0..<6))
        case 7: return .childStates(of: job, link: number(0..<3))
        case 8..<10: return .gated(of: job, link: number(0..<3), from: number(0..<5), limit: number(0..<6))
        case 10..<13:
            return .ready(
                queue: generator.pick(["default", "slow", "ä", "none"]), owner: generator.pick([0, 1000, 1001]),
                after: generator.pick([nil, ReadyPosition(priority: number(-2..<3), id: job)]),
                excluding: generator.pick([[], ["a:80"], ["a:80", "b:80"]]), limit: number(0..<20))
        case 13: return .due(at: .after(clock + number(-5..<30)), limit: number(0..<9))
        case 14: return .overdue(at: .after(clock + number(-5..<60)), limit: number(0..<9))
        default: return .times
        }
    }

    private mutating func filter() -> JobFilter {
        var filter = JobFilter()
        if generator.chance(0.3) { filter.states = generator.pick([[.queued], [.queued, .failed], [.running]]) }
        filter.queue = generator.pick([nil, nil, "slow"])
        filter.tag = generator.pick([nil, nil, nil, "t", "v"])
        filter.source = generator.pick([nil, nil, .value, .timer])
        if generator.chance(0.3) { filter.parent = someJob() }
        filter.owner = generator.pick([nil, nil, 1000])
        if generator.chance(0.4) { filter.after = someJob() }
        filter.limit = number(0..<12)
        filter.order = generator.pick([.newest, .oldest])
        return filter
    }
}
