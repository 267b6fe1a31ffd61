import InMemoryStore
import JobModel
import JobCore

enum WorldEvent {
    case round
    case probe
    case tick
    case expand(RunID)
    case makeChildren(RunID, from: Int)
    case runEnds(RunID)
    case filesRemoved(WorkID, start: Int)
    case prepare(SchedulePreparation, start: Int)
    case zonesRead([String], start: Int)
    case userActs(Int)
    case schedulesAct
    case administratorActs
    case clockSet
    case roomChanges
    case rowFails
    case rowIsBack(JobID)
    case restart(Core.Start)
    // With several nodes only.
    case poll
    case pauses
    case lifeEnds(Int64)
    case fateIsTold(Int64)
}

extension WorldEvent {
    /// Whether it happens even while its node stands still.
    var isOfStore: Bool {
        switch self {
        case .lifeEnds, .roomChanges, .rowFails, .rowIsBack, .clockSet, .schedulesAct, .administratorActs: true
        default: false
        }
    }
}

/// A violated invariant.
struct Failure: Error {
    let invariant: Int
    let message: String
    let time: Int64
}

/// A daemon of the world.
final class Node {
    let number: Int
    /// Nil while it does not run.
    var core: Core?
    var engine = SimulatedEngine()
    /// The number of its last start among those of all nodes.
    var life: Int64 = 0
    /// Counts its starts.
    var start = 0
    /// The time from which schedule times pass while it runs.
    var startedAt = Timestamp(milliseconds: 0)
    var effectsUntilCrash: Int?
    /// The elapsed time until which it stands still.
    var pausedUntil: Int64 = 0
    var isPollDue = false
    /// Whether it has no room for new jobs.
    var isShort = false

    var name: String { "node\(number)" }

    init(number: Int) { self.number = number }
}

/// Simulated daemons with their engines, sources, files, clocks and users, on one store, all from one seed in one thread.
final class World {
    let seed: UInt64
    let scenario: Scenario
    var random: SeededGenerator
    /// Separate numbers for bad rows, so that seeds without them keep their runs.
    var damages: SeededGenerator
    /// The same for several nodes.
    var chances: SeededGenerator
    var clock = SimulatedClock()
    var events = EventQueue<(node: Int, event: WorldEvent)>()
    var trace: Trace
    var figures = Figures()
    var failure: Failure?
    let store = InMemoryStore()
    let nodes: [Node]
    /// The node that the present event is about.
    var node: Node
    var core: Core? {
        get { node.core }
        set { node.core = newValue }
    }
    var engine: SimulatedEngine {
        _read { yield node.engine }
        _modify { yield &node.engine }
    }
    var life: Int64 { node.life }
    var isAlone: Bool { nodes.count == 1 }
    /// Whether no node has work left.
    var rests: Bool { nodes.allSatisfy { $0.core.map { !$0.wantsTick } ?? false } }
    /// Runs that are neither lost nor, maybe, ended by a round whose fate is not known yet.
    var runs: [SimulatedEngine.Run] {
        nodes.filter { store.living.contains($0.life) && $0.engine.doubtful == nil }.flatMap(\.engine.runs.values)
    }
    /// The elapsed time since which nothing has hindered any daemon.
    var servesSince: Int64 = 0
    /// The same for schedules, which need the right time and room for their jobs.
    var unhinderedSince: Int64 { nodes.allSatisfy(\.isShort) ? .max : max(servesSince, clockSetAt, roomChangedAt) }
    var clockSetAt: Int64 = 0
    private var roomChangedAt: Int64 = 0
    var startedAt: Timestamp {
        get { node.startedAt }
        set { node.startedAt = newValue }
    }
    /// The number of daemon starts.
    var lastLife: Int64 = 0
    let oracle = Oracle()
    var users: [User]
    var administrator = Administrator()
    var roundsUntilFault: Int?
    /// Whether the present effects come later than their round, in which others have changed the rows since.
    var isLate = false
    /// Jobs whose rows the disk could not read for a while.
    var unreadable: Set<JobID> = []
    /// Whether users and faults are over and all work must reach its end.
    var isSettling = false
    var lastRequest: RequestID = 0
    var lastSubscription: SubscriptionID = 0

    init(seed: UInt64, printsTrace: Bool) {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        damages = SeededGenerator(seed: ~seed)
        chances = SeededGenerator(seed: seed ^ (1 << 63))
        scenario = Scenario(random: &random, damages: &damages, chances: &chances)
        trace = Trace(prints: printsTrace)
        users = scenario.users.map(User.init)
        nodes = (0..<scenario.nodes).map(Node.init)
        node = nodes[0]
    }

    /// Runs this many hours, then until all remaining work ends; returns the failure, if any.
    func run(hours: Double, jobs: Int) -> Failure? {
        for index in users.indices { schedule(.userActs(index), in: random.spread(0.01, 60)) }
        schedule(.administratorActs, in: random.pause(mean: scenario.secondsBetweenChanges))
        schedule(.schedulesAct, in: random.pause(mean: 400))
        if let mean = scenario.secondsBetweenClockSets { schedule(.clockSet, in: random.pause(mean: mean)) }
        schedule(.roomChanges, in: random.spread(1000, 40_000))
        if let mean = scenario.secondsBetweenBadRows { schedule(.rowFails, in: damages.pause(mean: mean)) }
        drawFault()
        for node in nodes {
            self.node = node
            drawCrash()
            if !isAlone { schedule(.pauses, in: chances.pause(mean: 4000)) }
            schedule(.restart(.clean), in: node.number == 0 ? 0 : chances.spread(0.001, 100))
        }
        let end = Int64(hours * 3.6e9)
        while failure == nil, clock.elapsed < end, figures.submitted < jobs, happens() {}
        figures.nanosecondsOfUsers = clock.elapsed * 1000
        if failure == nil { settle() }
        figures.nanoseconds = clock.elapsed * 1000
        figures.events = trace.count
        return failure
    }

