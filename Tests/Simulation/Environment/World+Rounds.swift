import InMemoryStore
import JobModel
import JobCore

/// Rounds, their three possible ends, and crashes at every point.
extension World {
    /// Hands the engine an input.
    func feed(_ input: CoreInput) {
        guard core != nil, failure == nil else { return }
        oracle.forget(input)
        if engine.phase == .failing {
            if case .request(let id, let request, _) = input {
                return answered(id, refusal(of: request))
            }
            return engine.held.append(input)
        }
        engine.inbox.append(input)
        guard !engine.isRoundDue else { return }
        engine.isRoundDue = true
        schedule(.round, in: random.spread(0.000_1, 0.02))
    }

    private func refusal(of request: CoreRequest) -> CoreAnswer {
        .failed(ProtocolError(.storage, "Nothing can be stored."))
    }

    func round() {
        engine.isRoundDue = false
        guard core != nil, engine.phase == .serving, !engine.inbox.isEmpty else { return }
        let inputs = Array(engine.inbox.prefix(random.chance(0.1) ? 1 : 64))
        engine.inbox.removeFirst(inputs.count)
        if !engine.inbox.isEmpty {
            engine.isRoundDue = true
            schedule(.round, in: 0.001)
        }
        perform(inputs)
    }

    func perform(_ inputs: [CoreInput]) {
        guard let core else { return }
        guard isLiving else { return lifeIsLost(inputs) }
        Watchdog.inputBegins()
        let fault = drawnFault()
        figures.rounds += 1
        startedAt = min(startedAt, clock.wall)
        oracle.roundBegins(self)
        for input in inputs { oracle.hears(input, self) }
        actOnStore()
        let end = store.round { (transaction) throws(StoreError) in
            try core.open(at: clock.moment(random: 0.5), in: transaction)
            try transaction.load(inputs.flatMap { Core.keys(of: $0) })
            for input in inputs {
                trace.add(kind(of: input), at: clock.elapsed, number(of: input))
                try core.handle(input, at: clock.moment(random: random.unit()), in: transaction)
            }
            try core.close(at: clock.moment(random: random.unit()), in: transaction)
        }
        switch end {
        case .committed:
            // A crash before the commit equals a round never reported; a crash after it happens here.
            trace.add(.commit, at: clock.elapsed, Int64(inputs.count))
            oracle.committed(inputs, self)
            if store.isChanged { othersPoll() }
            if crashes() { return }
            wasCommitted(inputs)
        case .unknown where !isAlone:
            figures.failedCommits += 1
            trace.add(.undone, at: clock.elapsed, Int64(inputs.count))
            engine.phase = .failing
            engine.doubtful = inputs
            if chances.chance(0.5) {
                // It was stored, and others see it, while this node does not know that.
                store.bringBack()
                engine.isStored = true
                oracle.committed(inputs, self)
                oracle.putOff()
                othersPoll()
            }
            schedule(.fateIsTold(life), in: chances.spread(0.01, 5))
        case .undone, .unknown:
            figures.failedCommits += 1
            if case .unknown = end { engine.unsettled = inputs } else { refuse(inputs) }
            trace.add(.undone, at: clock.elapsed, Int64(inputs.count))
            notCommitted(inputs)
            // A failing disk may also kill the machine.
            if fault, random.chance(0.3) { crash() }
        }
        guard failure == nil else { return }
        armTick()
    }

    func wasCommitted(_ inputs: [CoreInput]) {
        guard let core else { return }
        for case .run(let run, let event) in inputs where engine.runs[run]?.state == .ended {
            switch event {
            case .ended, .timer, .job: engine.runs[run] = nil
            default: break
            }
        }
        carryOut(core.committed())
    }

    func refuse(_ inputs: [CoreInput]) {
        for case .request(let id, let request, _) in inputs { answered(id, refusal(of: request)) }
    }

    func notCommitted(_ inputs: [CoreInput]) {
        core?.undone()
        engine.held = inputs.filter { !$0.isRequest } + engine.held
        refuse(engine.inbox)
        engine.held += engine.inbox.filter { !$0.isRequest }
        engine.inbox = []
        guard engine.phase == .serving else { return }
        engine.phase = .failing
        schedule(.probe, in: 1)
    }

    /// Checks whether the store works again.
    func probe() {
        guard engine.phase == .failing, core != nil, engine.doubtful == nil else { return }
        trace.add(.probe, at: clock.elapsed)
        guard reset(.resumed) else { return schedule(.probe, in: 1) }
        engine.phase = .serving
        servesSince = clock.elapsed
        let held = engine.held
        engine.held = []
        for input in held { feed(input) }
    }

