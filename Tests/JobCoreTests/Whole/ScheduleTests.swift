import JobModel
import Testing

@testable import JobCore

/// Schedules in the whole core: their times, what is stored with them, and what becomes of what was missed.
struct ScheduleTests {
    static let value = #"{"source":{"type":"value","value":"{{schedule/time}}"}}"#
    /// A job that runs until the test ends it.
    static let work = #"{"source":{"type":"url","url":"http://a/{{schedule/name}}"}}"#

    @Test func job_isSubmittedAtEachTime_onceAndStoredWithTheSchedule() throws {
        let driver = CoreDriver()
        try driver.set("s", every: 60)
        let set = driver.now.wall
        driver.advance(59.9)
        #expect(driver.store.all.isEmpty)
        driver.advance(0.2)
        let job = try #require(driver.store.all.first)
        let time = set.adding(seconds: 60)
        #expect(job.spec.key == "schedule:s:\(time)" && job.carried == .success(.string(time.description)))
        #expect(job.owner == 1)
        let shown = try #require(driver.schedule("s"))
        #expect(shown.schedule.lastTime == time && shown.schedule.lastJob == job.id)
        #expect(shown.schedule.submitted == 1 && shown.stored.lastState == .succeeded)
        #expect(shown.next == set.adding(seconds: 120))
        driver.advance(600)
        #expect(driver.store.all.count == 11)
        driver.expectQuiet()
    }

    @Test func groups_areThoseOfWhoSetIt_alsoInWhatItsJobsMake() throws {
        let driver = CoreDriver()
        let caller = Caller(uid: 1, isAdmin: false, groups: CallerGroups([1, 7]))
        let spec = #"{"source":{"type":"list","jobs":[\#(Self.work.replacing("{{schedule/name}}", with: "x"))]}}"#
        try driver.set("s", spec, every: 60, as: caller)
        driver.advance(60)
        #expect(driver.store.all.map(\.groups) == [caller.groups, caller.groups])
        #expect(try driver.run(of: driver.store.all[1].id).groups == caller.groups)
        driver.endAll()
        // An administrator's groups are no matter of the owner's.
        try driver.set("s", every: 60, as: Caller(uid: 9, isAdmin: true, groups: CallerGroups([9])))
        driver.advance(60)
        #expect(driver.store.all.last?.groups == nil)
    }

    @Test func nothingIsWokenFor_beyondTheTimes() throws {
        let driver = CoreDriver()
        for number in 0..<500 { try driver.set("s\(number)", every: 86_400) }
        #expect(driver.core.nextWake.wall == driver.now.wall.adding(seconds: 86_400))
        #expect(driver.core.nextWake.monotonic == nil || driver.core.nextWake.monotonic ?? 0 > driver.now.monotonic)
        driver.advance(86_400)
        #expect(driver.store.all.count == 500)
    }

    @Test func manyAtOnce_areSubmittedInPieces() throws {
        let driver = CoreDriver { $0.limits.schedulesPerUser = 5000 }
        for number in 0..<2000 { try driver.set("s\(number)", calendar: "0 0 * * *") }
        driver.holdsWrites = true
        driver.advance(86_400)
        // No more than these are in memory while they are stored.
        #expect(driver.heldWrites.count <= 300)
        driver.holdsWrites = false
        driver.releaseWrites()
        #expect(Set(driver.store.all.compactMap(\.spec.key)).count == 2000)
        driver.expectQuiet()
    }

    @Test func oneOfAnotherOwner_doesNotWaitForAllOfWhoHasMany() throws {
        let driver = CoreDriver { $0.limits.schedulesPerUser = 5000 }
        for number in 0..<2000 { try driver.set("s\(number)", calendar: "0 0 * * *") }
        try driver.set("other", calendar: "0 0 * * *", owner: 2)
        driver.holdsWrites = true
        driver.advance(86_400)
        // What is under way already is stored first.
        driver.releaseWrites(driver.heldWrites.count)
        let owners = driver.store.all.map(\.owner)
        #expect(owners.count <= 300)
        driver.releaseWrites(8)
        #expect(driver.store.all.contains { $0.owner == 2 }, "\(driver.store.all.count)")
    }

    // MARK: - Crashes

