import InMemoryStore
import JobModel
import JobCore

/// The actions of users.
extension World {
    /// Sends a request and returns its number; does nothing while no daemon runs.
    @discardableResult
    func ask(_ request: CoreRequest, by caller: Caller, user: Int?) -> RequestID? {
        guard core != nil, failure == nil else { return nil }
        lastRequest += 1
        let id = lastRequest
        trace.add(.request, at: clock.elapsed, id)
        oracle.asks(id, request, caller, user: user, at: node.number)
        feed(.request(id, request, caller))
        return id
    }

    /// Handles an answer.
    func answered(_ id: RequestID, _ answer: CoreAnswer) {
        guard let asked = oracle.answered(id, answer, self), let index = asked.user else { return }
        guard case .submitted(let jobs) = answer else { return }
        for case .success(let job) in jobs { users[index].remember(job.job) }
    }

    /// Starts or continues a bout of a user.
    func userActs(_ index: Int) {
        guard !isSettling else { return }
        node = node(of: index)
        let user = users[index]
        let hour = clock.hours.truncatingRemainder(dividingBy: 24)
        if hour >= user.profile.hoursOfWork {
            return schedule(.userActs(index), in: (24 - hour) * 3600 + random.unit() * 60)
        }
        if user.actsLeft == 0 { beginBout(user) }
        user.actsLeft -= 1
        if core != nil {
            switch user.profile.character {
            case .honest: honestAct(user, index)
            case .greedy: flood(user, index)
            case .hostile: hostileAct(user, index)
            }
        }
        let pause: Double =
            switch (user.actsLeft, user.profile.character) {
            case (0, _): random.pause(mean: user.profile.pause)
            case (_, .honest): random.spread(0.01, 20)
            default: random.spread(0.000_5, 0.3)
            }
        schedule(.userActs(index), in: pause)
    }

    private func beginBout(_ user: User) {
        switch user.profile.character {
        case .honest: user.actsLeft = random.within(1...12)
        case .greedy: user.actsLeft = random.within(1...8)
        case .hostile:
            user.actsLeft = random.within(10...80)
            user.bout = random.pick([.mixed, .flood, .cancel, .retry, .remove, .watch, .wait, .trees, .minds])
        }
    }

    // MARK: - Acts

    private func honestAct(_ user: User, _ index: Int) {
        switch random.choose([51, 10, 7, 6, 4, 5, 4, 4, 4]) {
        case 0: submitTree(user, index)
        case 1: submitMany(user, index, random.within(2...12))
        case 2: wait(user, index)
        case 3: watch(user, index)
        case 4: endWatch(user)
        case 5: cancel(user, index)
        case 6: act(user, index) { .change($0, .remove) }
        case 7: retry(user, index)
        default: changeMind(user, index)
        }
    }

    /// Holds, releases or sets jobs, one or several.
    private func changeMind(_ user: User, _ index: Int) {
        var settings = JobSettings()
        switch random.below(5) {
        case 0: settings.priority = random.within(-1000...1000)
        case 1: settings.queue = random.pick(scenario.queues)
        case 2: settings.start = random.pick([.now, .after(30), .at(clock.wall.adding(seconds: 20))])
        case 3: (settings.tags, settings.label) = (["t\(random.below(4))"], "new")
        default: (settings.deadline, settings.rate) = (random.pick([nil, 600]), 1000)
        }
        let action = random.pick([JobAction.hold, .hold, .release, .set(settings)])
        guard random.chance(0.3) else { return act(user, index) { .change($0, action) } }
        let jobs = Array(user.jobs.suffix(random.within(1...40)))
        ask(.changeAll(jobs, action, onlyCounts: random.chance(0.2)), by: user.caller, user: index)
    }

    private func hostileAct(_ user: User, _ index: Int) {
        figures.hostileActs += 1
        switch user.bout {
        case .mixed: honestAct(user, index)
        case .flood: flood(user, index)
        case .cancel: act(user, index) { .change($0, .cancel) }
        case .retry: retry(user, index)
        case .remove: act(user, index) { .change($0, .remove) }
        case .watch: if random.chance(0.6) { watch(user, index) } else { endWatch(user) }
        case .wait: wait(user, index)
        case .minds: changeMind(user, index)
        case .trees:
            submitTree(user, index)
            if random.chance(0.5) { act(user, index) { .change($0, .cancel) } }
        }
    }

    private func act(_ user: User, _ index: Int, _ request: (JobID) -> CoreRequest) {
        guard let job = random.element(of: Array(user.jobs.suffix(random.pick([3, 20, 300])))) else { return }
        ask(request(job), by: user.caller, user: index)
    }

    /// Cancels a job, sometimes followed by a change of mind.
    private func cancel(_ user: User, _ index: Int) {
        guard let job = random.element(of: Array(user.jobs.suffix(20))) else { return }
        ask(.change(job, .cancel), by: user.caller, user: index)
        if random.chance(0.4) { ask(.change(job, .retry(from: .failed)), by: user.caller, user: index) }
    }