    /// Rebuilds the core's memory in a round of its own; returns false on failure.
    private func reset(_ start: Core.Start) -> Bool {
        guard let core else { return false }
        let now = clock.moment(random: random.unit())
        trace.add(.reset, at: clock.elapsed)
        let isNewLife = !isLiving
        if isNewLife {
            // Its sources were stopped, and others begin them again.
            engine.runs = [:]
            beginLife()
            core.life = life
        }
        actOnStore()
        let runs = engine.runs.values.map(\.live).sorted { $0.run < $1.run }
        oracle.roundBegins(self)
        let end = store.round { (transaction) throws(StoreError) in
            try core.reset(from: transaction, runs: runs, start: start, at: now)
            if start == .resumed { try core.open(at: now, in: transaction, isReset: true) }
            if isNewLife || engine.mustTellAgain { try core.tellAgain(at: now, in: transaction) }
            try core.close(at: now, in: transaction)
        }
        guard case .committed = end else {
            core.undone()
            engine.mustTellAgain = engine.mustTellAgain || isNewLife
            if case .unknown = end { engine.unsettled = engine.unsettled ?? [] }
            return false
        }
        engine.mustTellAgain = false
        refuse(engine.unsettled ?? [])
        engine.unsettled = nil
        oracle.committed([], self)
        if store.isChanged { othersPoll() }
        carryOut(core.committed())
        armTick()
        return true
    }

    // MARK: - Starts and crashes

    func restart(_ start: Core.Start) {
        guard core == nil else { return }
        store.heal()
        lifeEnds(life)
        let others = nodes.filter { $0 !== node && store.living.contains($0.life) }
        beginLife()
        node.start += 1
        node.isShort = false
        servesSince = clock.elapsed
        startedAt = others.map(\.startedAt).min() ?? clock.wall
        engine = SimulatedEngine()
        core = Core(
            settings: settings, life: life, at: clock.moment(random: 0.5), upSince: startedAt)
        // Other nodes have counted the crashes since.
        let start = others.isEmpty ? start : .crashed
        if !reset(start) {
            core = nil
            schedule(.restart(start), in: 1)
        }
    }

    /// Returns whether the daemon dies here.
    private func crashes() -> Bool {
        guard let left = node.effectsUntilCrash else { return false }
        node.effectsUntilCrash = left - 1
        guard left <= 1 else { return false }
        drawCrash()
        if random.chance(0.15) { cleanStop() } else { crash() }
        return true
    }

    func drawCrash() {
        node.effectsUntilCrash = scenario.effectsBetweenCrashes.map { max(1, Int(random.pause(mean: $0))) }
        // Crashes often come in quick succession.
        if random.chance(0.3), node.effectsUntilCrash != nil { node.effectsUntilCrash = random.within(1...60) }
    }

    private func crash() {
        figures.crashes += 1
        trace.add(.crash, at: clock.elapsed)
        die(.crashed)
    }

    /// Stops the daemon cleanly: its runs are told to stop, and their ends are lost.
    private func cleanStop() {
        figures.cleanStops += 1
        trace.add(.cleanStop, at: clock.elapsed)
        die(.clean)
    }

    private func die(_ start: Core.Start) {
        if start == .crashed, isAlone, store.isUnsettled, damages.chance(0.5) {
            // The round of a failed fsync turns out to be stored.
            trace.add(.broughtBack, at: clock.elapsed)
            expect(engine.unsettled != nil, 1, "A round that was undone is there after a kill.")
            oracle.roundBegins(self)
            store.bringBack()
            oracle.committed(engine.unsettled ?? [], self)
        }
        core = nil
        engine = SimulatedEngine()
        for (index, user) in users.enumerated() where node(of: index) === node { user.forget() }
        oracle.daemonDied(node)
        servesSince = clock.elapsed
        if start == .clean {
            lifeEnds(life, wasStopped: true)
        } else if !isAlone {
            schedule(.lifeEnds(life), in: Self.lease)
        }
        schedule(.restart(start), in: random.spread(0.5, 60))
    }

    // MARK: - Faults

    func drawFault() {
        roundsUntilFault = scenario.roundsBetweenFaults.map { max(1, Int(random.pause(mean: $0))) }
    }

    private func drawnFault() -> Bool {
        guard let left = roundsUntilFault else { return false }
        roundsUntilFault = left - 1
        guard left <= 1 else { return false }
        drawFault()
        figures.storageFaults += 1
        trace.add(.fault, at: clock.elapsed)
        switch random.choose([40, 30, 30]) {
        case 0: store.failNextCommit()
        case 1: store.loseNextCommit()
        default: store.failRead(after: random.within(1...20))
        }
        return true
    }

