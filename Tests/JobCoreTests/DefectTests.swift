import InMemoryStore
import JobModel
import JobCore
import Testing

/// Regression tests for defects that code review found in the core.
@Suite struct DefectTests {
    private func url(_ host: String = "h") -> JSON {
        ["source": ["type": "url", "url": .string("http://\(host)/")], "retry": ["max": 0]]
    }

    private func list(_ children: [JSON]) -> JSON {
        ["source": ["type": "list", "mode": "settled", "jobs": .array(children)]]
    }

    @Test func listEnds_whenItsChildrenHaveOneKey() throws {
        let driver = try CoreDriver()
        let child: JSON = ["source": ["type": "url", "url": "http://h/"], "key": "a"]
        for _ in 0..<2 {
            let job = try driver.submit(list([child, child]))
            #expect(driver.live.count == 2)
            for child in driver.live.values.map(\.job) { try driver.succeed(child) }
            #expect(try driver.row(job).state == .succeeded)
        }
    }

    @Test func damagedRow_thatIsDue_isPassedOver() throws {
        let driver = try CoreDriver()
        let source: JSON = ["type": "value", "value": 1]
        for spec: JSON in [
            ["source": source, "delay": 5], ["source": source, "notBefore": "2023-11-14T22:13:25Z"],
        ] {
            driver.store.setDamaged(try driver.submit(spec), true)
        }
        driver.advance(by: 10)
        #expect(!driver.core.wantsTick(at: driver.now))
    }

