import InMemoryStore
import JobCore
import JobModel

/// The store at work: groups of writes, reads that see the present, and what goes wrong with both.
extension World {
    func write(_ id: WriteID, _ write: StoreWrite) {
        store.waiting.append((id, write))
        if store.group.isEmpty { beginGroup() }
    }

    private func beginGroup() {
        let count = min(store.waiting.count, SimulatedStore.largestGroup)
        guard count > 0 else { return }
        store.group = Array(store.waiting.prefix(count))
        store.waiting.removeFirst(count)
        let seconds =
            switch store.health {
            case .slow: random.spread(0.05, 20)
            case .stutters: random.spread(0.02, 0.5)
            default: random.chance(0.002) ? random.spread(0.1, 3) : random.spread(0.0002, 0.01)
            }
        schedule(.commit, in: seconds)
    }

    /// The fsync of the group returned.
    func commit() {
        let group = store.group
        store.group = []
        var answers: [(WriteID, Result<StoreWritten, StoreError>)] = []
        answers.reserveCapacity(group.count)
        let fails =
            store.health == .writesFail
            || (store.health == .someWritesFail || store.health == .stutters) && random.chance(0.3)
        for (id, write) in group {
            if fails || store.health == .full && !write.frees {
                figures.storageFaults += 1
                store.lastUnwell = clock.elapsed
                trace.add(.commitFailed, at: clock.elapsed, id)
                answers.append((id, .failure(StoreError(.write, "The disk is full."))))
            } else {
                answers.append((id, .success(keep(id, write))))
            }
            if failure != nil { return }
        }
        store.unanswered += answers.count
        // In the order of the groups.
        store.answersAt = max(store.answersAt, after(random.spread(0.00001, 0.001)))
        queue.add((life, .written(answers)), at: store.answersAt)
        beginGroup()
    }

    /// Makes a write durable.
    @discardableResult
    private func keep(_ id: WriteID, _ write: StoreWrite) -> StoreWritten {
        trace.add(.commit, at: clock.elapsed, id)
        let written = store.tables.write(write)
        oracle.durable(id, write, written, self)
        if case .removed(let removed) = written { mayCrash(after: removed) }
        return written
    }

    func written(_ answers: [(WriteID, Result<StoreWritten, StoreError>)]) {
        let life = life
        for (id, result) in answers {
            store.unanswered -= 1
            feed(.written(id, result))
            guard self.life == life, failure == nil else { return }
            oracle.answered(id, self)
        }
    }

    func read(_ id: ReadID, _ read: StoreRead) {
        store.reads += 1
        let isSlow = store.health == .slow || store.health == .readsAreSlow
        schedule(.look(id, read), in: isSlow ? random.spread(0.01, 5) : random.spread(0.00002, 0.003))
    }

    func look(_ id: ReadID, _ read: StoreRead) {
        let rows: Result<StoreRows, StoreError>
        if store.health == .readsFail, random.chance(0.7) {
            figures.storageFaults += 1
            store.lastUnwell = clock.elapsed
            rows = .failure(StoreError(.read, "The disk cannot be read."))
        } else {
            rows = .success(store.tables.read(read))
        }
        // What was read is old when it arrives.
        schedule(.rows(id, rows), in: random.chance(0.02) ? random.spread(0.01, 2) : random.spread(0.00001, 0.001))
    }

    func deliver(_ id: ReadID, _ rows: Result<StoreRows, StoreError>) {
        store.reads -= 1
        feed(.rows(id, rows))
    }

    // MARK: - What goes wrong

    func storeFault() {
        guard let mean = scenario.secondsBetweenFaults, !isSettling else { return }
        let health = random.pick([SimulatedStore.Health.slow, .writesFail, .someWritesFail, .full, .readsFail, .slow])
        breakStore(health, for: random.spread(0.5, 300))
        scheduleAnyway(.storeFault, in: 300 + random.pause(mean: mean))
    }

    /// Has the store be unwell for so many seconds.
    func breakStore(_ health: SimulatedStore.Health, for seconds: Double) {
        store.health = health
        store.lastUnwell = clock.elapsed
        trace.add(.storeFault, at: clock.elapsed)
        scheduleAnyway(.storeHeals, in: seconds)
    }

    func storeHeals() {
        guard store.health != .well else { return }
        store.health = .well
        store.lastUnwell = clock.elapsed
        trace.add(.storeHealed, at: clock.elapsed)
    }

    /// Of the writes on their way as many as chance wants become durable, the earlier ones first.
    func keepSomeWrites() {
        let pending = store.group + store.waiting
        var kept = random.chance(0.4) ? 0 : random.within(0...pending.count)
        if store.health == .writesFail { kept = 0 }
        for (id, write) in pending.prefix(kept) where store.health != .full || write.frees {
            keep(id, write)
            if failure != nil { return }
        }
    }
}
