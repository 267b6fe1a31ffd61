import InMemoryStore
import JobCore
import JobModel

/// One daemon's life under one seed: the core, and all that is around it, in one thread on a clock of its own.
///
/// Everything that happens is an event in ``queue``; each is handed to what it concerns, whose inputs to the core end in
/// ``feed(_:)``, the only caller of the core. ``Oracle`` sees every input, effect and durable change.
final class World {
    enum Event {
        /// The group of writes under way becomes durable, or fails.
        case commit
        case written([(WriteID, Result<StoreWritten, StoreError>)])
        /// The store looks.
        case look(ReadID, StoreRead)
        case rows(ReadID, Result<StoreRows, StoreError>)
        case runEnds(RunID)
        case runReports(RunID)
        /// A host refuses one of a run's connections, and wants to be left alone.
        case connectionRefused(RunID)
        /// A cancelled run ends all the same.
        case lateEnd(RunID, Outcome)
        case cleanedUp(CleanUpID)
        case checked(CheckID, ScheduledSpec)
        case resume
        case turn(UInt32)
        case zones([String])
        case userActs(Int)
        /// A user has the jobs shown that they waited for.
        case looksAtFinished([JobID], user: Int)
        case schedulesAct
        case administratorActs
        case crowd
        case impatience
        case impatientActs
        case busyHost
        case treesToCancel
        case readsSlowDown
        case treesToRemove
        case wideLists
        case usersChange
        case storeStutters
        case manyOutcomes
        case setClock
        case storeFault
        case storeHeals
        case stopCleanly
        case startAgain
        case spuriousTime
        case inspect
    }

    let seed: UInt64
    var random: SeededGenerator
    /// Chance of its own for what users do with schedules.
    var scheduleRandom: SeededGenerator
    /// The same for programs.
    var programRandom: SeededGenerator
    /// The same for connections that are refused.
    var refusalRandom: SeededGenerator
    /// When the wall clock was last set, in elapsed nanoseconds.
    var clockSetAt: Int64 = 0
    var scenario: Scenario
    var clock = SimulatedClock()
    var trace: Trace
    var queue = EventQueue<(life: Int?, event: Event)>()
    var store = SimulatedStore()
    var sources = SimulatedSources()
    var files = SimulatedFiles()
    var users: [User]
    var administrator = Administrator()
    let oracle: Oracle
    var figures = Figures()

    var core: JobCore
    /// Counts the cores that there were; what was meant for an earlier one is dropped.
    var life = 0
    var isRunning = false
    var isStopping = false
    /// Users and faults have stopped; what is there runs out.
    var isSettling = false
    var wakeAt: Int64?
    /// Files that are being removed for the core.
    var cleanUps = 0
    var effectsUntilCrash: Int?
    var effectsWaiting: [CoreEffect] = []
    var lastRequest: RequestID = 0
    var lastSubscription: SubscriptionID = 0
    var failure: Violation?

    init(seed: UInt64, printsTrace: Bool = false) {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        scheduleRandom = SeededGenerator(seed: seed ^ 0x5C4E_D01E)
        programRandom = SeededGenerator(seed: seed ^ 0x9406_4A35)
        refusalRandom = SeededGenerator(seed: seed ^ 0x2EF0_5A17)
        scenario = Scenario(random: &random, hasCrowds: Self.hasCrowds(seed), hasBusyHosts: Self.hasBusyHosts(seed))
        if Self.hasWideLists(seed) {
            // Many are open at a time, and few of their children may wait.
            scenario.settings.openLists = 256
            scenario.settings.limits.queuedJobsPerUser = 60
            scenario.settings.limits.children = 60
            scenario.settings.storedPerUser = 1 << 30
        }
        if Self.hasBriefRetention(seed) {
            scenario.settings.retentionBytes = 1
            scenario.settings.retentionCount = 1
        }
        trace = Trace(prints: printsTrace)
        users = scenario.users.map(User.init)
        oracle = Oracle(scenario: scenario)
        core = JobCore(
            settings: scenario.settings, admission: Admission(policy: Scenario.policy, limits: scenario.settings.limits)
        )
        effectsUntilCrash = nil
    }

