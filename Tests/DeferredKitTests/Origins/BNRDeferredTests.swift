import DeferredKit
import Dispatch
import Testing

/// The features of Big Nerd Ranch's Deferred, written with DeferredKit.
@Suite struct BNRDeferredTests {
    @Test func wait_givesNil_whenTheTimeIsOver() {
        let promise = Promise<Int, any Error>()
        #expect(promise.deferred.wait(timeout: .milliseconds(1)) == nil)
        #expect(promise.deferred.wait(timeout: .zero) == nil)
        #expect(promise.deferred.wait(timeout: .seconds(-1)) == nil)
    }

    @Test func wait_givesTheOutcome_whenAnotherThreadResolves() {
        let promise = Promise<Int, Never>()
        DispatchQueue.global().async { promise.succeed(5) }
        #expect(promise.deferred.wait(timeout: .seconds(Int64.max)) == .success(5))
        #expect(promise.deferred.wait(timeout: .zero) == .success(5))
    }

    @Test func waiting_doesNotCancelTheWork_whenTheTimeIsOver() {
        let promise = Promise<Int, any Error>()
        let link = promise.deferred.map { $0 }
        #expect(link.wait(timeout: .milliseconds(1)) == nil)
        #expect(!promise.isCancelled)
        promise.succeed(1)
        #expect(link.value == 1)
    }
}
