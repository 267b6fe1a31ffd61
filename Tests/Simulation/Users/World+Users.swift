import JobCore
import JobModel

/// What users do.
extension World {
    /// Asks the core for something; does nothing while no daemon runs. Gives the request's number.
    @discardableResult
    func ask(_ request: CoreRequest, by caller: Caller, user: Int?) -> RequestID? {
        guard isRunning, oracle.isStarted, failure == nil else { return nil }
        lastRequest += 1
        oracle.asks(lastRequest, request, caller, user: user, at: clock.now, self)
        let id = lastRequest
        feed(.request(id, request, caller))
        return id
    }

    /// An answer arrived.
    func answered(_ request: RequestID, _ answer: CoreAnswer) {
        guard let open = oracle.lastAnswered, let index = open.user else { return }
        let user = users[index]
        switch answer {
        case .finished:
            if case .wait(let ids, _) = open.request { schedule(.looksAtFinished(ids, user: index), in: 0.001) }
        case .submitted(let jobs):
            for case .success(let job) in jobs { user.remember(job.job) }
        case .page(let jobs, _): for job in jobs.prefix(3) { user.remember(job.job.id) }
        default: break
        }
    }

    /// A bout of a user begins, or goes on.
    func userActs(_ index: Int) {
        guard !isSettling else { return }
        let user = users[index]
        let hour = clock.hours.truncatingRemainder(dividingBy: 24)
        if hour >= user.profile.hoursOfWork {
            return scheduleAnyway(.userActs(index), in: (24 - hour) * 3600 + random.unit() * 60)
        }
        if user.actsLeft == 0 { beginBout(user) }
        user.actsLeft -= 1
        if isRunning, oracle.isStarted {
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
            default: random.spread(0.0005, 0.3)
            }
        scheduleAnyway(.userActs(index), in: pause)
    }

    private func beginBout(_ user: User) {
        switch user.profile.character {
        case .honest: user.actsLeft = random.within(1...12)
        case .greedy: user.actsLeft = random.within(1...8)
        case .hostile:
            user.actsLeft = random.within(10...80)
            user.bout = random.pick([.mixed, .flood, .cancel, .retry, .remove, .watch, .wait, .trees])
            figures.hostileBouts += 1
        }
    }

    // MARK: - The honest

    private func honestAct(_ user: User, _ index: Int) {
        switch random.choose([55, 8, 8, 5, 7, 6, 4, 4, 3, 4, 3, 3, scenario.hasFairQueue ? 3 : 0]) {
        case 0: submitTree(user, index)
        case 1: submitMany(user, index, random.within(2...12))
        case 2: askAboutJob(user, index)
        case 3: list(user, index)
        case 4: wait(user, index)
        case 5: watch(user, index)
        case 6: endWatch(user)
        case 7: act(on: random.element(of: user.jobs), user, index) { .cancel($0) }
        case 8: act(on: random.element(of: user.jobs), user, index) { .remove($0) }
        case 9: retry(user, index)
        case 10: ask(random.chance(0.5) ? .statistics : .queues, by: user.caller, user: index)
        case 11: act(on: random.element(of: user.jobs), user, index) { .result($0) }
        default: flood(user, index, isFair: true)
        }
    }

    func act(on job: JobID?, _ user: User, _ index: Int, _ request: (JobID) -> CoreRequest) {
        guard let job else { return }
        ask(request(job), by: user.caller, user: index)
    }

    private func maker() -> SpecMaker {
        SpecMaker(
            queues: scenario.queues, hosts: scenario.hosts.count, children: scenario.settings.limits.children,
            depth: scenario.settings.limits.depth,
            hasPressingDeadlines: seed % 3 == 1, now: clock.wall)
    }

    private func newJob(_ json: JSON, _ user: User, watched: Bool = false) -> NewJob? {
        // What has no form is refused before it reaches the core.
        guard var new = oracle.admitted(withPrograms(json), user.caller, self) else { return nil }
        guard watched else { return new }
        lastSubscription += 1
        user.subscriptions.append(lastSubscription)
        new.subscription = lastSubscription
        return new
    }