    /// Handles the next event; returns false if there is none.
    func happens() -> Bool {
        guard let time = events.nextTime, let (number, event) = events.popFirst() else { return false }
        clock.advance(to: time)
        node = nodes[number]
        guard node.pausedUntil <= time || event.isOfStore else {
            events.add((number, event), at: node.pausedUntil)
            return true
        }
        switch event {
        case .round: round()
        case .probe: probe()
        case .tick: tickCame()
        case .expand(let run): expand(run)
        case .makeChildren(let run, let from): makeChildren(run, from: from)
        case .runEnds(let run): runEnds(run)
        case .filesRemoved(let work, let start): if start == node.start { filesRemoved(work) }
        case .prepare(let preparation, let start): if start == node.start { prepare(preparation) }
        case .zonesRead(let names, let start): if start == node.start { zonesRead(names) }
        case .userActs(let index): userActs(index)
        case .schedulesAct: schedulesAct()
        case .administratorActs: administratorActs()
        case .clockSet: clockSet()
        case .roomChanges: roomChanges()
        case .rowFails: rowFails()
        case .rowIsBack(let job): store.setUnreadable(job, false)
        case .restart(let start): restart(start)
        case .poll: poll()
        case .pauses: pauses()
        case .lifeEnds(let life): lifeEnds(life)
        case .fateIsTold(let life): if life == self.life { fateIsTold() }
        }
        return true
    }

    func schedule(_ event: WorldEvent, in seconds: Double) {
        let pause = max(0, min(seconds, 1e10)) * Double(SimulatedClock.second)
        events.add((node.number, event), at: clock.elapsed.saturatingAdding(Int64(pause)))
    }

    /// The node whose socket a user is connected to.
    func node(of user: Int) -> Node { nodes[user % nodes.count] }

    func fail(_ invariant: Int, _ message: String) {
        guard failure == nil else { return }
        failure = Failure(invariant: invariant, message: message, time: clock.elapsed)
    }

    func expect(_ condition: Bool, _ invariant: Int, _ message: @autoclosure () -> String) {
        if !condition { fail(invariant, message()) }
    }

    func setRoom(isShort: Bool) {
        node.isShort = isShort
        roomChangedAt = clock.elapsed
        feed(.room(shortage: isShort ? "The disk is full." : nil))
    }

    // MARK: - The end

    private static let longestSettling: Int64 = 2_000 * 3_600 * SimulatedClock.second

    private func settle() {
        isSettling = true
        trace.add(.settle, at: clock.elapsed)
        roundsUntilFault = nil
        store.heal()
        for job in unreadable { store.setUnreadable(job, false) }
        clock.setWrong(by: 0)
        clockSetAt = clock.elapsed
        for node in nodes.reversed() {
            self.node = node
            node.effectsUntilCrash = nil
            node.pausedUntil = 0
            fateIsTold()
            if core == nil { restart(.crashed) }
            if !isLiving { notCommitted([]) }
            // Until then it would refuse to resume queues.
            if engine.phase == .failing { probe() }
            setRoom(isShort: false)
            // A schedule that is set on the way must not outlast their removal.
            while !isAlone, failure == nil, engine.phase == .serving, !engine.inbox.isEmpty { round() }
        }
        for (index, user) in users.enumerated() {
            node = node(of: index)
            for id in user.subscriptions { feed(.unsubscribe(id)) }
            for id in user.waits { feed(.abandon(id)) }
        }
        for queue in scenario.settings.queues {
            var change = QueueChange()
            change.isSuspended = false
            ask(.setQueue(queue.name, change), by: administrator.caller, user: nil)
        }
        removeSchedules()
        for node in nodes {
            self.node = node
            for id in engine.runs.keys.sorted() { schedule(.runEnds(id), in: 1) }
        }
        let end = clock.elapsed + Self.longestSettling
        var looks = 0
        while failure == nil {
            looks += 1
            if looks % 64 == 0, isAtRest { break }
            let isQuiet = events.nextTime.map { $0 > clock.elapsed + 86_400 * SimulatedClock.second } ?? false
            if isQuiet || looks % 4096 == 0 { leapToFarJobs() }
            // Each may hold up other jobs of its list.
            if isQuiet || looks % 1024 == 0 { _ = releaseHeldJobs() }
            guard clock.elapsed < end else { break }
            if !happens(), !releaseHeldJobs() { break }
        }
        guard failure == nil else { return }
        oracle.end(self)
    }

    /// Advances the clock to the last job's start: clocks a year ahead created jobs that wait that long.
    private func leapToFarJobs() {
        let far = clock.wall.adding(seconds: 172_800)
        let times = store.allJobs.lazy.filter { $0.state == .scheduled && $0.due == nil }.compactMap(\.notBefore)
        guard let last = times.filter({ $0 > far }).max() else { return }
        clock.setWrong(by: clock.error + last.milliseconds - clock.wall.milliseconds)
        clocksWereSet()
    }

    private func releaseHeldJobs() -> Bool {
        let held = store.allJobs.filter { $0.state == .held }.map(\.id)
        guard !held.isEmpty else { return false }
        return ask(.changeAll(held, .release, onlyCounts: false), by: administrator.caller, user: nil) != nil
    }

    private var isAtRest: Bool {
        let rest = nodes.allSatisfy { node in
            node.core?.wantsTick == false && node.engine.runs.isEmpty && node.engine.inbox.isEmpty
                && node.engine.phase == .serving && !node.isPollDue
        }
        return rest && oracle.unfinished == 0 && oracle.cleaning.isEmpty
    }
}
