import DeferredKit
import Dispatch
import Testing

/// Where progress is delivered, and where it is not.
@Suite struct ProgressTests {
    private func journal<S, F>(of deferred: Deferred<S, F>) -> Journal<ProgressUpdate> {
        let journal = Journal<ProgressUpdate>()
        deferred.onProgress { journal.note($0) }
        return journal
    }

    private func some(_ completed: Int64, of total: Int64? = nil) -> ProgressUpdate {
        ProgressUpdate(completed: completed, total: total)
    }

    @Test func progress_flowsDownTheChain() {
        let promise = Promise<Int, Oops>()
        let seen = journal(of: promise.deferred.map { $0 }.erased().then { $0 }.finally { _ in })
        promise.report(some(1, of: 2))
        promise.report(some(2, of: 2))
        #expect(seen.entries == [some(1, of: 2), some(2, of: 2)])
    }

    @Test func progress_isThatOfTheReturnedDeferred_onceTheChainIsPaused() {
        let outer = Promise<Int, any Error>()
        let inner = Promise<Int, any Error>()
        inner.report(some(5, of: 50))
        let seen = journal(of: outer.deferred.flatMap { _ in inner.deferred }.map { $0 })
        outer.report(some(1, of: 1))
        inner.report(some(10, of: 50))
        #expect(seen.entries == [some(1, of: 1)])
        outer.succeed(1)
        #expect(seen.entries == [some(1, of: 1), some(10, of: 50)])
        inner.report(some(20, of: 50))
        #expect(seen.entries.last == some(20, of: 50))
    }

    @Test func progress_goesThroughABinding() {
        let promise = Promise<Int, any Error>()
        let other = Promise<Int, any Error>()
        let seen = journal(of: promise.deferred)
        promise.resolve(with: other.deferred)
        other.report(some(1))
        #expect(seen.entries == [some(1)])
    }

    @Test func unchangedValues_areSuppressed() {
        let promise = Promise<Int, any Error>()
        let seen = journal(of: promise.deferred)
        for _ in 0..<3 { promise.report(some(1)) }
        promise.report(some(1, of: 2))
        promise.report(some(1))
        #expect(seen.entries == [some(1), some(1, of: 2), some(1)])
    }

    @Test func onlyTheLatest_isReplayed() {
        let promise = Promise<Int, any Error>()
        promise.report(some(1))
        promise.report(some(2))
        #expect(journal(of: promise.deferred).entries == [some(2)])
        #expect(journal(of: promise.deferred.map { $0 }).entries == [some(2)])
        #expect(journal(of: Deferred.all([promise.deferred])).entries == [some(2)])
        promise.succeed(1)
        #expect(journal(of: promise.deferred).entries.isEmpty)
    }

    @Test func noneComes_afterResolution() {
        let promise = Promise<Int, any Error>()
        let seen = journal(of: promise.deferred)
        let queue = DispatchQueue(label: "suspended")
        let queued = Journal<ProgressUpdate>()
        queue.suspend()
        promise.deferred.onProgress(on: .queue(queue)) { queued.note($0) }
        promise.report(some(1))
        promise.succeed(1)
        promise.report(some(2))
        queue.resume()
        queue.sync {}
        #expect(seen.entries == [some(1)])
        #expect(queued.entries.isEmpty)
    }

    @Test func noneComes_whileTheOutcomeWaitsForACallbackToEnd() {
        let promise = Promise<Int, any Error>()
        let other = Promise<Int, any Error>()
        let queue = DispatchQueue(label: "suspended")
        let queued = Journal<ProgressUpdate>()
        queue.suspend()
        promise.deferred.onProgress(on: .queue(queue)) { queued.note($0) }
        promise.report(some(1))
        other.deferred.upon { _ in
            promise.succeed(1)
            queue.resume()
            queue.sync {}
        }
        other.succeed(1)
        #expect(queued.entries.isEmpty)
    }