    // MARK: - Ticks

    func armTick() {
        guard let core, engine.phase == .serving else { return }
        let time: Int64
        if core.wantsTick {
            time = clock.elapsed + 1_000
        } else if let next = clock.elapsed(of: core.nextTick) {
            time = max(next, clock.elapsed) + 1_000
        } else {
            return
        }
        if let armed = engine.tickAt, armed <= time, armed >= clock.elapsed { return }
        engine.tickAt = time
        events.add((node.number, .tick), at: time)
    }

    func tickCame() {
        guard core != nil, engine.tickAt.map({ $0 <= clock.elapsed }) == true else { return }
        engine.tickAt = nil
        feed(.tick)
    }

    // MARK: - Effects

    func filesRemoved(_ work: WorkID) {
        guard core != nil else { return }
        oracle.cleaning[work] = nil
        feed(.cleaned(work))
    }

    private func carryOut(_ effects: [CoreEffect]) {
        let life = life
        for effect in effects {
            guard self.life == life, core != nil, failure == nil else { return }
            figures.effects += 1
            // The fate of its round may have been told after others took the node to be gone.
            if case .start = effect, !isLiving { continue }
            carryOut(effect)
            if crashes() { return }
        }
        oracle.look(self)
    }

    private func carryOut(_ effect: CoreEffect) {
        switch effect {
        case .answer(let id, let answer):
            trace.add(.answer, at: clock.elapsed, id)
            answered(id, answer)
        case .start(let order):
            trace.add(.start, at: clock.elapsed, order.job.id, order.run.number)
            start(order)
        case .proceed(let run, let host, let connections):
            trace.add(.proceed, at: clock.elapsed, run.number, Int64(connections))
            proceed(run, host, connections)
        case .yield(let run):
            trace.add(.yield, at: clock.elapsed, run.number)
            engine.runs[run] = nil
        case .makeChildren(let run, let from):
            trace.add(.makeChildren, at: clock.elapsed, run.number, Int64(from))
            schedule(.makeChildren(run, from: from), in: random.spread(0.000_1, 0.01))
        case .cancel(let run, _):
            trace.add(.cancel, at: clock.elapsed, run.number)
            cancel(run)
        case .setRate, .tellHook, .gone, .endedWithoutRun: break
        case .missed(let ids): for id in ids { feed(.unsubscribe(id)) }
        case .notify(let subscribers, let change):
            trace.add(.notify, at: clock.elapsed, change.row.id, change.row.version)
            oracle.notified(subscribers, change, self)
        case .prepare(let preparation):
            trace.add(.prepare, at: clock.elapsed)
            schedule(.prepare(preparation, start: node.start), in: random.spread(0.000_1, 2))
        case .removeFiles(let work):
            trace.add(.removeFiles, at: clock.elapsed, work.id)
            oracle.removesFiles(work, self)
            schedule(.filesRemoved(work.id, start: node.start), in: random.spread(0.000_1, 20))
        case .measure(let job, let output):
            trace.add(.measure, at: clock.elapsed, job)
            // A program may have written nothing.
            let size = random.chance(0.8) ? Int64(random.below(100_000)) : 0
            feed(.measured(job, BlobReference(life: output.life, number: output.number, size: size)))
        case .unlink(let blobs):
            trace.add(.unlink, at: clock.elapsed, Int64(blobs.count))
            oracle.unlinks(blobs, self)
        case .queues: break
        case .list(let job, _): trace.add(.list, at: clock.elapsed, job)
        case .readZones(let names):
            trace.add(.readZones, at: clock.elapsed)
            schedule(.zonesRead(names, start: node.start), in: random.spread(0.000_1, 1))
        case .log(let entry):
            trace.add(.log, at: clock.elapsed)
            if entry.level == .defect { fail(0, entry.message) }
        }
    }

    // MARK: - Names

    private func kind(of input: CoreInput) -> Trace.Kind {
        switch input {
        case .request: .request
        case .abandon: .abandon
        case .unsubscribe: .unsubscribe
        case .run: .run
        case .cleaned: .cleaned
        case .measured: .measured
        case .prepared: .prepared
        case .tick: .tick
        case .room: .room
        case .zones: .zones
        case .configure: .configure
        case .stop: .stop
        }
    }

    private func number(of input: CoreInput) -> Int64 {
        switch input {
        case .request(let id, _, _), .abandon(let id), .unsubscribe(let id), .cleaned(let id): id
        case .run(let run, _): run.number
        default: 0
        }
    }
}
