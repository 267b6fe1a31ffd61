import DeferredKit
import Foundation
import Testing

/// The features of PINFuture, written with DeferredKit.
@Suite struct PINFutureTests {
    @Test func map_transformsValuesOnly() {
        #expect(Deferred<Int, Oops>.succeeded(1).map { $0 + 1 }.outcome == .success(2))
        #expect(Deferred<Int, Oops>.failed(.one).map { $0 + 1 }.outcome == .failure(.one))
    }

    @Test func map_fails_whenItsClosureThrows() {
        let link = Deferred<Int, Oops>.succeeded(1).map { (_: Int) throws(Oops) -> Int in throw .two }
        #expect(link.outcome == .failure(.two))
    }

    @Test func flatMap_waitsForTheInnerOne() {
        let inner = Promise<Int, Oops>()
        let link = Deferred<Int, Oops>.succeeded(1).flatMap { _ in inner.deferred }
        #expect(link.outcome == nil)
        inner.fail(.one)
        #expect(link.outcome == .failure(.one))
        let thrown = Deferred<Int, Oops>.succeeded(1).flatMap { (_: Int) throws(Oops) -> Deferred<Int, Oops> in
            throw .two
        }
        #expect(thrown.outcome == .failure(.two))
    }

    @Test func mapError_transformsFailuresOnly() {
        let failed: Deferred<Int, TimeoutError> = Deferred<Int, Oops>.failed(.one).mapError { _ in
            TimeoutError(after: .seconds(1))
        }
        #expect(failed.outcome == .failure(TimeoutError(after: .seconds(1))))
        let kept: Deferred<Int, TimeoutError> = Deferred<Int, Oops>.succeeded(1).mapError { _ in
            TimeoutError(after: .seconds(1))
        }
        #expect(kept.outcome == .success(1))
    }

    @Test func flatMapError_recovers() {
        let healed: Deferred<Int, Never> = Deferred<Int, Oops>.failed(.one).flatMapError { _ in .succeeded(0) }
        #expect(healed.outcome == .success(0))
        let kept: Deferred<Int, Never> = Deferred<Int, Oops>.succeeded(1).flatMapError { _ in .succeeded(0) }
        #expect(kept.outcome == .success(1))
    }

    @Test func erased_keepsTheOutcome() {
        #expect(Deferred<Int, Oops>.succeeded(1).erased().value == 1)
        #expect(Deferred<Int, Oops>.failed(.one).erased().error as? Oops == .one)
    }
}
