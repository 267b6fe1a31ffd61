import InMemoryStore
import JobModel
import Testing

@testable import JobStore

/// What every store must do about schedules.
extension ConformanceTests {
    private func schedule(_ name: String, owner: UInt32 = 1000, size: Int = 2) throws -> Schedule {
        var schedule = Schedule(
            key: ScheduleKey(owner: owner, name: name),
            timing: .calendar("0 6 * * mon", try CalendarExpression("0 6 * * mon"), zone: "Europe/Berlin"),
            catchUp: .all, overlap: .queue, isSuspended: true, setAt: .after(1), specSize: size)
        schedule.doneUntil = .after(2)
        schedule.waiting = [.after(3), .after(4)]
        schedule.submitted = 5
        schedule.skipped = 6
        schedule.groups = CallerGroups([4, 100])
        return schedule
    }

    private func rows(_ store: StoreUnderTest, _ read: StoreRead) async throws -> [StoredSchedule] {
        guard case .schedules(let rows) = try await store.read(read) else { throw WrongAnswer() }
        return rows
    }

    @Test(arguments: Conformer.allCases)
    func groups_areKept_ofAJobAndWhatItMakes(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        var jobs = try [Job.example(), .example(), .example(), .example(at: .after(1)).finished(at: .after(2))]
        jobs[0].groups = CallerGroups([1000, 4, 4_294_967_295])
        jobs[1].groups = CallerGroups([UInt32]())
        jobs[3].groups = CallerGroups(Array(0..<2000))
        let ids = try await store.submit(jobs).compactMap { if case .created(let id) = $0 { id } else { nil } }
        let parent = try await store.jobs([ids[0]])[0]
        let child = try await store.children(
            NewChildren(
                parent: parent, template: nil,
                children: [.example(0, .spec(["source": ["type": "value", "value": 1]]))]))
        try await store.reopen()
        let found = try await store.jobs(ids + child)
        #expect(found.map(\.groups) == [jobs[0], jobs[1], jobs[2], jobs[3], jobs[0]].map(\.groups))
        #expect(found[0].groups?.text == "4,1000,4294967295" && found[1].groups?.ids == [])
        #expect(found[3].groups?.ids.count == 1024)
    }

    @Test(arguments: Conformer.allCases)
    func schedule_isKeptWhole_andReplacedByName(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let calendar = try schedule("a")
        let every = Schedule(key: ScheduleKey(owner: 7, name: "a"), timing: .every(1500), setAt: .after(9), specSize: 4)
        _ = try await store.write(.setSchedule(calendar, spec: ["a": 1]))
        _ = try await store.write(.setSchedule(every, spec: ["b": 2]))
        try await store.reopen()
        let found = try await rows(store, .schedule(calendar.key))
        #expect(found.map(\.schedule) == [calendar] && found[0].spec == ["a": 1] && found[0].lastState == nil)
        #expect(try await store.recovery().schedules.map(\.schedule) == [every, calendar])
        #expect(try await store.recovery().schedules.allSatisfy { $0.spec == nil })
        var other = every
        other.timing = calendar.timing
        _ = try await store.write(.setSchedule(other, spec: ["c": 3]))
        let replaced = try await rows(store, .schedule(every.key))
        #expect(replaced.map(\.schedule) == [other] && replaced[0].spec == ["c": 3])
        _ = try await store.write(.removeSchedule(every.key))
        _ = try await store.write(.removeSchedule(every.key))
        #expect(try await rows(store, .schedule(every.key)).isEmpty)
        #expect(try await store.recovery().schedules.map(\.schedule) == [calendar])
    }

    @Test(arguments: Conformer.allCases)
    func advance_storesTheJobWithTheSchedule_bothOrNone(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        var row = try schedule("a")
        let job = try Job.example(#""key": "a:1""#)
        func advance(_ job: Job?) async throws -> [Submission] {
            guard case .submitted(let submissions) = try await store.write(.advance(row, job)) else {
                throw WrongAnswer()
            }
            return submissions
        }
        // It was removed meanwhile.
        #expect(try await advance(job).isEmpty)
        #expect(try await store.recovery().counts.isEmpty)
        _ = try await store.write(.setSchedule(row, spec: [:]))
        row.submitted += 1
        row.lastTime = .after(8)
        #expect(try await advance(job) == [.created(1)])
        var found = try await rows(store, .schedule(row.key))
        row.lastJob = 1
        #expect(found.map(\.schedule) == [row] && found[0].lastState == .queued)
        #expect(try await advance(job) == [.joined(1, .queued)])
        // Another's job has the key: nothing is stored of the schedule either.
        var later = row
        later.submitted = 99
        let other = try Job.example(#""key": "a:1", "priority": 4"#)
        guard case .submitted(let conflict) = try await store.write(.advance(later, other)) else { throw WrongAnswer() }
        #expect(conflict == [.conflict(1)])
        row.skipped += 1
        #expect(try await advance(nil).isEmpty)
        _ = try await store.save(try job.numbered(1).finished(at: .after(9)))
        try await store.reopen()
        found = try await rows(store, .schedule(row.key))
        #expect(found.map(\.schedule) == [row] && found[0].lastState?.isTerminal == true)
        _ = try await store.removing(.remove(1))
        found = try await rows(store, .schedule(row.key))
        #expect(found.map(\.schedule) == [row] && found[0].lastState == nil)
    }

    @Test(arguments: Conformer.allCases)
    func schedules_comeByOwnerAndName_inPages(_ conformer: Conformer) async throws {
        let store = try StoreUnderTest(conformer)
        let long = JSON.string(String(repeating: "x", count: 5000))
        for (owner, name) in [(2, "b"), (1, "z"), (2, "B"), (2, "a"), (3, "a")] as [(UInt32, String)] {
            let spec: JSON = name == "z" ? long : 1
            _ = try await store.write(.setSchedule(try schedule(name, owner: owner, size: spec.size), spec: spec))
        }
        func names(_ key: ScheduleKey?, _ owner: UInt32?, _ limit: Int) async throws -> [String] {
            try await rows(store, .schedules(after: key, owner: owner, limit: limit)).map {
                "\($0.schedule.key.owner)\($0.schedule.key.name)\($0.spec == nil ? "-" : "")"
            }
        }
        #expect(try await names(nil, nil, 10) == ["1z-", "2B", "2a", "2b", "3a"])
        #expect(try await names(nil, 2, 10) == ["2B", "2a", "2b"])
        #expect(try await names(nil, 2, 2) == ["2B", "2a"])
        #expect(try await names(ScheduleKey(owner: 2, name: "B"), 2, 2) == ["2a", "2b"])
        #expect(try await names(ScheduleKey(owner: 2, name: "a"), nil, 9) == ["2b", "3a"])
        #expect(try await names(ScheduleKey(owner: 1, name: "z"), 3, 9) == ["3a"])
        #expect(try await names(ScheduleKey(owner: 9, name: "z"), 3, 9).isEmpty)
    }
}
