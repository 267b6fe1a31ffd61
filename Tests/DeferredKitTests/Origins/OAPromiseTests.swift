import DeferredKit
import Dispatch
import Testing

/// The features of OAPromise, written with DeferredKit.
@Suite struct OAPromiseTests {
    @Test func thenError_runsOneOfTheTwo() {
        #expect(Deferred<Int, any Error>.succeeded(1).then({ $0 }, fail: { _ in 0 }).value == 1)
        #expect(Deferred<Int, any Error>.failed(Oops.one).then({ $0 }, fail: { _ in 0 }).value == 0)
    }

    @Test func completion_getsTheOutcome() {
        let failed = Deferred<Int, any Error>.failed(Oops.one).both { outcome in
            if case .failure = outcome { "failed" } else { "succeeded" }
        }
        #expect(failed.value == "failed")
    }

    @Test func progress_isNotified_untilResolved() {
        let journal = Journal<ProgressUpdate>()
        let promise = Promise<Int, any Error>()
        promise.deferred.onProgress { journal.note($0) }
        promise.report(.fraction(0.25))
        promise.report(.fraction(0.25))
        promise.report(.fraction(0.5))
        promise.succeed(1)
        promise.report(.fraction(0.75))
        #expect(journal.entries == [.fraction(0.25), .fraction(0.5)])
    }

    @Test func callback_runsOnTheCallersQueueLater_whenAskedTo() async throws {
        let queue = DispatchQueue(label: "caller")
        let key = DispatchSpecificKey<Bool>()
        queue.setSpecific(key: key, value: true)
        let link = queue.sync { () -> Deferred<Bool, any Error> in
            let link = Deferred<Int, any Error>.succeeded(1).then(on: .queue(queue)) { _ in
                DispatchQueue.getSpecific(key: key) == true
            }
            // Asynchronous even though the outcome is there and this is the queue.
            #expect(link.outcome == nil)
            return link
        }
        #expect(try await link.get())
    }

    @Test func promise_resolvesItsDeferred_fromAnyThread() async throws {
        let promise = Promise<Int, any Error>()
        DispatchQueue.global().async { promise.succeed(3) }
        #expect(try await promise.deferred.get() == 3)
    }
}
