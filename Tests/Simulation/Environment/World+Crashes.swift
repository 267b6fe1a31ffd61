import InMemoryStore
import JobCore
import JobModel

/// The ends of a daemon, and its next beginning.
extension World {
    /// The daemon is gone between two effects. What was on its way to the disk is there or not.
    func crash() {
        let isPowerLoss = random.chance(0.15)
        figures.crashes += 1
        trace.add(isPowerLoss ? .powerLoss : .crash, at: clock.elapsed, Int64(life))
        keepSomeWrites()
        guard failure == nil else { return }
        // Marks outlive the process, but not the machine.
        if isPowerLoss { store.clearMarks() }
        oracle.crashed(self)
        leave()
        scheduleAnyway(.startAgain, in: random.spread(0.05, 10))
    }

    /// Nothing of this life goes on.
    private func leave() {
        isRunning = false
        isStopping = false
        wakeAt = nil
        cleanUps = 0
        life += 1
        store.forget()
        sources.forget(interruptedIn: &files)
        for user in users { user.forget() }
        effectsUntilCrash = nil
    }

    /// SIGTERM: what is being written is awaited, then the daemon ends.
    func stopCleanly() {
        guard isRunning, !isStopping else { return }
        trace.add(.cleanStop, at: clock.elapsed, Int64(life))
        figures.cleanStops += 1
        isStopping = true
        effectsUntilCrash = nil
        let life = life
        feed(.stop)
        while failure == nil, self.life == life,
            !(store.group.isEmpty && store.waiting.isEmpty && store.unanswered == 0 && store.reads == 0)
        {
            guard let time = queue.nextTime else { break }
            clock.advance(to: time)
            guard let (meant, event) = queue.popFirst() else { break }
            // Only what the store answers still counts; the rest comes after the end.
            switch event {
            case .commit, .written, .look, .rows: if meant == life { handleWhileStopping(event) }
            case .userActs, .schedulesAct, .administratorActs, .crowd, .impatience, .impatientActs, .busyHost,
                .treesToCancel, .readsSlowDown, .treesToRemove, .wideLists, .usersChange, .manyOutcomes, .storeStutters,
                .setClock, .storeFault, .storeHeals, .spuriousTime, .inspect, .startAgain:
                scheduleAnyway(event, in: 1)
            default: break
            }
        }
        guard failure == nil, self.life == life else { return }
        store.clearMarks()
        oracle.stopped(self)
        leave()
        scheduleAnyway(.startAgain, in: random.spread(0.05, 30))
    }

    private func handleWhileStopping(_ event: Event) {
        switch event {
        case .commit: commit()
        case .written(let answers): written(answers)
        case .look(let id, let read): look(id, read)
        case .rows(let id, let rows): deliver(id, rows)
        default: break
        }
    }

    /// A daemon starts on what is stored.
    func start() {
        core = JobCore(
            settings: scenario.settings, admission: Admission(policy: Scenario.policy, limits: scenario.settings.limits)
        )
        isRunning = true
        isStopping = false
        if let mean = scenario.effectsBetweenCrashes, !isSettling {
            // Crashes come in rows, too, in the middle of starting: under one seed in three in such that what was at work
            // in all of them counts as poison.
            let isSoon = random.chance(seed % 3 == 2 ? 0.75 : 0.25)
            effectsUntilCrash = Int(isSoon ? random.spread(1, 300) : random.pause(mean: mean))
        }
        store.tables.restart()
        files.removeAll(except: { store.contains($0) })
        oracle.starting(self)
        feed(.start)
    }

    func setClock() {
        guard let mean = scenario.secondsBetweenClockSets, !isSettling else { return }
        let sign: Double = random.chance(0.5) ? 1 : -1
        let seconds =
            switch random.choose([40, 40, 15, 5]) {
            case 0: 0.0
            case 1: sign * random.spread(1, 100)
            case 2: sign * random.spread(3600, 86_400)
            default: sign * random.spread(31_536_000, 315_360_000)
            }
        set(clockWrongBy: Int64(seconds * 1000))
        scheduleAnyway(.setClock, in: random.pause(mean: mean))
    }

    func set(clockWrongBy milliseconds: Int64) {
        clock.setWrong(by: milliseconds)
        clockSetAt = clock.elapsed
        trace.add(.clockSet, at: clock.elapsed, milliseconds)
        figures.clockSets += 1
        oracle.clockSet(clock.wall)
        // The daemon is told at once by the kernel that the clock was set, and looks.
        if isRunning { feed(.time) }
    }
}