    @Test func observation_stopsProgress() {
        let promise = Promise<Int, any Error>()
        let journal = Journal<ProgressUpdate>()
        let observation = promise.deferred.onProgress { journal.note($0) }
        promise.report(some(1))
        observation.cancel()
        promise.report(some(2))
        #expect(journal.entries == [some(1)])
    }

    @Test func progress_reachesAll_whenAnObserverOfTheOutcomeLeavesMeanwhile() {
        let promise = Promise<Int, any Error>()
        let leaving = Journal<Observation>()
        promise.deferred.onProgress { _ in leaving.entries.forEach { $0.cancel() } }
        leaving.note(promise.deferred.upon { _ in })
        let seen = journal(of: promise.deferred)
        promise.report(some(1, of: 2))
        #expect(seen.entries == [some(1, of: 2)])
    }

    @Test func progress_runsOnItsExecutorInOrder() {
        let queue = DispatchQueue(label: "progress")
        let promise = Promise<Int, any Error>()
        let journal = Journal<ProgressUpdate>()
        promise.deferred.onProgress(on: .queue(queue)) { journal.note($0) }
        for index in 0..<5 {
            promise.report(some(Int64(index)))
            queue.sync {}
        }
        #expect(journal.entries == (0..<5).map { some($0) })
    }

    @Test func slowObserver_missesValuesButNotTheNewest() {
        let queue = DispatchQueue(label: "slow")
        queue.suspend()
        let promise = Promise<Int, any Error>()
        let journal = Journal<ProgressUpdate>()
        promise.deferred.onProgress(on: .queue(queue)) { journal.note($0) }
        for index in 0..<100 { promise.report(some(Int64(index))) }
        queue.resume()
        queue.sync {}
        #expect(journal.entries.count == 16)
        #expect(journal.entries.first == some(0))
        #expect(journal.entries.last == some(99))
    }

    @Test func executor_runsOtherJobs_betweenTheValues() {
        let executor = Keeping()
        let promise = Promise<Int, any Error>()
        let journal = Journal<String>()
        promise.deferred.onProgress(on: executor) { update in
            journal.note("\(update.completed)")
            if update.completed < 3 { promise.report(ProgressUpdate(completed: update.completed + 1, total: nil)) }
        }
        promise.report(some(1))
        executor.submit { journal.note("other") }
        var next = 0
        while next < executor.jobs.entries.count {
            executor.jobs.entries[next]()
            next += 1
        }
        #expect(journal.entries == ["1", "other", "2", "3"])
        promise.succeed(1)
    }

    @Test func calls_doNotOverlap_whenTheirJobsDo() {
        let executor = Keeping()
        let promise = Promise<Int, any Error>()
        let journal = Journal<String>()
        promise.deferred.onProgress(on: executor) { update in
            journal.note("\(update.completed) begins")
            if update.completed == 1 { executor.jobs.entries.last?() }
            journal.note("\(update.completed) ends")
        }
        promise.report(some(1))
        promise.report(some(2))
        executor.jobs.entries[0]()
        #expect(journal.entries == ["1 begins", "1 ends", "2 begins", "2 ends"])
    }

    @Test func progressCallback_isFinishedFirst_whenItResolves() {
        let journal = Journal<String>()
        let promise = Promise<Int, any Error>()
        promise.deferred.onProgress { _ in
            promise.succeed(1)
            journal.note("progress")
        }
        promise.deferred.onProgress { _ in journal.note("progress after the outcome") }
        promise.deferred.upon { _ in journal.note("outcome") }
        promise.report(some(1))
        #expect(journal.entries == ["progress", "outcome"])
    }

    @Test func values_keepTheirOrder_whenReportedInsideACallback() {
        let journal = Journal<Int64>()
        let promise = Promise<Int, any Error>()
        promise.deferred.onProgress { update in
            journal.note(update.completed)
            if update.completed == 1 {
                promise.report(ProgressUpdate(completed: 2, total: nil))
                promise.report(ProgressUpdate(completed: 3, total: nil))
            }
        }
        promise.report(some(1))
        #expect(journal.entries == [1, 2, 3])
        // The callback holds its own Deferred, which only resolution or cancellation ends.
        promise.succeed(1)
    }

