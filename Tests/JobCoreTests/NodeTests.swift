import InMemoryStore
import JobCore
import JobModel
import Testing

/// Nodes that share a store.
@Suite struct NodeTests {
    private static let life: Int64 = 9

    /// Joins the node of a driver, and returns the core of the new node.
    private func join(_ driver: CoreDriver) throws -> Core {
        let core = Core(settings: CoreSettings(), life: Self.life, at: driver.now)
        driver.store.begin(life: Self.life)
        try round(of: core, driver) { (transaction) throws(StoreError) in
            try core.reset(from: transaction, runs: [], start: .crashed, at: driver.now)
        }
        return core
    }

    /// Runs a round, and returns its effects.
    @discardableResult
    private func round(
        of core: Core, _ driver: CoreDriver, _ body: (any JobTransaction) throws(StoreError) -> Void
    ) throws -> [CoreEffect] {
        let life = driver.store.life
        driver.store.life = Self.life
        defer { driver.store.life = life }
        let end = driver.store.round { (transaction) throws(StoreError) in
            try body(transaction)
            try core.close(at: driver.now, in: transaction)
        }
        guard case .committed = end else { throw CoreDriver.Failure(message: "The round was not committed.") }
        return core.committed()
    }

    @discardableResult
    private func hearNews(_ core: Core, _ driver: CoreDriver) throws -> [CoreEffect] {
        try round(of: core, driver) { (transaction) throws(StoreError) in
            try core.open(at: driver.now, in: transaction)
        }
    }

    @Test func timesOfANode_areLookedAt_onceItIsGone() throws {
        let driver = try CoreDriver()
        let other = try join(driver)
        _ = try driver.submit(["source": ["type": "value", "value": 1], "delay": 100])
        try hearNews(other, driver)
        #expect(other.nextTick.steady == nil)
        driver.store.end(life: 1, wasStopped: false)
        try hearNews(other, driver)
        #expect(other.nextTick.steady == driver.now.steady + 100_000)
    }

    @Test func timesOfSchedules_areLookedAt_byAllNodes() throws {
        let driver = try CoreDriver()
        let other = try join(driver)
        let schedule = Schedule(
            key: ScheduleKey(owner: 1, name: "s"), timing: .every(60_000), setAt: driver.now.wall, specSize: 2)
        driver.ask(.setSchedule(NewSchedule(schedule, spec: Array("{}".utf8))))
        driver.send(.room(shortage: "The disk is full."))
        try hearNews(other, driver)
        #expect(other.nextTick.wall == driver.now.wall.adding(seconds: 60))
    }

    @Test func removal_isAnswered_onceAnotherNodeHasEndedIt() throws {
        let driver = try CoreDriver()
        let child: JSON = ["source": ["type": "value", "value": 1]]
        let job = try driver.submit(["source": ["type": "list", "jobs": [child]]])
        let other = try join(driver)
        func answers(_ effects: [CoreEffect]) -> [RequestID] {
            effects.compactMap { if case .answer(let id, _) = $0 { id } else { nil } }
        }
        let removal = CoreInput.request(7, .change(job, .remove), Caller(uid: 1, isAdmin: false))
        let effects = try round(of: other, driver) { (transaction) throws(StoreError) in
            try other.handle(removal, at: driver.now, in: transaction)
        }
        #expect(answers(effects) == [])
        // What the new life finds in the rows, it does.
        try driver.restart(.clean)
        #expect(!driver.exists(job))
        #expect(try answers(hearNews(other, driver)) == [7])
    }

    @Test func removal_isAnswered_whereItsEndWasMissed() throws {
        let driver = try CoreDriver()
        let child: JSON = ["source": ["type": "value", "value": 1]]
        let job = try driver.submit(["source": ["type": "list", "jobs": [child]]])
        let other = try join(driver)
        try round(of: other, driver) { (transaction) throws(StoreError) in
            try other.handle(
                .request(7, .change(job, .remove), Caller(uid: 1, isAdmin: false)), at: driver.now, in: transaction)
        }
        try driver.restart(.clean)
        // Another life does not hear of what came before it.
        driver.store.begin(life: Self.life)
        let effects = try round(of: other, driver) { (transaction) throws(StoreError) in
            try other.tellAgain(at: driver.now, in: transaction)
        }
        #expect(effects.contains { if case .answer(7, .done) = $0 { true } else { false } })
    }

    /// A node whose clients watch all jobs.
    private func joinWatching(_ driver: CoreDriver) throws -> Core {
        let other = try join(driver)
        try round(of: other, driver) { (transaction) throws(StoreError) in
            try other.handle(
                .request(1, .watch(WatchScope(.all, includesChildren: true), 5), Caller(uid: 1, isAdmin: false)),
                at: driver.now, in: transaction)
        }
        return other
    }

    private func told(_ effects: [CoreEffect]) -> [JobRow] {
        effects.compactMap { if case .notify(_, let change) = $0 { change.row } else { nil } }
    }

    @Test func listsEnd_isTold_afterThoseOfItsChildren() throws {
        let driver = try CoreDriver()
        let other = try joinWatching(driver)
        let child: JSON = ["source": ["type": "value", "value": 1]]
        let list = try driver.submit(["source": ["type": "list", "jobs": [child, child]]])
        let ended = try told(hearNews(other, driver)).filter(\.state.isTerminal).map(\.id)
        #expect(ended.count == 3 && ended.last == list)
    }

    @Test func nothing_isTold_ofAJobThatAnotherAwaits_afterItsEnd() throws {
        let driver = try CoreDriver()
        let other = try joinWatching(driver)
        let job = try driver.submit(["source": ["type": "value", "value": 1]])
        try hearNews(other, driver)
        _ = try driver.submit(["source": ["type": "job", "job": JSON(Int(job))], "delay": 100])
        #expect(try driver.row(job).hasDependents)
        #expect(try told(hearNews(other, driver)).map(\.id) == [job + 1])
    }

    @Test func watchesOfAll_beginAgain_whereChangesWereMissed() throws {
        let driver = try CoreDriver()
        let other = try joinWatching(driver)
        let effects = try round(of: other, driver) { (transaction) throws(StoreError) in
            try other.tellAgain(at: driver.now, in: transaction)
        }
        #expect(effects.contains { if case .missed([5]) = $0 { true } else { false } })
    }

    @Test func cancel_isAnswered_beforeItsFinallyLinkEnds() throws {
        let driver = try CoreDriver()
        let step: JSON = ["source": ["type": "url", "url": "http://h/"]]
        let job = try driver.submit([
            "source": ["type": "url", "url": "http://h/"], "then": [["finally": step]],
        ])
        let other = try join(driver)
        let cancel = CoreInput.request(7, .change(job, .cancel), Caller(uid: 1, isAdmin: false))
        let asked = try round(of: other, driver) { (transaction) throws(StoreError) in
            try other.handle(cancel, at: driver.now, in: transaction)
        }
        #expect(!asked.contains { if case .answer(7, _) = $0 { true } else { false } })
        try driver.fail(job, JobRow.Stop.cancelled.error)
        #expect(try driver.row(job).isAtFinally && driver.row(job).run != nil)
        let effects = try hearNews(other, driver)
        #expect(effects.contains { if case .answer(7, _) = $0 { true } else { false } })
    }
}
