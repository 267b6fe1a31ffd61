import DeferredKit
import NIOCore
import NIOEmbedded
import Testing

// DeferredKit's recipe for NIO, word for word: only these tests have both.

struct LoopExecutor: CallbackExecutor {
    let loop: any EventLoop
    func submit(_ job: @escaping @Sendable () -> Void) { loop.execute(job) }
}

extension EventLoopFuture where Value: Sendable {
    var deferred: Deferred<Value, any Error> {
        let promise = Promise<Value, any Error>()
        whenComplete { promise.resolve($0) }
        return promise.deferred
    }
}

@Suite struct DocNIORecipeTests {
    @Test func future_isADeferred_whoseCallbacksRunOnTheLoop() {
        let loop = EmbeddedEventLoop()
        let promise = loop.makePromise(of: Int.self)
        let link = promise.futureResult.deferred.map(on: LoopExecutor(loop: loop)) { $0 + 1 }
        promise.succeed(1)
        #expect(!link.isResolved)
        loop.run()
        #expect((try? link.outcome?.get()) == 2)
    }
}