    @Test func cancel_isAnswered_byTheNodeThatTakesTheRunOver() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(url())
        let (store, now) = (driver.store, driver.now)
        store.begin(life: 2)
        store.life = 2
        let other = Core(settings: driver.core.settings, life: 2, at: now)
        func answers(_ body: (any JobTransaction) throws(StoreError) -> Void) -> [RequestID] {
            let end = store.round { (transaction) throws(StoreError) in
                try body(transaction)
                try other.close(at: now, in: transaction)
            }
            guard case .committed = end else { return [] }
            return other.committed().compactMap { if case .answer(let id, .changed) = $0 { id } else { nil } }
        }
        let beginning = answers { (transaction) throws(StoreError) in
            try other.reset(from: transaction, runs: [], start: .clean, at: now)
        }
        let asking = answers { (transaction) throws(StoreError) in
            let caller = Caller(uid: 1, isAdmin: false)
            try other.handle(.request(1, .change(job, .cancel), caller), at: now, in: transaction)
        }
        #expect(beginning.isEmpty && asking.isEmpty)
        store.end(life: 1, wasStopped: false)
        let takingOver = answers { (transaction) throws(StoreError) in try other.open(at: now, in: transaction) }
        #expect(takingOver == [1])
        #expect(store.job(job)?.state == .cancelled)
    }

    @Test func children_areBoundToTheNodeOfTheirParent() throws {
        let driver = try CoreDriver()
        let own: JSON = ["source": ["type": "url", "url": "http://h/"], "requires": ["node": "b"]]
        var spec = list([url(), own, list([url()])]).object ?? [:]
        spec["requires"] = ["node": "a"]
        let job = try driver.submit(.object(spec))
        #expect(try driver.row(job).node == "a")
        let nodes = try driver.live.values.map { try driver.row($0.job).node }
        #expect(nodes.sorted { ($0 ?? "") < ($1 ?? "") } == ["a", "a", "b"])
    }

    @Test func removalWhileStoringFails_leavesTheCountsRight() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(["source": ["type": "value", "value": 1]])
        _ = driver.store.round { (transaction) throws(StoreError) in
            try driver.core.reset(from: transaction, runs: [], start: .resumed, at: driver.now)
            try driver.core.handle(
                .request(driver.id(), .change(job, .remove), Caller(uid: 1, isAdmin: false)), at: driver.now,
                in: transaction)
            try driver.core.closeWithoutStarts(in: transaction)
        }
        _ = driver.core.committed()
        try driver.reset(.resumed)
        #expect(driver.core.status.counts.values.allSatisfy { $0.jobs == 0 })
    }

    @Test func watchWithChildren_hearsTheirEnds_afterTheirListWasCancelled() throws {
        let driver = try CoreDriver()
        let watch = driver.id()
        let job = try driver.submit(list([url(), url()]))
        driver.ask(.watch(WatchScope(.jobs([job]), includesChildren: true), watch))
        let children = driver.live.values.map(\.job)
        driver.ask(.change(job, .cancel))
        for child in children { try driver.fail(child, JobError(.cancelled, "It was cancelled.")) }
        let ends = driver.changes.filter { $0.subscribers == [watch] && $0.row.state.isTerminal }.map(\.row.id)
        #expect(ends.sorted() == ([job] + children).sorted())
    }

    @Test func watch_hearsAJob_thatWasRetriedInTheSameRound() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(["source": ["type": "timer", "seconds": 60], "delay": 60])
        let watch = driver.id()
        let caller = Caller(uid: 1, isAdmin: false)
        driver.round([
            .request(driver.id(), .change(job, .cancel), caller),
            .request(driver.id(), .change(job, .retry(from: .start)), caller),
            .request(driver.id(), .watch(WatchScope(.jobs([job])), watch), caller),
        ])
        driver.ask(.change(job, .cancel))
        #expect(driver.changes.contains { $0.subscribers == [watch] && $0.row.state == .cancelled })
    }

    @Test func expiredJobs_allGo_howeverManyTheyAre() throws {
        let driver = try CoreDriver()
        for _ in 0..<300 { _ = try driver.submit(["source": ["type": "value", "value": 1]]) }
        driver.advance(by: driver.core.settings.retentionAge + 1)
        #expect(driver.core.status.counts.values.reduce(0) { $0 + $1.jobs } == 0)
    }

    @Test func bodies_countBeforeTheyAreKept() throws {
        var settings = CoreSettings()
        settings.storedPerUser = 100_000
        let driver = try CoreDriver(settings)
        let job = try driver.submit(url())
        let body = BlobReference(life: 1, number: 1, size: 200_000)
        driver.send(.run(try driver.run(of: job), .ended(RunEnd(.success(.inline(Array("{}".utf8))), body: body))))
        #expect(try driver.row(job).carried?.error?.kind == .tooLarge)
        #expect(driver.effects.contains { if case .unlink([body]) = $0 { true } else { false } })
    }

    @Test func filesOfLateEvents_go() throws {
        let driver = try CoreDriver()
        driver.expandsSteps = false
        let job = try driver.submit(list([url()]))
        let run = try driver.run(of: job)
        driver.ask(.change(job, .cancel))
        let blob = BlobReference(life: 1, number: 7, size: 10)
        driver.send(
            .run(
                run,
                .list(ListRow(job: job, link: 0, mode: .all, concurrency: nil, total: 1, template: .file(blob)))),
            .run(
                run,
                .children(
                    [NewChildRow(index: 0, terms: .failure(JobError(.invalid, "")), document: .item(.file(blob)))],
                    isLast: true)))
        let unlinked = driver.effects.count { if case .unlink([blob]) = $0 { true } else { false } }
        #expect(unlinked == 2)
    }

    /// A start does not repeat the search through another owner's many jobs for a paused host.
    @Test func starts_askTheStoreForClosedHostsOnce() throws {
        let driver = try CoreDriver()
        let first = try driver.submit(url(), as: 1, host: "h:80")
        var busy = JobError(.http, "It is busy.", retryable: true)
        busy.retryAfter = 1000
        busy.retryAfterHost = "h:80"
        try driver.fail(first, busy)
        for _ in 0..<200 { _ = try driver.submit(url(), as: 1, host: "h:80") }
        let before = driver.store.readySearches
        let jobs = try (0..<100).map { _ in try driver.new(["source": ["type": "value", "value": 1]]) }
        driver.ask(.submit(jobs), as: 2)
        #expect(driver.store.readySearches - before < 10)
    }

    @Test func runOfADamagedRow_givesItsSlotBack_andItsCancelIsAnswered() throws {
        var settings = CoreSettings()
        settings.queues = [QueueSettings(name: "default", concurrency: 1)]
        let driver = try CoreDriver(settings)
        let job = try driver.submit(url())
        #expect(driver.ask(.change(job, .cancel)) == nil)
        driver.store.setDamaged(job, true)
        try driver.fail(job)
        #expect(driver.answers.values.contains { if case .changed(job) = $0 { true } else { false } })
        let next = try driver.submit(url())
        #expect(driver.live.values.map(\.job) == [next])
    }
}