    private func retry(_ user: User, _ index: Int) {
        let point: RetryPoint = random.chance(0.6) ? .failed : .start
        act(user, index) { .change($0, .retry(from: point)) }
    }

    private func maker(_ user: User) -> SpecMaker {
        SpecMaker(
            queues: scenario.queues, hosts: scenario.hosts.count, children: scenario.settings.limits.children,
            depth: scenario.settings.limits.depth, hasPressingDeadlines: seed % 3 == 1,
            jobs: Array(user.jobs.suffix(random.pick([2, 10, 100]))), now: clock.wall)
    }

    private func newJob(_ json: JSON, _ user: User, watched: Bool) -> NewJob? {
        // The server refuses malformed specs before they reach the core.
        let subscription = watched ? lastSubscription + 1 : nil
        guard let new = SpecReading.job(json, scenario.settings.limits, subscription) else { return nil }
        guard watched else { return new }
        lastSubscription += 1
        user.subscriptions.append(lastSubscription)
        return new
    }

    private func submitTree(_ user: User, _ index: Int) {
        var maker = maker(user)
        guard let job = newJob(maker.job(&random), user, watched: random.chance(0.15)) else { return }
        figures.submitted += 1
        ask(.submit([job]), by: user.caller, user: index)
    }

    private func submitMany(_ user: User, _ index: Int, _ count: Int) {
        let jobs = (0..<count).compactMap { _ -> NewJob? in
            var maker = maker(user)
            maker.budget = 3
            return newJob(maker.job(&random), user, watched: random.chance(0.05))
        }
        figures.submitted += jobs.count
        ask(.submit(jobs), by: user.caller, user: index)
    }

    private func flood(_ user: User, _ index: Int) {
        let queue = random.pick(scenario.queues)
        let url = "http://h\(random.below(scenario.hosts.count)).test/f"
        let hasHost = random.chance(0.5)
        let source: JSON =
            hasHost ? ["type": "url", "url": .string(url)] : ["type": "program", "program": "x", "arguments": []]
        let job = newJob(["source": source, "queue": .string(queue), "priority": 1000], user, watched: false)
        let jobs = Array(repeating: job, count: random.within(20...200)).compactMap(\.self)
        figures.submitted += jobs.count
        ask(.submit(jobs), by: user.caller, user: index)
    }

    private func wait(_ user: User, _ index: Int) {
        guard !user.jobs.isEmpty else { return }
        let jobs = (0..<random.within(1...4)).map { _ in random.pick(user.jobs) }
        guard let id = ask(.wait(Array(Set(jobs)).sorted()), by: user.caller, user: index) else { return }
        user.waits.append(id)
        if user.waits.count > 20 { feed(.abandon(user.waits.removeFirst())) }
    }

    private func watch(_ user: User, _ index: Int) {
        lastSubscription += 1
        let subject: WatchScope.Subject
        switch random.choose([50, 30, 20]) {
        case 0:
            guard let job = random.element(of: user.jobs), oracle.isOpen(job, self) else { return }
            subject = .jobs([job])
        case 1: subject = .tag("t\(random.below(4))")
        default: subject = .all
        }
        user.subscriptions.append(lastSubscription)
        let scope = WatchScope(subject, includesChildren: random.chance(0.5))
        ask(.watch(scope, lastSubscription), by: user.caller, user: index)
        if user.subscriptions.count > 20 { endWatch(user) }
    }

    private func endWatch(_ user: User) {
        guard !user.subscriptions.isEmpty else { return }
        feed(.unsubscribe(user.subscriptions.remove(at: random.below(user.subscriptions.count))))
    }

    // MARK: - Administrators, clocks and disks

    func administratorActs() {
        guard !isSettling else { return }
        if !isAlone { node = chances.pick(nodes) }
        schedule(.administratorActs, in: random.pause(mean: scenario.secondsBetweenChanges))
        guard core != nil else { return }
        if random.chance(0.1) { return feed(.configure(settings)) }
        let queue = random.pick(scenario.queues)
        var change = QueueChange()
        switch random.below(3) {
        case 0: change.concurrency = random.within(1...16)
        case 1: change.perUser = random.within(1...8)
        default: change.isSuspended = random.chance(0.4)
        }
        ask(.setQueue(queue, change), by: administrator.caller, user: nil)
    }

    func clockSet() {
        guard !isSettling, let mean = scenario.secondsBetweenClockSets else { return }
        schedule(.clockSet, in: random.pause(mean: mean))
        figures.clockSets += 1
        let years = 31_536_000_000 * Int64(random.pick([-1, 1]))
        clock.setWrong(by: random.pick([0, 0, 2_000, -2_000, 3_600_000, -3_600_000, 86_400_000, years]))
        trace.add(.clockSet, at: clock.elapsed, clock.error)
        clocksWereSet()
    }