    // MARK: - Time

    func after(_ seconds: Double) -> Int64 {
        clock.elapsed + Int64(max(0, min(seconds, 1e8)) * 1e9)
    }

    /// Something that a crash takes away.
    func schedule(_ event: Event, in seconds: Double) { queue.add((life, event), at: after(seconds)) }

    /// Something that happens whatever becomes of the daemon.
    func scheduleAnyway(_ event: Event, in seconds: Double) { queue.add((nil, event), at: after(seconds)) }

    /// Runs for so many hours of simulated time, or until so many jobs were submitted, then lets everything end. Gives what
    /// was violated.
    func run(hours: Double, jobs: Int = .max) -> Violation? {
        start()
        for index in users.indices {
            scheduleAnyway(.userActs(index), in: random.pause(mean: users[index].profile.pause))
        }
        scheduleAnyway(.administratorActs, in: random.pause(mean: scenario.secondsBetweenChanges))
        if let mean = scenario.secondsBetweenFaults { scheduleAnyway(.storeFault, in: random.pause(mean: mean)) }
        if let mean = scenario.secondsBetweenClockSets { scheduleAnyway(.setClock, in: random.pause(mean: mean)) }
        if Self.hasCrowds(seed) { scheduleAnyway(.crowd, in: 1_800) }
        if Self.hasSchedules(seed) { scheduleAnyway(.schedulesAct, in: 60) }
        if Self.hasImpatience(seed) { scheduleAnyway(.impatience, in: 300) }
        if Self.hasBusyHosts(seed) { scheduleAnyway(.busyHost, in: 600) }
        if Self.hasSlowReads(seed) { scheduleAnyway(.treesToCancel, in: 120) }
        if Self.hasWideLists(seed) { scheduleAnyway(.wideLists, in: 240) }
        if Self.hasBriefRetention(seed) { scheduleAnyway(.storeStutters, in: 60) }
        if Self.hasNeighbours(seed) {
            scheduleAnyway(.usersChange, in: 1)
            scheduleAnyway(.manyOutcomes, in: 60)
        }
        scheduleAnyway(.spuriousTime, in: 600)
        scheduleAnyway(.inspect, in: 60)
        let end = Int64(hours * 3.6e12)
        while failure == nil, clock.elapsed < end, figures.submitted < jobs, step(until: end) {}
        figures.nanosecondsOfUsers = clock.elapsed
        if failure == nil { settle() }
        figures.nanoseconds = clock.elapsed
        oracle.count(into: &figures)
        return failure
    }

    /// Goes on to what happens next; false where nothing does before `end`.
    func step(until end: Int64) -> Bool {
        let event = queue.nextTime ?? .max
        let wake = isRunning ? wakeAt ?? .max : .max
        guard min(event, wake) <= end else {
            clock.advance(to: end)
            return false
        }
        figures.events += 1
        if wake <= event {
            clock.advance(to: wake)
            wakeAt = nil
            feed(.time)
        } else {
            clock.advance(to: event)
            guard let (life, event) = queue.popFirst() else { return false }
            if let life, life != self.life { return true }
            handle(event)
        }
        return true
    }

