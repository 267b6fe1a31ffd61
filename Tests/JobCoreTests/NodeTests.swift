import InMemoryStore
import JobCore
import JobModel
import Testing

/// Nodes that share a store.
@Suite struct NodeTests {
    private static let life: Int64 = 9

    /// Joins the node of a driver, and returns the core of the new node.
    private func join(_ driver: CoreDriver, as node: String? = nil) throws -> Core {
        var settings = CoreSettings()
        settings.node = node
        let core = Core(settings: settings, life: Self.life, at: driver.now)
        driver.store.begin(life: Self.life, node: node)
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
        let (life, node) = (driver.store.life, driver.store.node)
        (driver.store.life, driver.store.node) = (Self.life, core.settings.node)
        defer { (driver.store.life, driver.store.node) = (life, node) }
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

    /// A node "a" with a download that has a part, whose source ends with an error that is retried; and a node "b".
    private func nodesWithPart() throws -> (CoreDriver, JobID, other: Core) {
        var settings = CoreSettings()
        settings.node = "a"
        let driver = try CoreDriver(settings)
        driver.store.begin(life: 1, node: "a")
        driver.store.node = "a"
        let other = try join(driver, as: "b")
        let source: JSON = ["type": "download", "url": "http://h/", "path": "x"]
        let job = try driver.submit(["source": source, "retry": ["max": 1, "initial": 10]])
        driver.send(.run(try driver.run(of: job), .checkpoint(Array("{}".utf8), { _ in })))
        try driver.fail(job, JobError(.network, "It broke.", retryable: true))
        #expect(try driver.row(job).state == .scheduled)
        return (driver, job, other)
    }

    private func started(_ effects: [CoreEffect]) -> [JobID] {
        effects.compactMap { if case .start(let order) = $0 { order.job.id } else { nil } }
    }

    /// Releases the job at node "b"; returns what starts there.
    private func release(_ job: JobID, at other: Core, _ driver: CoreDriver) throws -> [JobID] {
        try started(
            round(of: other, driver) { (transaction) throws(StoreError) in
                try other.handle(
                    .request(7, .change(job, .release), Caller(uid: 1, isAdmin: false)), at: driver.now,
                    in: transaction)
            })
    }

    @Test func download_resumesAtTheNodeOfItsPart_untilThatIsGone() throws {
        let (driver, job, other) = try nodesWithPart()
        #expect(try release(job, at: other, driver) == [])
        #expect(try driver.row(job).isReady && driver.row(job).node == "a")
        driver.store.end(life: 1, wasStopped: false)
        #expect(try started(hearNews(other, driver)) == [job])
        #expect(try driver.row(job).node == nil)
    }

    @Test func lostDownload_isBoundAnew_whereItBeginsAgain() throws {
        let (driver, job, other) = try nodesWithPart()
        driver.advance(by: 100)
        #expect(try driver.row(job).run?.life == 1)
        driver.store.end(life: 1, wasStopped: false)
        #expect(try started(hearNews(other, driver)) == [job])
        let run = try #require(try driver.row(job).run)
        // It is as long as the last one.
        try round(of: other, driver) { (transaction) throws(StoreError) in
            try other.handle(.run(run, .checkpoint(Array("[]".utf8), { _ in })), at: driver.now, in: transaction)
        }
        #expect(try driver.row(job).node == "b")
    }

    @Test func download_isFree_onceItsPartIsRemoved() throws {
        let (driver, job, other) = try nodesWithPart()
        driver.ask(.change(job, .cancel))
        #expect(try driver.row(job).node == nil)
        withExtendedLifetime(other) {}
    }

    @Test func removalOfFiles_isRepeated_onceItsNodeIsGone() throws {
        let (driver, job, other) = try nodesWithPart()
        func removals(_ effects: [CoreEffect]) -> [JobID] {
            effects.compactMap { if case .removeFiles(let work) = $0 { work.job } else { nil } }
        }
        driver.ask(.change(job, .cancel))
        #expect(removals(driver.effects) == [job])
        #expect(try removals(hearNews(other, driver)) == [])
        driver.store.end(life: 1, wasStopped: false)
        #expect(try removals(hearNews(other, driver)) == [job])
    }

    @Test func requiredNode_stays_whenItIsGone() throws {
        let (driver, job, other) = try nodesWithPart()
        _ = driver.store.round { transaction throws(StoreError) in
            guard var row = try transaction.job(job) else { return }
            row.followsPart = false
            try transaction.update(row)
        }
        driver.store.end(life: 1, wasStopped: false)
        try hearNews(other, driver)
        #expect(try release(job, at: other, driver) == [])
        #expect(try driver.row(job).node == "a")
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

    @Test func jobsEnd_isToldOnce_whereItsNewsComesInParts() throws {
        let driver = try CoreDriver()
        let other = try joinWatching(driver)
        driver.store.hearAtMost(1)
        let job = try driver.submit(["source": ["type": "url", "url": "http://h/"]])
        try driver.succeed(job)
        let states = try (0..<4).flatMap { _ in try told(hearNews(other, driver)).map(\.state) }
        #expect(states == [.succeeded])
    }

    @Test func schedules_ofAnUnknownZone_areLeftToNodesThatKnowIt() throws {
        let driver = try CoreDriver()
        let other = try join(driver)
        let schedule = Schedule(
            key: ScheduleKey(owner: 1, name: "s"),
            timing: .calendar("0 8 * * *", try CalendarExpression("0 8 * * *"), zone: "Europe/Berlin"),
            setAt: driver.now.wall, specSize: 2)
        driver.ask(.setSchedule(NewSchedule(schedule, spec: Array("{}".utf8))))
        let due = driver.core.nextTick.wall
        // Each scan asks for the rules again, as their file may be there now.
        for _ in 0..<2 {
            let effects = try round(of: other, driver) { (transaction) throws(StoreError) in
                try other.handle(.zones(["UTC": .utc]), at: driver.now, in: transaction)
                try other.handle(.tick, at: driver.now, in: transaction)
            }
            #expect(effects.contains { if case .readZones(["Europe/Berlin"]) = $0 { true } else { false } })
        }
        #expect(due != nil && driver.store.rows.allSchedules.map(\.next) == [due])
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