    private func submitTree(_ user: User, _ index: Int) {
        var maker = maker()
        let json = maker.job(&random)
        guard let job = newJob(json, user, watched: random.chance(0.15)) else { return }
        ask(.submit([job]), by: user.caller, user: index)
    }

    private func submitMany(_ user: User, _ index: Int, _ count: Int) {
        var maker = maker()
        maker.budget = 5
        var jobs: [NewJob] = []
        for _ in 0..<count {
            if let job = newJob(maker.job(&random), user) { jobs.append(job) }
        }
        if !jobs.isEmpty { ask(.submit(jobs), by: user.caller, user: index) }
    }

    private func askAboutJob(_ user: User, _ index: Int) {
        act(on: random.element(of: user.jobs), user, index) { .job($0) }
    }

    private func list(_ user: User, _ index: Int) {
        var filter = JobFilter()
        if random.chance(0.4) { filter.states = [random.pick(JobState.allCases)] }
        if random.chance(0.2) { filter.queue = random.pick(scenario.queues) }
        if random.chance(0.2) { filter.tag = "t\(random.below(4))" }
        if random.chance(0.3) { filter.parent = random.element(of: user.jobs) }
        if random.chance(0.3) { filter.after = random.element(of: user.jobs) }
        if !user.profile.isAdmin { filter.owner = user.profile.uid }
        filter.limit = random.pick([1, 10, 100, 1000])
        filter.order = random.pick([.newest, .oldest])
        ask(.list(filter), by: user.caller, user: index)
    }

    private func wait(_ user: User, _ index: Int) {
        var ids: [JobID] = []
        for _ in 0..<random.within(1...5) {
            if let id = random.element(of: user.jobs), !ids.contains(id) { ids.append(id) }
        }
        guard !ids.isEmpty else { return }
        let timeout = random.chance(0.6) ? random.pick([0, 0.5, 20, 900]) : nil
        guard let request = ask(.wait(ids, timeout: timeout), by: user.caller, user: index) else { return }
        user.waits.append(request)
        if user.waits.count > 40 { user.waits.removeFirst(20) }
        if random.chance(0.2) { abandon(user) }
    }

    private func abandon(_ user: User) {
        guard let request = random.element(of: user.waits) else { return }
        user.waits.removeAll { $0 == request }
        oracle.abandons(request)
        feed(.abandon(request))
    }

    private func watch(_ user: User, _ index: Int) {
        let subject: WatchScope.Subject
        switch random.choose([50, 25, 25]) {
        case 0:
            let ids = Set((0..<random.within(1...6)).compactMap { _ in random.element(of: user.jobs) }).sorted()
            guard !ids.isEmpty else { return }
            subject = .jobs(ids)
        case 1: subject = .tag("t\(random.below(4))")
        default: subject = .all
        }
        if user.subscriptions.count > 6 { endWatch(user) }
        lastSubscription += 1
        let scope = WatchScope(
            subject, interval: random.pick([0.01, 0.25, 2, 60]), includesChildren: random.chance(0.4))
        user.subscriptions.append(lastSubscription)
        ask(.watch(scope, lastSubscription), by: user.caller, user: index)
    }

    /// Has a user watch all jobs with a tag, and what is below these.
    func watch(tag: String, by index: Int) {
        let user = users[index]
        if user.subscriptions.count > 6 { endWatch(user) }
        lastSubscription += 1
        user.subscriptions.append(lastSubscription)
        let scope = WatchScope(.tag(tag), interval: 2, includesChildren: true)
        ask(.watch(scope, lastSubscription), by: user.caller, user: index)
    }

    func endWatch(_ user: User) {
        guard isRunning, let subscription = random.element(of: user.subscriptions) else { return }
        user.subscriptions.removeAll { $0 == subscription }
        oracle.unsubscribes(subscription)
        feed(.unsubscribe(subscription))
    }

    private func retry(_ user: User, _ index: Int) {
        let point: Job.RetryPoint = random.chance(0.6) ? .failed : .start
        act(on: random.element(of: user.jobs), user, index) { .retry($0, from: point) }
    }

