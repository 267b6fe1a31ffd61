import DeferredKit
import Testing

/// The features of HLDeferred, written with DeferredKit.
@Suite struct HLDeferredTests {
    // MARK: then, fail, both

    @Test func chain_switchesBetweenItsBranches_whenCallbacksThrowAndHandle() {
        let journal = Journal<String>()
        let last = Deferred<Int, any Error>.succeeded(1)
            .then { value -> Int in
                journal.note("then \(value)")
                throw Oops.one
            }
            .then { value -> Int in
                journal.note("skipped")
                return value
            }
            .fail { error in
                journal.note("fail \(error)")
                return 10
            }
            .fail { _ in
                journal.note("skipped")
                return 0
            }
            .then { value in
                journal.note("then \(value)")
                return value + 1
            }
        #expect(journal.entries == ["then 1", "fail one", "then 10"])
        #expect(last.value == 11)
    }

    @Test func fail_passesANewFailureOn_whenItThrows() {
        let last = Deferred<Int, any Error>.failed(Oops.one)
            .fail { _ in throw Oops.two }
            .then { $0 + 1 }
        #expect(last.error as? Oops == .two)
    }

    @Test func pair_runsExactlyOneOfTheTwo_whenEitherComes() {
        let succeeded = Deferred<Int, any Error>.succeeded(1).then {
            "value \($0)"
        } fail: {
            "error \($0)"
        }
        let failed = Deferred<Int, any Error>.failed(Oops.one).then {
            "value \($0)"
        } fail: {
            "error \($0)"
        }
        #expect(succeeded.value == "value 1")
        #expect(failed.value == "error one")
    }

    @Test func pair_doesNotHandleItsOwnFailure_whenTheFirstThrows() {
        let last = Deferred<Int, any Error>.succeeded(1).then { _ -> Int in
            throw Oops.two
        } fail: { _ in
            0
        }
        #expect(last.error as? Oops == .two)
    }

    @Test func both_getsTheOutcome_whateverItIs() {
        func describe(_ deferred: Deferred<Int, any Error>) -> Deferred<String, any Error> {
            deferred.both { outcome in
                switch outcome {
                case .success(let value): "value \(value)"
                case .failure(let error): "error \(error)"
                }
            }
        }
        #expect(describe(.succeeded(1)).value == "value 1")
        #expect(describe(.failed(Oops.one)).value == "error one")
        let thrown = Deferred<Int, any Error>.succeeded(1).both { _ -> Int in throw Oops.one }
        #expect(thrown.error as? Oops == .one)
    }

    // MARK: Finalizers

    @Test func finally_passesTheOutcomeOn_whateverItIs() {
        let journal = Journal<String>()
        let succeeded = Deferred<Int, any Error>.succeeded(1).finally { _ in journal.note("succeeded") }
        let failed = Deferred<Int, any Error>.failed(Oops.one).finally { _ in journal.note("failed") }
        #expect(succeeded.value == 1)
        #expect(failed.error as? Oops == .one)
        #expect(journal.entries == ["succeeded", "failed"])
    }

    // MARK: Pausing

    @Test func pausedChain_goesOnBeforeLinksAddedToTheInnerOneLater_whenItResolves() {
        let journal = Journal<String>()
        let outer = Promise<Int, any Error>()
        let inner = Promise<Int, any Error>()
        inner.deferred.then { _ in journal.note("inner, before") }
        outer.deferred.then { _ in inner.deferred }.then { _ in journal.note("outer") }
        outer.succeed(1)
        inner.deferred.then { _ in journal.note("inner, after") }
        inner.succeed(2)
        #expect(journal.entries == ["inner, before", "outer", "inner, after"])
    }

    @Test func everyForm_pauses_whenItsClosureReturnsADeferred() {
        let source = Deferred<Int, any Error>.succeeded(1)
        let failed = Deferred<Int, any Error>.failed(Oops.one)
        let inner = Promise<Int, any Error>()
        let typed = Promise<Int, Oops>()
        let links = [
            source.then { _ in inner.deferred },
            source.then({ _ in inner.deferred }, fail: { _ in inner.deferred }),
            source.both { _ in inner.deferred },
            failed.fail { _ in inner.deferred },
            source.flatMap { _ in inner.deferred },
            failed.flatMapError { _ in inner.deferred },
        ]
        let typedLinks = [
            source.then { _ in typed.deferred },
            source.then({ _ in typed.deferred }, fail: { _ in typed.deferred }),
            source.both { _ in typed.deferred },
            failed.fail { _ in typed.deferred },
        ]
        #expect((links + typedLinks).allSatisfy { $0.outcome == nil })
        inner.succeed(5)
        typed.fail(.two)
        #expect(links.allSatisfy { $0.value == 5 })
        #expect(typedLinks.allSatisfy { $0.error as? Oops == .two })
    }

    // MARK: Resolving

    @Test func take_isRefused_whenResolvedBefore() {
        let promise = Promise<Int, any Error>()
        #expect(promise.succeed(1))
        #expect(!promise.succeed(2))
        #expect(!promise.fail(Oops.one))
        #expect(!promise.resolve(.success(3)))
        #expect(promise.deferred.value == 1)
    }

    // MARK: Observers

    @Test func observer_isNotTold_whenItsObservationWasCancelled() {
        let journal = Journal<String>()
        let promise = Promise<Int, any Error>()
        let first = promise.deferred.upon { _ in journal.note("first") }
        promise.deferred.upon { _ in journal.note("second") }
        let third = promise.deferred.upon { _ in journal.note("third") }
        first.cancel()
        third.cancel()
        third.cancel()
        promise.succeed(1)
        #expect(journal.entries == ["second"])
        #expect(promise.deferred.value == 1)
    }
}