    /// Tells every node that the wall clock was set, as the kernel does.
    func clocksWereSet() {
        clockSetAt = clock.elapsed
        let present = node
        defer { node = present }
        for other in nodes {
            node = other
            feed(.tick)
        }
    }

    func roomChanges() {
        guard !isSettling else { return }
        schedule(.roomChanges, in: random.spread(1_000, 40_000))
        setRoom(isShort: random.chance(0.4))
    }

    /// Damages a recent job's row for good, or makes it unreadable for a while: each round that reads it fails.
    func rowFails() {
        guard !isSettling, let mean = scenario.secondsBetweenBadRows else { return }
        schedule(.rowFails, in: damages.pause(mean: mean))
        // Mostly jobs that run or may start, because more can go wrong with them.
        let recent = (max(1, oracle.lastJob - 500)...max(1, oracle.lastJob)).filter {
            store.job($0) != nil && !store.isDamaged($0)
        }
        let running = recent.filter { store.job($0)?.run != nil }
        let ready = recent.filter { store.job($0)?.isReady == true }
        let candidates = [running, ready, recent][damages.below(3)]
        guard !candidates.isEmpty else { return }
        let job = candidates[damages.below(candidates.count)]
        figures.badRows += 1
        if damages.chance(0.7) {
            trace.add(.damaged, at: clock.elapsed, job)
            store.setDamaged(job, true)
            oracle.excuse(job, self)
        } else {
            trace.add(.unreadable, at: clock.elapsed, job)
            unreadable.insert(job)
            store.setUnreadable(job, true)
            schedule(.rowIsBack(job), in: damages.spread(1, 100))
        }
    }

    // MARK: - Schedules

    private static let calendars = [
        "*/20 * * * *", "0 * * * *", "30 2 * * *", "15 */3 * * *", "@daily", "0 6,18 * * mon-fri",
    ]

    func schedulesAct() {
        guard !isSettling else { return }
        if !isAlone { node = chances.pick(nodes) }
        schedule(.schedulesAct, in: random.pause(mean: 900))
        guard core != nil else { return }
        let user = random.pick(users)
        let key = ScheduleKey(owner: user.profile.uid, name: "s\(random.below(3))")
        switch random.choose([50, 10, 15, 10, 15]) {
        case 0: setSchedule(key, by: user.caller)
        case 1: ask(.removeSchedule(key), by: user.caller, user: nil)
        case 2: ask(.runSchedule(key), by: user.caller, user: nil)
        case 3: ask(.suspendSchedule(key, isSuspended: true), by: user.caller, user: nil)
        default: ask(.suspendSchedule(key, isSuspended: false), by: user.caller, user: nil)
        }
    }

    private func setSchedule(_ key: ScheduleKey, by caller: Caller) {
        let calendar = random.pick(Self.calendars)
        var timing = ScheduleTiming.every(Int64(random.pick([30, 300, 1_000, 7_200])) * 1000)
        if random.chance(0.5), let expression = try? CalendarExpression(calendar) {
            timing = .calendar(calendar, expression, zone: "UTC")
        }
        let spec: JSON = ["source": ["type": "url", "url": "http://h0.test/f"], "timeout": 2000]
        let schedule = Schedule(
            key: key, timing: timing, catchUp: random.pick(ScheduleCatchUp.allCases),
            overlap: random.pick(ScheduleOverlap.allCases), isSuspended: random.chance(0.1),
            setAt: Timestamp(milliseconds: 0), specSize: 0)
        ask(.setSchedule(NewSchedule(schedule, spec: spec.utf8)), by: caller, user: nil)
    }

    func prepare(_ preparation: SchedulePreparation) {
        guard core != nil else { return }
        var spec: JSON = ["source": ["type": "url", "url": "http://h0.test/f"], "timeout": 2000]
        if preparation.request == nil, var object = spec.object {
            object["key"] = .string(preparation.key.jobKey(at: preparation.time))
            spec = .object(object)
        }
        var reader = JobSpecReader.ofStored()
        let made = try? reader.scheduled(
            spec, by: preparation.key, at: preparation.time, hasKey: preparation.request == nil)
        guard let made, let text = made.text else { return fail(0, "A schedule's spec cannot be read.") }
        let job = NewJob(
            terms: NewJob.Terms(made, host: SpecReading.host(of: made)), document: .spec(text), digest: 1,
            uploads: reader.uploads)
        feed(.prepared(preparation, .success(job)))
    }

    func zonesRead(_ names: [String]) {
        feed(.zones(Dictionary(uniqueKeysWithValues: names.map { ($0, ZoneRules.utc) })))
    }

    /// Removes all schedules, so that everything can end.
    func removeSchedules() {
        for user in users {
            for number in 0..<3 {
                let key = ScheduleKey(owner: user.profile.uid, name: "s\(number)")
                ask(.removeSchedule(key), by: administrator.caller, user: nil)
            }
        }
    }
}
