import JobModel
import Testing

@testable import JobCore

/// Subscriptions and waits of the whole core.
@Suite struct WatchTests {
    private let all: SubscriptionID = 7

    private func watching(_ driver: CoreDriver, _ request: RequestID) -> [JobID] {
        guard case .watching(let snapshots, _) = driver.answer(to: request) else { return [] }
        return snapshots.map(\.job.id)
    }

    // MARK: - States

    @Test func subscriber_hearsOfEveryChange_inOrder_andOfOneEnd() throws {
        let driver = CoreDriver()
        driver.ask(.watch(WatchScope(.all), all))
        let id = try driver.submit(
            url("a", #""then":[{"then":\#(step("b"))}],"retry":{"max":1,"initial":5,"jitter":false}"#))
        try driver.end(id, .passing)
        driver.advance(5)
        driver.endAll()
        #expect(
            driver.states(of: id, to: all) == [
                .queued, .running, .scheduled, .queued, .running, .running, .succeeded,
            ])
        #expect(driver.told.last?.change.isLast == true)
    }

    @Test func submission_withAWatch_hearsOfItsJobFromItsStart() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url(), subscription: 5)
        driver.endAll()
        #expect(driver.states(of: id, to: 5) == [.running, .succeeded])
        let keyed = try driver.submit(url("a", #""key":"k""#))
        try driver.submit(url("a", #""key":"k""#), subscription: 6)
        driver.endAll()
        #expect(driver.states(of: keyed, to: 6) == [.succeeded])
        driver.feed(.unsubscribe(5))
        driver.feed(.unsubscribe(6))
        #expect(driver.core.inspection.subscriptions == 0)
    }

    @Test func everySubscriber_hearsTheEnd_whereOneBeginsWhileItIsStored() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url("a", #""key":"k""#))
        driver.ask(.watch(WatchScope(.jobs([id])), 1))
        driver.holdsWrites = true
        try driver.end(id)
        driver.ask(.watch(WatchScope(.jobs([id])), 2))
        _ = try driver.requestSubmit(url("a", #""key":"k""#), subscription: 3)
        driver.releaseWrites()
        for subscription in 1...2 as ClosedRange<SubscriptionID> {
            #expect(driver.states(of: id, to: subscription) == [.succeeded], "subscription \(subscription)")
        }
    }

    @Test func watch_thatIsGivenUpBeforeItBegins_doesNotBegin() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url())
        try driver.end(id)
        driver.holdsReads = true
        driver.ask(.watch(WatchScope(.jobs([id])), 1))
        driver.ask(.watch(WatchScope(.tag("t")), 2))
        driver.feed(.unsubscribe(1))
        driver.feed(.unsubscribe(2))
        driver.releaseReads()
        driver.holdsReads = false
        driver.holdsWrites = true
        _ = try driver.requestSubmit(url(), subscription: 3)
        driver.feed(.unsubscribe(3))
        driver.holdsWrites = false
        driver.releaseWrites()
        #expect(driver.core.inspection.subscriptions == 0 && driver.core.beginning.isEmpty)
    }

    @Test func answer_holdsWhatIsNotFinished_upToAThousand() throws {
        let driver = CoreDriver { $0.queues[0].isSuspended = true }
        driver.ask(.submit(try (0..<1100).map { _ in try driver.new(url("a", #""tags":["t"]"#)) }))
        let request = driver.ask(.watch(WatchScope(.tag("t")), 1))
        guard case .watching(let snapshots, let isTruncated) = driver.answer(to: request) else {
            return #expect(Bool(false))
        }
        #expect(snapshots.count == 1000 && isTruncated)
        #expect(watching(driver, driver.ask(.watch(WatchScope(.tag("other")), 2))).isEmpty)
    }

    @Test func answer_holdsTheChildren_whereTheyAreWatched() throws {
        let driver = CoreDriver()
        let id = try driver.submit(
            #"{"source":{"type":"list","jobs":[{"source":{"type":"list","jobs":[\#(url("a"))]}},\#(url("b")),\#(url("c"))]}}"#
        )
        let ids = driver.store.children(of: id).map(\.id)
        try driver.end(ids[2])
        let request = driver.ask(.watch(WatchScope(.jobs([id]), includesChildren: true), 1))
        #expect(watching(driver, request) == [id, ids[0], ids[1], ids[2] + 1])
        #expect(watching(driver, driver.ask(.watch(WatchScope(.jobs([id])), 2))) == [id])
        driver.endAll()
        for child in [ids[0], ids[1], ids[2] + 1] {
            #expect(driver.states(of: child, to: 1).last == .succeeded && driver.states(of: child, to: 2).isEmpty)
        }
        #expect(driver.states(of: id, to: 2) == [.succeeded])
    }

    @Test func children_areReadOnce_ofAJobThatIsNamedAgainAndAgain() throws {
        let driver = CoreDriver()
        let id = try driver.submit(#"{"source":{"type":"list","jobs":[\#(url("a"))]}}"#)
        let child = try #require(driver.store.children(of: id).first?.id)
        let reads = driver.reads.count
        let request = driver.ask(.watch(WatchScope(.jobs([id, id, id]), includesChildren: true), 1))
        #expect(watching(driver, request) == [id, id, id, child])
        #expect(driver.reads.count == reads + 1)
    }

    @Test func children_areNotReadOn_onceTheWatchIsOver() throws {
        let driver = CoreDriver()
        let ids = try (0..<3).map { _ in try driver.submit(#"{"source":{"type":"list","jobs":[\#(url("a"))]}}"#) }
        driver.holdsReads = true
        let reads = driver.reads.count
        let request = driver.ask(.watch(WatchScope(.jobs(ids), includesChildren: true), 1))
        #expect(driver.reads.count == reads + 1 && driver.answer(to: request) == nil)
        driver.feed(.unsubscribe(1))
        driver.holdsReads = false
        driver.releaseReads()
        #expect(driver.reads.count == reads + 1 && driver.answer(to: request) != nil)
    }

    @Test func watch_ends_whereItsChildrenCannotBeRead() throws {
        let driver = CoreDriver()
        let id = try driver.submit(#"{"source":{"type":"list","jobs":[\#(url("a"))]}}"#)
        driver.failsRead = { if case .list = $0 { true } else { false } }
        #expect(driver.code(driver.ask(.watch(WatchScope(.jobs([id]), includesChildren: true), 1))) == .storage)
        #expect(driver.core.inspection.subscriptions == 0)
    }

    @Test func endOfAChild_isTold_whereItsParentHasLeftTheMemory() throws {
        let driver = CoreDriver()
        let inner = #"{"source":{"type":"list","jobs":[\#(url("a", #""then":[{"finally":\#(step("f"))}]"#))]}}"#
        let id = try driver.submit(#"{"source":{"type":"list","jobs":[\#(inner)]},"tags":["t"]}"#)
        let child = id + 2
        driver.ask(.watch(WatchScope(.tag("t"), includesChildren: true), 1))
        driver.ask(.watch(WatchScope(.jobs([id]), includesChildren: true), 2))
        driver.ask(.watch(WatchScope(.jobs([child])), 3))
        driver.ask(.watch(WatchScope(.tag("t")), 4))
        driver.ask(.cancel(id))
        #expect(driver.stored(id)?.state == .cancelled && driver.state(child) == .running)
        // What is read last is told last, in order.
        driver.holdsReads = true
        try driver.end(child)
        driver.ask(.watch(WatchScope(.tag("t"), includesChildren: true), 5))
        driver.holdsReads = false
        driver.releaseReads()
        #expect(driver.states(of: child, to: 1).last == .cancelled)
        #expect(driver.states(of: child, to: 1).count { $0.isTerminal } == 1)
        #expect(driver.states(of: child, to: 2).allSatisfy { !$0.isTerminal }, "the watch was over with its job")
        #expect(driver.states(of: child, to: 3) == [.running, .cancelled])
        #expect(driver.states(of: child, to: 4).isEmpty)
        #expect(driver.core.pendingNotifications.isEmpty)
        driver.expectQuiet()
    }

    @Test(arguments: [true, false])
    func endOfAChild_isTold_whereAllOfThemAreRemovedBeforeItsParentsAreRead(isAnsweredFirst: Bool) throws {
        let driver = CoreDriver()
        let inner = #"{"source":{"type":"list","jobs":[\#(url("a", #""then":[{"finally":\#(step("f"))}]"#))]}}"#
        let id = try driver.submit(#"{"source":{"type":"list","jobs":[\#(inner)]},"tags":["t"]}"#)
        let (parent, child) = (id + 1, id + 2)
        driver.ask(.watch(WatchScope(.tag("t"), includesChildren: true), 1))
        driver.ask(.watch(WatchScope(.all, includesChildren: true), 2))
        driver.ask(.cancel(id))
        driver.holdsReads = true
        try driver.end(child)
        let ofParent: (StoreRead) -> Bool = { if case .jobs([parent], _) = $0 { true } else { false } }
        #expect(driver.stored(child)?.state == .cancelled && driver.heldReads.contains { ofParent($0.read) })
        driver.holdsWrites = true
        driver.ask(.remove(id))
        driver.releaseReads { !ofParent($0) }
        driver.commitWrites()
        #expect(driver.stored(id) == nil && driver.stored(child) == nil)
        // What is above it is gone when it is looked for, whether the core knows that by then or not.
        if isAnsweredFirst { driver.releaseReads(isLate: true, where: ofParent) }
        driver.holdsWrites = false
        driver.releaseWrites()
        driver.holdsReads = false
        driver.releaseReads(isLate: true)
        for subscription: SubscriptionID in [1, 2] {
            #expect(driver.states(of: child, to: subscription).count { $0.isTerminal } == 1, "to \(subscription)")
        }
        #expect(driver.core.pendingNotifications.isEmpty)
        driver.expectQuiet()
    }

    /// Its row is damaged, so nobody can say who is above it.
    @Test func notifications_areDropped_whereWhatIsAboveIsNotFound() throws {
        let driver = CoreDriver()
        let id = try driver.submit(
            #"{"source":{"type":"list","jobs":[\#(url("a", #""then":[{"finally":\#(step("f"))}]"#))]},"tags":["t"]}"#)
        driver.ask(.watch(WatchScope(.tag("t"), includesChildren: true), 1))
        driver.missesRead = { if case .jobs([id], _) = $0 { true } else { false } }
        driver.ask(.cancel(id))
        driver.endAll()
        driver.advance(5)
        #expect(driver.stored(id + 1)?.state == .cancelled && driver.core.pendingNotifications.isEmpty)
        driver.expectQuiet()
    }

    @Test func endOfAChild_isTold_onceItsParentsCanBeRead() throws {
        let driver = CoreDriver()
        let id = try driver.submit(
            #"{"source":{"type":"list","jobs":[\#(url("a", #""then":[{"finally":\#(step("f"))}]"#))]},"tags":["t"]}"#)
        driver.ask(.watch(WatchScope(.tag("t"), includesChildren: true), 1))
        driver.failsRead = { if case .jobs([id], _) = $0 { true } else { false } }
        driver.ask(.cancel(id))
        driver.endAll()
        #expect(driver.stored(id + 1)?.state == .cancelled && driver.core.pendingNotifications.count == 1)
        driver.failsRead = { _ in false }
        driver.advance(2)
        #expect(driver.states(of: id + 1, to: 1).last == .cancelled && driver.core.pendingNotifications.isEmpty)
        driver.expectQuiet()
    }

    @Test func changesOfAChild_areToldInOrder_whereWhatIsAboveItBecomesKnownBetweenThem() throws {
        let driver = CoreDriver()
        driver.ask(.watch(WatchScope(.tag("t"), includesChildren: true), 1))
        let child = url("c", #""then":[{"then":\#(step("d"))}]"#)
        let list = #"{"source":{"type":"list","jobs":[\#(child),\#(child)]}}"#
        let inner = url("a", #""then":[{"finally":\#(list)}]"#)
        let id = try driver.submit(#"{"source":{"type":"list","jobs":[\#(inner)]},"tags":["t"]}"#)
        driver.holdsReads = true
        driver.ask(.cancel(id))
        let children = driver.store.children(of: id + 1).map(\.id)
        #expect(driver.atWork == children && driver.core.pendingNotifications[children[0]]?.changes.count == 2)
        // What is above is read for the second child first, and known of both then.
        driver.releaseRead(at: driver.heldReads.count - 1, isLate: false)
        driver.ask(.watch(WatchScope(.tag("t"), interval: 9, includesChildren: true), 2))
        driver.ask(.watch(WatchScope(.jobs([children[0]])), 3))
        try driver.end(children[0])
        driver.ask(.watch(WatchScope(.tag("t"), includesChildren: true), 4))
        driver.holdsReads = false
        driver.releaseReads()
        driver.endAll()
        for (subscription, links) in [(1, [0, 0, 1, 1]), (2, [1, 1]), (3, [1, 1]), (4, [1])]
            as [(SubscriptionID, [Int])]
        {
            let changes = driver.told.filter { $0.subscribers.contains(subscription) && $0.change.job == children[0] }
            #expect(changes.map(\.change.snapshot.job.link) == links, "to \(subscription)")
            #expect(changes.last?.change.state == .succeeded)
        }
        #expect(driver.core.pendingNotifications.isEmpty)
        driver.expectQuiet()
    }

    // MARK: - Progress

    private func rows(_ driver: CoreDriver, to subscription: SubscriptionID) -> [[JobID]] {
        driver.reported.filter { $0.subscribers.contains(subscription) }.map { $0.rows.map(\.job) }
    }

    @Test func progress_isToldAtMostOnceAnInterval_theLatestOfIt() throws {
        let driver = CoreDriver()
        driver.ask(.watch(WatchScope(.all, interval: 1), all))
        #expect(driver.core.progressInterval == 1000)
        let id = try driver.submit(url())
        try driver.report(id, 1, of: 100, updates: 1)
        #expect(driver.reported.isEmpty, "not before an interval is over")
        driver.advance(1)
        #expect(driver.reported.count == 1)
        for number in 2...5 as ClosedRange<Int64> { try driver.report(id, number, of: 100, updates: Int(number)) }
        driver.advance(0.9)
        #expect(driver.reported.count == 1)
        driver.advance(0.1)
        let row = try #require(driver.reported.last?.rows.first)
        #expect(driver.reported.count == 2 && row.progress.completed == 5 && row.coalesced == 3 && row.link == 0)
        driver.advance(10)
        #expect(driver.reported.count == 2, "there is nothing new")
        driver.endAll()
    }

    @Test func subscribers_areToldByTheirOwnIntervals_ofAllTheirJobsAtOnce() throws {
        let driver = CoreDriver()
        driver.ask(.watch(WatchScope(.all, interval: 1), 1))
        driver.ask(.watch(WatchScope(.all, interval: 1), 2))
        driver.ask(.watch(WatchScope(.all, interval: 5), 3))
        let ids = try (0..<3).map { _ in try driver.submit(url()) }
        for number in 1...20 {
            for id in ids { try driver.report(id, Int64(number), of: 100, updates: number) }
            driver.advance(0.5)
        }
        let quick = driver.reported.filter { $0.subscribers == [1, 2] }
        #expect(quick.count >= 10 && quick.count <= 12 && quick.dropFirst().allSatisfy { $0.rows.map(\.job) == ids })
        #expect((2...3).contains(driver.reported.count { $0.subscribers == [3] }))
        let slow = try #require(driver.reported.last { $0.subscribers == [3] }?.rows.first)
        #expect(slow.coalesced > 5)
    }

    @Test func progressOfAList_isTheSumOfItsChildren() throws {
        let driver = CoreDriver()
        let id = try driver.submit(#"{"source":{"type":"list","jobs":[\#(url("a")),\#(url("b"))]}}"#)
        driver.ask(.watch(WatchScope(.jobs([id]), interval: 1), 1))
        let ids = driver.store.children(of: id).map(\.id)
        try driver.report(ids[0], 10, of: 100, updates: 1)
        driver.advance(1)
        try driver.report(ids[1], 5, of: 50, updates: 1)
        driver.advance(1)
        let row = try #require(driver.reported.last?.rows.first)
        #expect(row.job == id && row.progress.completed == 15 && row.progress.total == 150)
        guard case .job(let snapshot) = driver.answer(to: driver.ask(.job(id))) else { return #expect(Bool(false)) }
        #expect(snapshot.progress?.completed == 15)
        driver.endAll()
    }

    @Test func progressOfAList_countsChildren_whereNoneCountsBytes() throws {
        let driver = CoreDriver()
        let id = try driver.submit(#"{"source":{"type":"list","jobs":[\#(url("a")),\#(url("b"))]}}"#)
        driver.ask(.watch(WatchScope(.jobs([id]), interval: 1), 1))
        try driver.end(driver.atWork[0])
        driver.advance(1)
        let row = try #require(driver.reported.last?.rows.first)
        #expect(row.progress == Progress(completed: 1, total: 2, unit: .jobs))
        driver.endAll()
    }

    /// A list with thousands of children looked at all of them each time that one ended.
    @Test func progressOfAList_isComputedOnceItIsTold_whereMuchHappensInBetween() throws {
        let driver = CoreDriver()
        let jobs = ["a", "b", "c", "d"].map { url($0) }.joined(separator: ",")
        let id = try driver.submit(#"{"source":{"type":"list","jobs":[\#(jobs)]}}"#)
        driver.ask(.watch(WatchScope(.jobs([id]), interval: 1), 1))
        for _ in 0..<3 { try driver.end(driver.atWork[0]) }
        #expect(driver.core.table[id]?.progress?.completed == 1)
        driver.advance(1)
        let row = try #require(driver.reported.last?.rows.first)
        #expect(row.progress.completed == 3 && row.progress.total == 4 && row.coalesced == 2)
        // The last of it is not told, as its end follows.
        let count = driver.reported.count
        driver.endAll()
        driver.advance(5)
        #expect(driver.reported.count == count)
    }

    @Test func progress_isOfTheRunOnly_thatIsAtWork() throws {
        let driver = CoreDriver()
        driver.ask(.watch(WatchScope(.all, interval: 1), 1))
        let id = try driver.submit(url())
        let run = try driver.run(of: id).run
        try driver.end(id)
        driver.feed(.progress([ProgressReport(run: run, progress: Progress(completed: 1, total: 9), updates: 1)]))
        driver.advance(5)
        #expect(driver.reported.isEmpty)
        driver.feed(.ended(run, .lasting, nil, random: 0))
        #expect(driver.stored(id)?.state == .succeeded)
    }

    @Test func nobodyIsTold_onceNobodyWatches() throws {
        let driver = CoreDriver()
        driver.ask(.watch(WatchScope(.all, interval: 1), 1))
        let id = try driver.submit(url())
        try driver.report(id, 1, of: 100, updates: 1)
        driver.advance(1)
        try driver.report(id, 2, of: 100, updates: 2)
        driver.feed(.unsubscribe(1))
        driver.advance(5)
        #expect(driver.reported.allSatisfy { !$0.subscribers.isEmpty } && driver.reported.count == 1)
        #expect(driver.core.progressInterval == nil)
    }

    @Test func bytesReceived_areCounted_ofEverySource() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url())
        let run = try driver.run(of: id).run
        try driver.end(
            id, report: ProgressReport(run: run, progress: Progress(completed: 500, total: nil), updates: 1))
        guard case .statistics(let statistics) = driver.answer(to: driver.ask(.statistics)) else { return }
        #expect(statistics.totals.bytesReceived == 500 && statistics.totals.succeeded == 1)
        #expect(statistics.jobs == [.succeeded: 1])
        guard case .statistics(let others) = driver.answer(to: driver.ask(.statistics, as: .two)) else { return }
        #expect(others.totals == CoreTotals() && others.jobs.isEmpty)
    }
}