    // MARK: Lists

    @Test func list_sumsItsMembers_andKnowsItsTotalOnceAllGaveOne() {
        let promises = (0..<3).map { _ in Promise<Int, any Error>() }
        let seen = journal(of: Deferred.all(promises.map(\.deferred)))
        promises[0].report(some(1, of: 10))
        promises[1].report(some(2))
        promises[2].report(some(3, of: 20))
        promises[1].report(some(2, of: 30))
        #expect(seen.entries == [some(1), some(3), some(6), some(6, of: 60)])
    }

    @Test func resolvedMember_countsAsComplete() {
        let promises = (0..<4).map { _ in Promise<Int, any Error>() }
        promises[3].report(some(3, of: 7))
        promises[3].succeed(3)
        let seen = journal(of: Deferred.settled(promises.map(\.deferred)))
        promises[0].report(some(1, of: 10))
        promises[0].succeed(1)
        promises[1].fail(Oops.one)
        promises[2].report(some(1, of: 5))
        #expect(seen.entries.last == some(18, of: 22))
    }

    @Test func listProgress_neverFalls() {
        let promises = (0..<2).map { _ in Promise<Int, any Error>() }
        let seen = journal(of: Deferred.firstSuccess(promises.map(\.deferred)))
        promises[0].report(some(9, of: 10))
        promises[1].report(some(9, of: 10))
        promises[0].report(some(1, of: 10))
        promises[1].report(some(9, of: 1000))
        promises[1].report(some(990, of: 1000))
        let completed = seen.entries.map(\.completed)
        let fractions = seen.entries.compactMap(\.fraction)
        #expect(completed == completed.sorted())
        #expect(fractions == fractions.sorted())
        #expect(seen.entries.last == some(991, of: 1010))
    }

    @Test func listTotal_isGivenAsSoonAsItIsKnown_thoughAMemberFell() {
        let promises = (0..<2).map { _ in Promise<Int, any Error>() }
        let seen = journal(of: Deferred.all(promises.map(\.deferred)))
        promises[0].report(some(9, of: 10))
        promises[1].report(some(9))
        promises[0].report(some(1, of: 10))
        promises[1].report(some(9, of: 10))
        #expect(seen.entries == [some(9), some(18), some(18, of: 20)])
    }

    @Test func pair_sumsItsMembers() {
        let number = Promise<Int, any Error>()
        let text = Promise<String, any Error>()
        let seen = journal(of: both(number.deferred, text.deferred))
        number.report(some(1, of: 2))
        text.report(some(1, of: 2))
        #expect(seen.entries == [some(1), some(2, of: 4)])
    }

    @Test func listProgress_flowsDown() {
        let promises = (0..<2).map { _ in Promise<Int, any Error>() }
        let seen = journal(
            of: Deferred.all(Deferred.all(promises.map(\.deferred)).map { [$0.count] }.asList).map { $0 }
        )
        promises[0].report(some(1))
        #expect(seen.entries == [some(1)])
    }

    // MARK: The values

    @Test func fraction_isClampedAndExactForDecimals() {
        #expect(ProgressUpdate.fraction(-1) == .fraction(0))
        #expect(ProgressUpdate.fraction(2).fraction == 1)
        #expect(ProgressUpdate.fraction(.nan).fraction == 0)
        #expect(ProgressUpdate.fraction(.infinity).fraction == 1)
        for percent in 0...100 {
            #expect(ProgressUpdate.fraction(Double(percent) / 100).fraction == Double(percent) / 100)
        }
        #expect(some(3).fraction == nil)
        #expect(some(0, of: 0).fraction == nil)
        #expect(some(3, of: 2).fraction == 1)
    }
}

extension Deferred {
    fileprivate var asList: [Deferred] { [self] }
}
