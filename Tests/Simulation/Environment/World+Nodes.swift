import InMemoryStore
import JobCore
import JobModel

/// What happens with several nodes only: news, pauses, and lives that end.
extension World {
    /// Seconds without a beat after which others take a node to be gone.
    static let lease = 16.0

    /// Whether the others do not take the present node to be gone.
    var isLiving: Bool { store.living.contains(life) }

    /// The settings of the present node.
    var settings: CoreSettings {
        var settings = scenario.settings
        if !isAlone { settings.node = node.name }
        return settings
    }

    /// Lets the next round be one of the present node.
    func actOnStore() { (store.life, store.node) = (life, settings.node) }

    func beginLife() {
        lastLife += 1
        node.life = lastLife
        store.begin(life: life, node: node.name)
    }

    /// Ends a life; the other nodes find its runs lost.
    func lifeEnds(_ life: Int64, wasStopped: Bool = false) {
        guard store.living.contains(life) else { return }
        // It goes on if its node came back before.
        if let node = nodes.first(where: { $0.life == life }), node.core != nil, node.pausedUntil <= clock.elapsed {
            return
        }
        store.end(life: life, wasStopped: wasStopped)
        servesSince = clock.elapsed
        othersPoll()
    }

    /// Handles a round of a node that the others took to be gone: it is not stored.
    func lifeIsLost(_ inputs: [CoreInput]) {
        figures.lostLives += 1
        refuse(inputs)
        notCommitted(inputs)
    }

    /// Lets the other nodes ask for news soon.
    func othersPoll() {
        guard !isAlone else { return }
        let present = node
        defer { node = present }
        for other in nodes where other !== present && other.core != nil && !other.isPollDue {
            node = other
            other.isPollDue = true
            schedule(.poll, in: chances.spread(0.000_1, 0.5))
        }
    }

    func poll() {
        node.isPollDue = false
        guard core != nil, engine.phase == .serving else { return }
        perform([])
    }

    /// Stops a node for a while, mostly longer than its lease.
    func pauses() {
        guard !isSettling else { return }
        let seconds = chances.pick([3, 20, 60])
        node.pausedUntil = clock.elapsed + Int64(seconds) * SimulatedClock.second
        servesSince = node.pausedUntil
        figures.pauses += 1
        schedule(.lifeEnds(life), in: Self.lease)
        schedule(.pauses, in: chances.pause(mean: 4000) + Double(seconds))
    }

    /// Tells a node the fate of a commit whose answer was lost.
    func fateIsTold() {
        guard let inputs = engine.doubtful, core != nil else { return }
        engine.doubtful = nil
        guard exchange(&engine.isStored, with: false) else {
            refuse(inputs)
            core?.undone()
            engine.held = inputs.filter { !$0.isRequest } + engine.held
            return probe()
        }
        servesSince = clock.elapsed
        engine.phase = .serving
        isLate = true
        wasCommitted(inputs)
        isLate = false
        for input in exchange(&engine.held, with: []) { feed(input) }
        armTick()
    }
}