    private func handle(_ event: Event) {
        switch event {
        case .commit: commit()
        case .written(let answers): written(answers)
        case .look(let id, let read): look(id, read)
        case .rows(let id, let rows): deliver(id, rows)
        case .runEnds(let run): runEnds(run)
        case .runReports(let run): runReports(run)
        case .lateEnd(let run, let outcome): feed(.ended(run, outcome, nil, random: random.unit()))
        case .connectionRefused(let run): feed(.refused(run, refusal()))
        case .cleanedUp(let id):
            cleanUps -= 1
            feed(.cleanedUp(id))
        case .checked(let id, let spec):
            store.checks -= 1
            let admission = Admission(policy: Scenario.policy, limits: scenario.settings.limits)
            feed(.checked(id, spec.checked(by: admission)))
        case .resume:
            store.yields -= 1
            feed(.resume)
        case .turn(let owner):
            store.yields -= 1
            feed(.turn(owner))
        case .zones(let names): feed(.zones(Scenario.zones.filter { names.contains($0.key) }))
        case .schedulesAct: schedulesAct()
        case .userActs(let index): userActs(index)
        case .looksAtFinished(let ids, let user): ask(.jobs(ids), by: users[user].caller, user: user)
        case .administratorActs: administratorActs()
        case .crowd: crowd()
        case .impatience: impatience()
        case .impatientActs: impatientActs()
        case .busyHost: busyHost()
        case .treesToCancel: treesToCancel()
        case .readsSlowDown: readsSlowDown()
        case .treesToRemove: treesToRemove()
        case .wideLists: wideLists()
        case .usersChange: usersChange()
        case .storeStutters: storeStutters()
        case .manyOutcomes: manyOutcomes()
        case .setClock: setClock()
        case .storeFault: storeFault()
        case .storeHeals: storeHeals()
        case .stopCleanly: stopCleanly()
        case .startAgain: start()
        case .spuriousTime:
            feed(.time)
            if !isSettling { scheduleAnyway(.spuriousTime, in: random.pause(mean: 600)) }
        case .inspect:
            inspect()
            if !isSettling { scheduleAnyway(.inspect, in: random.pause(mean: 60)) }
        }
    }

    // MARK: - The core

    /// Hands an input to the core and carries out what it wants, up to a crash.
    func feed(_ input: CoreInput) {
        guard isRunning, failure == nil else { return }
        traceInput(input)
        Watchdog.inputBegins()
        let now = clock.now
        oracle.willHandle(input, at: now, self)
        let effects = core.handle(input, at: now)
        figures.effects += effects.count
        for effect in effects {
            if let left = effectsUntilCrash {
                effectsUntilCrash = left - 1
                if left <= 0 { return crash() }
            }
            traceEffect(effect)
            carryOut(effect, at: now)
            if failure != nil { return }
        }
        wakeAt = clock.elapsed(of: core.nextWake)
        // Timers are a little late, always.
        if let wake = wakeAt { wakeAt = max(wake, clock.elapsed) + Int64(random.below(2_000_000)) }
        oracle.didHandle(at: now, self)
    }

    private func carryOut(_ effect: CoreEffect, at now: CoreTime) {
        oracle.effect(effect, at: now, self)
        switch effect {
        case .write(let id, let write): self.write(id, write)
        case .read(let id, let read): self.read(id, read)
        case .mark(let job, let isWorking): store.mark(job, isWorking: isWorking)
        case .start(let run): begin(run)
        case .cancel(let run, _): cancel(run)
        case .discardParts(let id, let job, let links, _):
            files.discardParts(of: job, links: links)
            cleanUps += 1
            schedule(.cleanedUp(id), in: random.spread(0.0001, 0.1))
        case .cleanUp(let id, let removed):
            for job in removed { files.remove(job.id) }
            cleanUps += 1
            schedule(.cleanedUp(id), in: random.spread(0.0001, 0.5))
        case .check(let id, let spec):
            store.checks += 1
            schedule(.checked(id, spec), in: scheduleRandom.spread(0.00001, 0.05))
        case .answer(let request, let answer): answered(request, answer)
        case .notify, .progress, .log: break
        case .started(.success): break
        case .started(.failure):
            // The service manager starts the daemon again.
            isRunning = false
            life += 1
            scheduleAnyway(.startAgain, in: 1)
        case .readZones(let names): schedule(.zones(names), in: scheduleRandom.spread(0.0001, 0.1))
        case .yield:
            store.yields += 1
            schedule(.resume, in: 0)
        // Those of other owners come in between.
        case .turn(let owner):
            store.yields += 1
            schedule(.turn(owner), in: scheduleRandom.spread(0.00001, 0.05))
        }
    }

    func violate(_ invariant: Int, _ message: @autoclosure () -> String) {
        guard failure == nil else { return }
        failure = Violation(invariant: invariant, message: message(), time: clock.elapsed)
    }
}

/// Something that must always hold did not.
struct Violation {
    let invariant: Int
    let message: String
    let time: Int64
}