    @Test(arguments: 0...8) func crash_neverSubmitsATimeTwice_norLosesIt(_ writes: Int) throws {
        let driver = CoreDriver()
        // With "skip" the job before may not be finished when the last of what was missed is made up for.
        try driver.set("s", every: 60, overlap: .queue)
        let set = driver.now.wall
        driver.writesUntilCrash = writes == 0 ? nil : writes
        driver.advance(200)
        driver.crash()
        driver.advance(60)
        let times = driver.store.all.compactMap(\.spec.key)
        #expect(Set(times).count == times.count)
        // With "last" the last of what was missed is made up for.
        #expect(times.contains("schedule:s:\(set.adding(seconds: 180))"))
        #expect(times.contains("schedule:s:\(set.adding(seconds: 240))"))
        #expect(try #require(driver.schedule("s")).schedule.submitted == times.count)
        driver.expectQuiet()
    }

    @Test func time_isNotSubmittedAgain_whereItsJobWasRemoved() throws {
        let driver = CoreDriver()
        try driver.set("s", every: 60)
        driver.advance(61)
        driver.ask(.remove(1), as: .one)
        #expect(driver.store.all.isEmpty)
        driver.setWall(by: -30)
        driver.crash()
        driver.advance(40)
        #expect(driver.store.all.isEmpty)
        driver.advance(60)
        #expect(driver.store.all.map(\.id) == [2])
    }

    // MARK: - The wall clock

    @Test func wallClock_rules_andNothingIsDoneTwice() throws {
        let driver = CoreDriver()
        try driver.set("s", every: 60)
        let set = driver.now.wall
        driver.advance(121)
        driver.setWall(by: -120)
        driver.advance(100)
        #expect(driver.store.all.count == 2)
        driver.advance(100)
        let times = driver.store.all.compactMap(\.spec.key)
        #expect(times == (1...3).map { "schedule:s:\(set.adding(seconds: Double($0) * 60))" })
    }

    @Test func wallClock_isFollowedBack_whereNothingWasSubmittedYet() throws {
        let driver = CoreDriver()
        driver.setWall(by: 31_536_000)
        try driver.set("s", calendar: "0 6 * * *")
        driver.setWall(by: -31_536_000)
        #expect(try #require(driver.schedule("s")?.next) < driver.now.wall.adding(seconds: 86_400))
        driver.advance(86_400)
        #expect(driver.store.all.count == 1)
    }

    // MARK: - Missed times

