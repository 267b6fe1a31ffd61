import DeferredKit
import Testing

/// Outcomes and progress as asynchronous sequences.
@Suite struct SequenceTests {
    private func promises(_ count: Int) -> [Promise<Int, any Error>] {
        (0..<count).map { _ in Promise() }
    }

    // MARK: outcomes(of:)

    @Test func outcomes_comeInTheOrderInWhichTheyResolve() async {
        let promises = promises(3)
        let outcomes = Deferred.outcomes(of: promises.map(\.deferred))
        promises[2].succeed(2)
        promises[0].fail(Oops.one)
        promises[1].succeed(1)
        var seen: [Int] = []
        for await (index, outcome) in outcomes {
            seen.append(index)
            if index == 0 { #expect(throws: Oops.one) { try outcome.get() } }
        }
        #expect(seen == [2, 0, 1])
    }

    @Test func outcomes_endAtOnce_whenThereAreNone() async {
        let none: [Deferred<Int, Oops>] = []
        for await _ in Deferred.outcomes(of: none) { Issue.record("there is nothing") }
    }

    @Test func leavingTheLoop_withdrawsFromTheRest_butNotFromWhatOthersWant() async {
        let promises = promises(3)
        let other = promises[2].deferred.map { $0 }
        promises[0].succeed(0)
        for await (index, _) in Deferred.outcomes(of: promises.map(\.deferred)) {
            #expect(index == 0)
            break
        }
        #expect(promises[1].isCancelled)
        #expect(!promises[2].isCancelled)
        promises[2].succeed(5)
        #expect(other.value == 5)
    }

    @Test func cancellingTheTask_endsTheLoop_andWithdraws() async {
        let promise = Promise<Int, any Error>()
        let task = await SerialTasks().start {
            for await _ in Deferred.outcomes(of: [promise.deferred]) {}
        }
        task.cancel()
        _ = try? await task.value
        #expect(promise.isCancelled)
    }

    @Test func outcomes_leaveOutWhatWillNeverResolve() async {
        let kept = Promise<Int, any Error>()
        var dropped: Promise<Int, any Error>? = Promise()
        let outcomes = Deferred.outcomes(of: [kept.deferred, dropped?.deferred].compactMap { $0 })
        dropped = nil
        kept.succeed(1)
        var seen: [Int] = []
        for await (index, _) in outcomes { seen.append(index) }
        #expect(seen == [0])
    }

    // MARK: progress

    @Test func progress_beginsWithTheLatest_andEndsWithTheOutcome() async {
        let promise = Promise<Int, any Error>()
        promise.report(ProgressUpdate(completed: 1, total: 3))
        promise.report(ProgressUpdate(completed: 2, total: 3))
        let progress = promise.deferred.progress
        promise.report(ProgressUpdate(completed: 3, total: 3))
        promise.succeed(1)
        var seen: [Int64] = []
        for await update in progress { seen.append(update.completed) }
        #expect(seen == [2, 3])
    }

    @Test func progress_ends_whenThereNeverWillBeAnOutcome() async {
        var promise: Promise<Int, any Error>? = Promise()
        let progress = promise?.deferred.progress
        promise = nil
        if let progress { for await _ in progress { Issue.record("there is none") } }
    }

    @Test func progress_holdsNoInterest_andKeepsTheNewest_whenNobodyTakesIt() async {
        let promise = Promise<Int, any Error>()
        let progress = promise.deferred.progress
        for step in 1...100 { promise.report(ProgressUpdate(completed: Int64(step), total: 100)) }
        promise.deferred.map { $0 }.cancel()
        #expect(promise.isCancelled)
        var seen: [Int64] = []
        for await update in progress { seen.append(update.completed) }
        #expect(seen == Array(85...100))
    }
}