    // MARK: - The greedy

    /// Many jobs at once, of the highest priority, that fill every slot they can.
    private func flood(_ user: User, _ index: Int, isFair: Bool = false) {
        let isFair = isFair || scenario.hasFairQueue && random.chance(0.5)
        let letter = isFair ? "e" : random.pick(["e", "s", "l", "f"])
        let queue = isFair ? Scenario.fairQueue : random.pick(scenario.queues)
        let priority = random.pick([1000, 1000, 0])
        let host = random.chance(isFair ? 0.2 : 0.5) ? HostProfile.name(random.below(scenario.hosts.count)) : nil
        var jobs: [NewJob] = []
        for _ in 0..<random.within(isFair ? 30...120 : 5...60) {
            let name =
                host ?? (isFair ? "x\(random.below(1000)).test" : HostProfile.name(random.below(scenario.hosts.count)))
            let json: JSON = [
                "source": ["type": "url", "url": .string("http://\(name)/\(letter)")], "queue": .string(queue),
                "priority": JSON(priority), "timeout": 300,
            ]
            if let job = newJob(json, user) { jobs.append(job) }
        }
        if !jobs.isEmpty { ask(.submit(jobs), by: user.caller, user: index) }
    }

    // MARK: - The hostile

    private func hostileAct(_ user: User, _ index: Int) {
        figures.hostileActs += 1
        let anyJob = random.chance(0.15) ? JobID(random.below(Int(oracle.lastJob) + 5)) : random.element(of: user.jobs)
        switch user.bout {
        case .mixed: honestAct(user, index)
        case .flood: flood(user, index)
        case .cancel: act(on: anyJob, user, index) { .cancel($0) }
        case .retry:
            let point: Job.RetryPoint = random.chance(0.5) ? .failed : .start
            act(on: anyJob, user, index) { .retry($0, from: point) }
            if random.chance(0.5) { act(on: anyJob, user, index) { .cancel($0) } }
        case .remove:
            act(on: anyJob, user, index) { .cancel($0) }
            act(on: anyJob, user, index) { .remove($0) }
            if random.chance(0.3) { act(on: anyJob, user, index) { .retry($0, from: .start) } }
        case .watch:
            watch(user, index)
            if random.chance(0.7) { endWatch(user) }
        case .wait:
            wait(user, index)
            if random.chance(0.7) { abandon(user) }
        case .trees:
            submitTree(user, index)
            if random.chance(0.5), let job = user.jobs.last { act(on: job, user, index) { .cancel($0) } }
        }
    }

    // MARK: - The administrator

    func administratorActs() {
        guard !isSettling else { return }
        scheduleAnyway(.administratorActs, in: random.pause(mean: scenario.secondsBetweenChanges))
        guard isRunning, oracle.isStarted else { return }
        let caller = administrator.caller
        switch random.choose([30, 15, 10, 25, 10, 10]) {
        case 0:
            var change = QueueChange()
            change.concurrency = random.pick([1, 2, 4, 8, 16])
            if random.chance(0.4) { change.perUser = random.within(1...8) }
            ask(.setQueue(random.pick(scenario.queues), change), by: caller, user: nil)
        case 1:
            let name = random.pick(scenario.queues)
            administrator.suspended.append(name)
            ask(.setQueue(name, QueueChange(isSuspended: true)), by: caller, user: nil)
        case 2:
            scenario.settings.perHost = random.within(1...6)
            oracle.configures(scenario.settings)
            ask(.configure(scenario.settings), by: caller, user: nil)
        case 3: ask(random.chance(0.5) ? .statistics : .queues, by: caller, user: nil)
        case 4: ask(.probe, by: caller, user: nil)
        default: if random.chance(0.3) { stopCleanly() }
        }
        let names = administrator.suspended
        administrator.suspended = []
        for name in names {
            // Some stay so for longer.
            guard random.chance(0.6),
                ask(.setQueue(name, QueueChange(isSuspended: false)), by: caller, user: nil) != nil
            else {
                administrator.suspended.append(name)
                continue
            }
        }
    }
}
