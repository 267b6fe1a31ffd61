import JobCore
import JobModel

/// What users do with schedules. Chance of its own, so that nothing else of a seed changes.
extension World {
    /// Under one seed in two.
    static func hasSchedules(_ seed: UInt64) -> Bool { seed % 2 == 1 }

    private static let calendars = [
        "*/20 * * * *", "0 * * * *", "30 2 * * *", "15 */3 * * *", "@daily", "0 6,18 * * mon-fri", "7 1-5/2 */2 * *",
    ]

    func schedulesAct() {
        guard !isSettling else { return }
        scheduleAnyway(.schedulesAct, in: scheduleRandom.pause(mean: 400))
        guard isRunning, oracle.isStarted else { return }
        let user = users[scheduleRandom.below(users.count)]
        let key = ScheduleKey(owner: user.profile.uid, name: "s\(scheduleRandom.below(3))")
        let caller = user.caller
        switch scheduleRandom.choose([45, 10, 10, 10, 10, 10, 5]) {
        case 0: setSchedule(key, by: caller)
        case 1: ask(.removeSchedule(key), by: caller, user: nil)
        case 2: ask(.runSchedule(key), by: caller, user: nil)
        case 3: ask(.suspendSchedule(key, isSuspended: true), by: caller, user: nil)
        case 4: ask(.suspendSchedule(key, isSuspended: false), by: caller, user: nil)
        case 5: ask(.schedules(after: nil, owner: nil, limit: 10), by: caller, user: nil)
        default:
            // What is asked for at once follows one another.
            setSchedule(key, by: caller)
            ask(.schedule(key), by: caller, user: nil)
            ask(.suspendSchedule(key, isSuspended: scheduleRandom.chance(0.5)), by: caller, user: nil)
            if scheduleRandom.chance(0.3) { ask(.removeSchedule(key), by: caller, user: nil) }
        }
    }

    private func setSchedule(_ key: ScheduleKey, by caller: Caller) {
        let letter = scheduleRandom.pick(["f", "m", "s", "l"])
        var source: JSON = ["type": "url", "url": .string("http://\(HostProfile.name(0))/\(letter)")]
        if scheduleRandom.chance(0.4) { source = ["type": "value", "value": "{{schedule/time}}"] }
        var spec: JSON = ["source": source, "timeout": 2000]
        if scheduleRandom.chance(0.05), var object = spec.object {
            object["queue"] = "no such queue"
            spec = .object(object)
        }
        let admission = Admission(policy: Scenario.policy, limits: scenario.settings.limits)
        guard let queues = try? admission.schedule(spec, at: JSONPointer(["spec"]), owner: key.owner) else { return }
        let calendar = scheduleRandom.pick(Self.calendars)
        let zone = scheduleRandom.chance(0.5) ? "UTC" : "Test/Zone"
        var timing = ScheduleTiming.every(Int64(scheduleRandom.pick([30, 300, 1_000, 7_200])) * 1000)
        if scheduleRandom.chance(0.5), let expression = try? CalendarExpression(calendar) {
            timing = .calendar(calendar, expression, zone: zone)
        }
        let new = NewSchedule(
            key: key, timing: timing, zone: Scenario.zones[zone] ?? .utc,
            catchUp: scheduleRandom.pick(ScheduleCatchUp.allCases),
            overlap: scheduleRandom.pick(ScheduleOverlap.allCases), isSuspended: scheduleRandom.chance(0.1), spec: spec,
            queues: queues)
        ask(.setSchedule(new), by: caller, user: nil)
    }

    /// All schedules are removed, so that everything can end.
    func endSchedules() {
        for key in oracle.schedules.keys.sorted() where failure == nil {
            ask(.removeSchedule(key), by: administrator.caller, user: nil)
        }
    }
}
