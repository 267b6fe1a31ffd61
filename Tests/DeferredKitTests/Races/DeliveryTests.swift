import DeferredKit
import Dispatch
import Testing

/// In which order and where callbacks run.
@Suite struct DeliveryTests {
    @Test func callbacks_runInTheOrderTheyWereAdded_whateverTheirKind() {
        let journal = Journal<Int>()
        let promise = Promise<Int, any Error>()
        promise.deferred.upon { _ in journal.note(0) }
        promise.deferred.map { _ in journal.note(1) }.then { journal.note(2) }
        promise.deferred.finally { _ in journal.note(3) }
        promise.deferred.upon { _ in journal.note(4) }
        Deferred.all([promise.deferred]).upon { _ in journal.note(5) }
        promise.deferred.then { _ in journal.note(6) }
        promise.succeed(0)
        #expect(journal.entries == Array(0...6))
    }

    @Test func callback_isFinishedFirst_whenItAddsAnother() {
        let journal = Journal<String>()
        let resolved = Deferred<Int, any Error>.succeeded(1)
        let promise = Promise<Int, any Error>()
        promise.deferred.upon { _ in
            resolved.upon { _ in journal.note("added") }
            let link = resolved.map { $0 }
            #expect(link.outcome == nil)
            journal.note("end")
        }
        promise.succeed(0)
        #expect(journal.entries == ["end", "added"])
    }

    @Test func callbackAddedByACallback_comesAfterThoseThatWereThere() {
        let journal = Journal<String>()
        let promise = Promise<Int, any Error>()
        promise.deferred.upon { _ in
            promise.deferred.upon { _ in journal.note("added") }
            journal.note("first")
        }
        promise.deferred.upon { _ in journal.note("second") }
        promise.succeed(0)
        #expect(journal.entries == ["first", "second", "added"])
    }

    @Test func waitingInACallback_runsWhatTheCallbackMadeDue() {
        let journal = Journal<String>()
        let promise = Promise<Int, any Error>()
        promise.deferred.upon { _ in
            let link = Deferred<Int, any Error>.succeeded(1).map { $0 + 1 }.map { $0 + 1 }
            journal.note("\(link.wait(timeout: .seconds(60)).map { "\($0)" } ?? "nothing")")
            Deferred<Int, any Error>.succeeded(1).upon { _ in journal.note("due") }
            journal.note("end")
        }
        promise.deferred.upon { _ in journal.note("next") }
        promise.succeed(1)
        #expect(journal.entries == ["success(3)", "end", "due", "next"])
    }

    @Test func linkThatBlocksAndPauses_keepsItsOwn_whenLinksOfOtherTypesPauseMeanwhile() {
        let inner = Promise<Int, any Error>()
        let other = Promise<String, any Error>()
        let promise = Promise<Int, any Error>()
        let last = promise.deferred.flatMap { _ in
            // It pauses on this thread while the closure waits.
            let text = Deferred<Int, any Error>.succeeded(1).flatMap { _ in other.deferred }.map { $0.count }
            #expect(text.wait(timeout: .zero) == nil)
            return inner.deferred
        }
        .flatMap { value in Deferred<Int, any Error>.succeeded(value + 1) }.map { $0 + 1 }
        promise.succeed(0)
        other.succeed("x")
        inner.succeed(5)
        #expect(last.value == 7)
    }

    @Test func callbackAddedElsewhere_runsOnTheThreadThatRunsTheOthers() async {
        let journal = Journal<String>()
        let promise = Promise<Int, Never>()
        let key = DispatchSpecificKey<String>()
        let resolving = DispatchQueue(label: "resolving")
        resolving.setSpecific(key: key, value: "resolving")
        let isRunning = DispatchSemaphore(value: 0)
        let mayEnd = DispatchSemaphore(value: 0)
        let done = Promise<Void, Never>()
        promise.deferred.upon { _ in
            isRunning.signal()
            mayEnd.wait()
            journal.note("first")
        }
        resolving.async { promise.succeed(1) }
        DispatchQueue.global().async {
            isRunning.wait()
            promise.deferred.upon { _ in
                journal.note("second on \(DispatchQueue.getSpecific(key: key) ?? "another")")
                done.succeed(())
            }
            journal.note("added")
            mayEnd.signal()
        }
        await done.deferred.get()
        #expect(journal.entries == ["added", "first", "second on resolving"])
    }

    @Test func inlineCallback_runsOnTheCallersThread_whenResolvedAlready() {
        let queue = DispatchQueue(label: "caller")
        let key = DispatchSpecificKey<Bool>()
        queue.setSpecific(key: key, value: true)
        let journal = Journal<Bool>()
        queue.sync {
            _ = Deferred<Int, any Error>.succeeded(1).upon { _ in
                journal.note(DispatchQueue.getSpecific(key: key) == true)
            }
        }
        #expect(journal.entries == [true])
    }

    @Test func queuedCallbacks_keepTheirOrder_whenTheirQueueIsSerial() {
        let queue = DispatchQueue(label: "serial")
        let journal = Journal<Int>()
        let promise = Promise<Int, any Error>()
        for index in 0..<100 { promise.deferred.upon(on: .queue(queue)) { _ in journal.note(index) } }
        promise.succeed(0)
        queue.sync {}
        #expect(journal.entries == Array(0..<100))
    }

    @Test func failure_skipsTheExecutor_whenItsClosureIsSkipped() {
        let queue = DispatchQueue(label: "suspended")
        queue.suspend()
        let link = Deferred<Int, any Error>.failed(Oops.one).map(on: .queue(queue)) { $0 }
        #expect(link.error as? Oops == .one)
        queue.resume()
    }

    @Test func observation_stopsACallback_thatWaitsForItsExecutor() {
        let queue = DispatchQueue(label: "suspended")
        queue.suspend()
        let journal = Journal<String>()
        let observation = Deferred<Int, any Error>.succeeded(1).upon(on: .queue(queue)) { _ in journal.note("ran") }
        observation.cancel()
        queue.resume()
        queue.sync {}
        #expect(journal.entries.isEmpty)
    }

    /// An executor that runs a job within the call.
    private struct Immediate: CallbackExecutor {
        func submit(_ job: @escaping @Sendable () -> Void) { job() }
    }

    @Test func ownExecutor_runsTheJobs_evenAtOnce() {
        var last = Deferred<Int, any Error>.succeeded(0)
        for _ in 0..<1000 { last = last.map(on: Immediate()) { $0 + 1 } }
        #expect(last.value == 1000)
        let promise = Promise<Int, any Error>()
        last = promise.deferred
        for _ in 0..<100_000 { last = last.map(on: Immediate()) { $0 + 1 } }
        promise.succeed(0)
        #expect(last.value == 100_000)
    }
}
