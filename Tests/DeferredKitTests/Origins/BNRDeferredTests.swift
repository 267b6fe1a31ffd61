import DeferredKit
import Dispatch
import Testing

/// The features of Big Nerd Ranch's Deferred, written with DeferredKit.
@Suite struct BNRDeferredTests {
    @Test func fill_resolves_andFillIfUnfilledTellsWhetherItDid() {
        let promise = Promise<Int, Never>()
        #expect(promise.deferred.outcome == nil)
        #expect(promise.succeed(1))
        #expect(!promise.succeed(2))
        #expect(promise.deferred.outcome == .success(1))
    }

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

    @Test func bind_chains() {
        let promise = Promise<Int, Never>()
        let last = promise.deferred.flatMap { Deferred<String, Never>.succeeded("\($0)") }.map { $0 + "!" }
        promise.succeed(1)
        #expect(last.outcome == .success("1!"))
    }

    @Test func all_keepsTheOrder_whateverResolvesFirst() {
        let promises = (0..<3).map { _ in Promise<Int, Never>() }
        let all = Deferred.all(promises.map(\.deferred))
        for index in [1, 2, 0] { promises[index].succeed(index) }
        #expect(all.outcome == .success([0, 1, 2]))
    }

    @Test func any_givesTheDeferredThatResolvedFirst() {
        let promises = (0..<3).map { _ in Promise<Int, Never>() }
        let first = Deferred.firstResolved(promises.map(\.deferred))
        promises[1].succeed(1)
        #expect(first.value === promises[1].deferred)
        promises[0].succeed(0)
        #expect(first.value === promises[1].deferred)
    }

    @Test func both_givesBothValues() {
        let number = Promise<Int, Never>()
        let text = Promise<String, Never>()
        let pair = both(number.deferred, text.deferred)
        text.succeed("a")
        #expect(pair.outcome == nil)
        number.succeed(1)
        #expect(pair.value?.0 == 1)
        #expect(pair.value?.1 == "a")
    }

    @Test func cancel_fillsWithADefault_andAnUponStopsTheWork() {
        let journal = Journal<String>()
        let promise = Promise<Int, Never> { $0.succeed(-1) }
        promise.deferred.upon { _ in journal.note("stopped") }
        promise.deferred.cancel()
        #expect(promise.deferred.outcome == .success(-1))
        #expect(journal.entries == ["stopped"])
    }
}