    @Test(arguments: [(ScheduleCatchUp.last, [5]), (.none, []), (.all, [1, 2, 3, 4, 5])])
    func missed_areCaughtUp(_ catchUp: ScheduleCatchUp, _ minutes: [Int]) throws {
        let driver = CoreDriver()
        try driver.set("s", every: 60, catchUp: catchUp)
        let set = driver.now.wall
        driver.stopAndWait(330)
        #expect(
            driver.store.all.compactMap(\.spec.key)
                == minutes.map { "schedule:s:\(set.adding(seconds: Double($0) * 60))" })
        driver.advance(60)
        #expect(driver.store.all.count == minutes.count + 1)
        driver.expectQuiet()
    }

    @Test func missed_areTheSame_whereTheMachineSlept() throws {
        let driver = CoreDriver()
        try driver.set("s", every: 3600, catchUp: .none)
        try driver.set("t", every: 3600, catchUp: .last)
        driver.setWall(by: 36_000 + 1800)
        #expect(driver.store.all.compactMap(\.spec.key).count == 1)
        driver.advance(1801)
        #expect(driver.store.all.count == 3)
    }

    @Test func all_areTheNewestHundred_oneAfterAnother() throws {
        let driver = CoreDriver()
        try driver.set("s", Self.work, every: 60, catchUp: .all)
        let set = driver.now.wall
        driver.stopAndWait(60 * 500 + 1)
        #expect(driver.atWork.count == 1)
        driver.endAll()
        let times = driver.store.all.compactMap(\.spec.key)
        #expect(times == (401...500).map { "schedule:s:\(set.adding(seconds: Double($0) * 60))" })
        driver.expectQuiet()
    }

    // MARK: - Overlap

    @Test func overlap_isSkipped_andCounted() throws {
        let driver = CoreDriver()
        try driver.set("s", Self.work, every: 60)
        driver.advance(200)
        #expect(driver.store.all.count == 1)
        #expect(try #require(driver.schedule("s")).schedule.skipped == 2)
        driver.endAll()
        driver.advance(60)
        #expect(driver.store.all.count == 2)
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func overlap_isQueued_upToAHundred_alsoOverACrash() throws {
        let driver = CoreDriver()
        try driver.set("s", Self.work, every: 1, overlap: .queue)
        driver.advance(150)
        #expect(driver.store.all.count == 1)
        let row = try #require(driver.schedule("s")).schedule
        #expect(row.waiting.count == 100 && row.skipped == 49)
        driver.ask(.suspendSchedule(ScheduleKey(owner: 2, name: "s"), isSuspended: true), as: .two)
        driver.crash()
        driver.endAll(most: 1)
        #expect(driver.store.all.count == 2)
        #expect(driver.store.all[1].spec.key == "schedule:s:\(row.waiting[0])")
    }

    @Test func retry_makesTheJobBeforeUnfinishedAgain() throws {
        let driver = CoreDriver()
        try driver.set("s", #"{"source":{"type":"url","url":"http://a/"},"retry":{"max":0}}"#, every: 60)
        driver.advance(61)
        driver.endAll { _ in .failure(JobError(.checksum, "Wrong.")) }
        driver.ask(.retry(1, from: .start), as: .one)
        driver.advance(60)
        #expect(driver.store.all.count == 1)
        #expect(try #require(driver.schedule("s")).schedule.skipped == 1)
        driver.endAll()
        driver.advance(60)
        driver.endAll()
        #expect(driver.store.all.count == 2)
    }

    // MARK: - Suspending, running, replacing, removing

    @Test func suspended_dropsWhatItMisses_alsoWhatWaits() throws {
        let driver = CoreDriver()
        try driver.set("s", Self.work, every: 60, overlap: .queue, catchUp: .all)
        driver.advance(190)
        #expect(try driver.suspend("s", true).next == nil)
        driver.endAll()
        driver.advance(600)
        driver.stopAndWait(600)
        #expect(driver.store.all.count == 1)
        let resumed = try driver.suspend("s", false)
        #expect(resumed.schedule.skipped == 2 && resumed.schedule.waiting.isEmpty)
        driver.advance(60)
        #expect(driver.store.all.count == 2)
    }

    @Test func run_submitsBesideTheTimes_alsoWhereItIsSuspended() throws {
        let driver = CoreDriver()
        try driver.set("s", every: 60, isSuspended: true)
        driver.advance(100)
        let request = driver.ask(.runSchedule(ScheduleKey(owner: 1, name: "s")), as: .one)
        let job = try #require(try driver.submitted(request).first?.get().job)
        #expect(driver.stored(job)?.spec.key == nil)
        #expect(driver.stored(job)?.carried == .success(.string(driver.now.wall.description)))
        let row = try #require(driver.schedule("s")).schedule
        #expect(row.submitted == 0 && row.lastTime == nil)
    }

    @Test func replacement_keepsTheCounts_andStartsAnew() throws {
        let driver = CoreDriver()
        try driver.set("s", every: 60)
        driver.advance(90)
        try driver.set("s", #"{"source":{"type":"value","value":2}}"#, every: 60)
        let row = try #require(driver.schedule("s"))
        #expect(row.schedule.submitted == 1 && row.schedule.lastJob == 1)
        #expect(row.next == driver.now.wall.adding(seconds: 60))
        driver.advance(60)
        #expect(driver.stored(2)?.carried == .success(2))
    }

    @Test func removal_leavesTheJobs_andEndsTheTimes() throws {
        let driver = CoreDriver()
        try driver.set("s", Self.work, every: 60, overlap: .queue)
        driver.advance(130)
        let request = driver.ask(.removeSchedule(ScheduleKey(owner: 1, name: "s")), as: .one)
        #expect(driver.answer(to: request)?.isDone == true)
        driver.endAll()
        driver.advance(600)
        #expect(driver.store.all.count == 1 && driver.schedule("s") == nil)
        driver.crash()
        #expect(driver.schedule("s") == nil)
        driver.expectQuiet()
    }

    @Test func changesAtOnce_followOneAnother() throws {
        let driver = CoreDriver()
        driver.holdsWrites = true
        let first = try driver.requestSet("s", every: 60)
        let second = try driver.requestSet("s", every: 90)
        let removal = driver.ask(.removeSchedule(ScheduleKey(owner: 1, name: "s")), as: .one)
        let gone = driver.ask(.suspendSchedule(ScheduleKey(owner: 1, name: "s"), isSuspended: true), as: .one)
        #expect(driver.answer(to: first) == nil && driver.answer(to: second) == nil)
        driver.holdsWrites = false
        driver.releaseWrites()
        #expect(driver.answer(to: first)?.schedule != nil || driver.code(first) == .notFound)
        #expect(driver.answer(to: removal)?.isDone == true && driver.code(gone) == .notFound)
    }

    // MARK: - Checks

    @Test func whileASpecIsChecked_theScheduleWaits_andNothingElse() throws {
        let driver = CoreDriver()
        try driver.set("s", every: 60)
        try driver.set("t", every: 61, owner: 2)
        driver.holdsChecks = true
        driver.advance(60)
        #expect(driver.store.all.isEmpty && driver.heldChecks.count == 1)
        let key = ScheduleKey(owner: 1, name: "s")
        let change = driver.ask(.suspendSchedule(key, isSuspended: true), as: .one)
        let run = driver.ask(.runSchedule(key), as: .one)
        #expect(driver.answer(to: change) == nil && driver.answer(to: run) == nil)
        driver.advance(1)
        #expect(driver.heldChecks.count == 2)
        driver.holdsChecks = false
        driver.releaseChecks()
        #expect(driver.store.all.filter { $0.spec.key != nil }.map(\.owner).sorted() == [1, 2])
        #expect(driver.answer(to: change)?.schedule?.schedule.submitted == 1)
        #expect(try driver.submitted(run).first?.get() != nil)
        driver.expectQuiet()
    }

    @Test func stop_leavesTheTimeOfWhatIsChecked_toTheNextDaemon() throws {
        let driver = CoreDriver()
        try driver.set("s", every: 60)
        driver.holdsChecks = true
        driver.advance(60)
        let run = driver.ask(.runSchedule(ScheduleKey(owner: 1, name: "s")), as: .one)
        driver.feed(.stop)
        driver.releaseChecks()
        #expect(driver.store.all.isEmpty && driver.code(run) == .shuttingDown)
        driver.holdsChecks = false
        driver.restart()
        driver.advance(0)
        #expect(driver.store.all.count == 1)
        driver.expectQuiet()
    }

    // MARK: - Refusals

    @Test func others_cannotTellASchedule_fromNone() throws {
        let driver = CoreDriver()
        try driver.set("s", every: 60)
        let key = ScheduleKey(owner: 1, name: "s")
        for request: CoreRequest in [
            .schedule(key), .removeSchedule(key), .runSchedule(key), .suspendSchedule(key, isSuspended: true),
        ] {
            let foreign = driver.ask(request, as: .two)
            let none = driver.ask(.schedule(ScheduleKey(owner: 2, name: "s")), as: .two)
            #expect(driver.error(foreign) == driver.error(none) && driver.code(foreign) == .notFound)
        }
        #expect(
            driver.answer(to: driver.ask(.schedules(after: nil, owner: 1, limit: 10), as: .two))?
                .schedules?.schedules.isEmpty == true)
        #expect(
            driver.answer(to: driver.ask(.schedules(after: nil, owner: nil, limit: 10), as: .root))?
                .schedules?.schedules.count == 1)
    }

    @Test func set_isRefused_beyondTheLimits() throws {
        let driver = CoreDriver {
            $0.limits.schedulesPerUser = 2
            $0.storedPerUser = 2000
        }
        try driver.set("a", every: 60)
        driver.holdsWrites = true
        let second = try driver.requestSet("b", every: 60)
        #expect(try driver.code(driver.requestSet("c", every: 60)) == .busy(retryAfter: 60))
        driver.holdsWrites = false
        driver.releaseWrites()
        #expect(driver.answer(to: second)?.schedule != nil)
        let long = #"{"source":{"type":"value","value":""# + String(repeating: "x", count: 2000) + "\"}}"
        #expect(try driver.code(driver.requestSet("a", long, every: 60)) == .busy(retryAfter: 60))
        #expect(try driver.code(driver.requestSet("a", calendar: "0 0 31 2 *")) == .invalid(JSONPointer(["calendar"])))
        let queue = #"{"source":{"type":"value","value":1},"queue":"none"}"#
        #expect(try driver.code(driver.requestSet("a", queue, every: 60)) == .invalid(JSONPointer(["spec", "queue"])))
    }

    @Test func refusedJob_isSkipped_andTheScheduleGoesOn() throws {
        let driver = CoreDriver { $0.limits.queuedJobsPerUser = 1 }
        try driver.set("s", every: 60)
        let other = try driver.submit(#"{"source":{"type":"value","value":1},"delay":100}"#)
        driver.advance(61)
        let row = try #require(driver.schedule("s")).schedule
        #expect(row.skipped == 1 && row.submitted == 0 && row.lastTime == nil)
        #expect(driver.logs.contains { $0.level == .warning && $0.message.contains("submitted no job") })
        driver.advance(60)
        #expect(driver.state(other) == .succeeded && driver.store.all.count == 2)
    }

    @Test func failedStorage_isTriedAgain() throws {
        let driver = CoreDriver()
        try driver.set("s", every: 60)
        driver.failsWrite = { _ in true }
        driver.advance(70)
        #expect(driver.store.all.isEmpty)
        driver.failsWrite = { _ in false }
        driver.advance(10)
        #expect(driver.store.all.count == 1)
        driver.failsRead = { if case .schedule = $0 { true } else { false } }
        driver.advance(60)
        #expect(driver.store.all.count == 1)
        driver.failsRead = { _ in false }
        driver.advance(5)
        #expect(driver.store.all.count == 2)
        #expect(try #require(driver.schedule("s")).schedule.skipped == 0)
        driver.expectQuiet()
    }

    @Test func scheduleThatCannotBeRead_delaysNobodyElses() throws {
        let driver = CoreDriver()
        try driver.set("s", every: 60)
        driver.advance(0.5)
        try driver.set("t", every: 60, owner: 2)
        driver.failsRead = { if case .schedule(ScheduleKey(owner: 1, name: "s")) = $0 { true } else { false } }
        driver.advance(59.5)
        #expect(driver.store.all.isEmpty)
        // It is read again a second later, which keeps nobody else's waiting.
        driver.advance(0.5)
        #expect(driver.store.all.map(\.owner) == [2])
        driver.failsRead = { _ in false }
        driver.advance(0.5)
        #expect(driver.store.all.map(\.owner) == [2, 1])
        driver.expectQuiet()
    }

    @Test func zone_isReadAgain_atTheStart() throws {
        let driver = CoreDriver()
        try driver.set("s", calendar: "0 6 * * *", zone: "Test/One")
        let next = try #require(driver.schedule("s")?.next)
        driver.crash()
        #expect(driver.schedule("s")?.next == next)
        driver.zones = [:]
        driver.crash()
        #expect(driver.schedule("s")?.next == nil)
        #expect(driver.logs.contains { $0.level == .error && $0.message.contains("Test/One") })
    }
}

extension CoreDriver {
    func requestSet(
        _ name: String, _ spec: String = ScheduleTests.value, every: Double? = nil, calendar: String? = nil,
        zone: String = "UTC", overlap: ScheduleOverlap = .skip, catchUp: ScheduleCatchUp = .last,
        isSuspended: Bool = false, owner: UInt32 = 1, as caller: Caller = .one
    ) throws -> RequestID {
        let json = try JSON(parsing: spec)
        let queues = try core.admission.schedule(json, at: JSONPointer(["spec"]), owner: owner)
        let timing: ScheduleTiming =
            if let calendar {
                .calendar(calendar, try CalendarExpression(calendar), zone: zone)
            } else {
                .every(Int64((every ?? 1) * 1000))
            }
        return ask(
            .setSchedule(
                NewSchedule(
                    key: ScheduleKey(owner: owner, name: name), timing: timing, zone: zones[zone] ?? .utc,
                    catchUp: catchUp, overlap: overlap, isSuspended: isSuspended, spec: json, queues: queues)),
            as: caller
        )
    }

    func set(
        _ name: String, _ spec: String = ScheduleTests.value, every: Double? = nil, calendar: String? = nil,
        zone: String = "UTC", overlap: ScheduleOverlap = .skip, catchUp: ScheduleCatchUp = .last,
        isSuspended: Bool = false, owner: UInt32 = 1, as caller: Caller = .one
    ) throws {
        let request = try requestSet(
            name, spec, every: every, calendar: calendar, zone: zone, overlap: overlap, catchUp: catchUp,
            isSuspended: isSuspended, owner: owner, as: caller)
        _ = try #require(answer(to: request)?.schedule, "\(String(describing: answer(to: request)))")
    }

    func suspend(_ name: String, _ isSuspended: Bool) throws -> ScheduleView {
        let request = ask(.suspendSchedule(ScheduleKey(owner: 1, name: name), isSuspended: isSuspended), as: .one)
        return try #require(answer(to: request)?.schedule)
    }

    func schedule(_ name: String) -> ScheduleView? {
        answer(to: ask(.schedule(ScheduleKey(owner: 1, name: name)), as: .one))?.schedule
    }
}
