import DeferredKit
import Foundation
import Synchronization
import Testing

/// A million links, and loops of a million rounds: the stack stays small, and so does a loop's memory.
@Suite(.serialized) struct LongChainTests {
    static let length = 1_000_000
    /// The KiB that a loop may add to the peak; more under the sanitizers, whose allocators delay the reuse of memory.
    private static let most: Int = {
        #if DEFERRED_FEW_ROUNDS
            32_000
        #else
            8_000
        #endif
    }()

    /// For operations that need more than one pass over the chain.
    static let shorter = 200_000

    /// Runs on a thread with a small stack, where recursion would not get far.
    private func withSmallStack(_ body: @escaping @Sendable () -> Void) {
        let done = DispatchSemaphore(value: 0)
        let thread = Thread {
            body()
            done.signal()
        }
        thread.stackSize = 256 * 1024
        thread.start()
        done.wait()
    }

    private func chain(on start: Deferred<Int, any Error>) -> Deferred<Int, any Error> {
        var last = start
        for _ in 0..<Self.length { last = last.map { $0 + 1 } }
        return last
    }

    @Test func chain_resolvesInBoundedStack_whenResolvedAtItsHead() {
        withSmallStack {
            let promise = Promise<Int, any Error>()
            let last = chain(on: promise.deferred)
            promise.succeed(0)
            #expect((try? last.outcome?.get()) == Self.length)
        }
    }

    @Test func chain_resolvesInBoundedStack_whenResolvedBefore() {
        withSmallStack {
            let last = chain(on: .succeeded(0))
            #expect((try? last.outcome?.get()) == Self.length)
        }
    }

    @Test func chain_isReleasedInBoundedStack_whenThePromiseIsDropped() {
        withSmallStack {
            var promise: Promise<Int, any Error>? = Promise()
            let last = chain(on: promise!.deferred)
            promise = nil
            #expect(last.outcome == nil)
            last.cancel()
            #expect(last.outcome != nil)
        }
    }

    @Test func chain_failsInBoundedStack_whenCancelledAtItsEnd() {
        withSmallStack {
            let promise = Promise<Int, any Error>()
            let last = chain(on: promise.deferred)
            last.cancel()
            #expect(throws: CancellationError.self) { try last.outcome?.get() }
            #expect(promise.isCancelled)
        }
    }

    @Test func chain_passesProgressInBoundedStack_whenReportedAtItsHead() {
        withSmallStack {
            let promise = Promise<Int, any Error>()
            let last = chain(on: promise.deferred)
            let seen = Atomic(0)
            last.onProgress { _ in seen.add(1, ordering: .relaxed) }
            promise.report(.fraction(0.5))
            #expect(seen.load(ordering: .relaxed) == 1)
            promise.succeed(1)
        }
    }

    @Test func promises_areReleasedInBoundedStack_whenEachCallbackHoldsTheNext() {
        withSmallStack {
            var promise = Promise<Int, any Error>()
            weak let last = promise.deferred
            for _ in 0..<Self.shorter {
                let next = promise
                promise = Promise()
                promise.deferred.upon { next.resolve($0) }
            }
            #expect(last != nil)
            promise = Promise()
            #expect(last == nil)
        }
    }

    @Test func loop_runsInBoundedStackAndMemory_whenEachStepIsResolvedAlready() {
        withSmallStack {
            let population = Population()
            @Sendable func round(_ n: Int) -> Deferred<Int, any Error> {
                let token = population.token()
                return Deferred.succeeded(n).flatMap { n in
                    withExtendedLifetime(token) {}
                    return n == Self.length ? .succeeded(n) : round(n + 1)
                }
            }
            #expect((try? round(0).outcome?.get()) == Self.length)
            #expect(population.count == 0)
            #expect(population.most < 100)
        }
    }

    // In processes of their own, as the memory of a process is measured. Its peak only grows.

    @Test func loops_keepNoDeferreds() async {
        await #expect(processExitsWith: .success) {
            let queue = DispatchQueue(label: "loop")
            @Sendable func resolved(_ n: Int) -> Deferred<Int, any Error> {
                Deferred.succeeded(n).flatMap { $0 == Self.length ? .succeeded($0) : resolved($0 + 1) }
            }
            @Sendable func later(_ n: Int) -> Deferred<Int, any Error> {
                Deferred.run(on: .queue(queue)) { n }.flatMap { $0 == Self.shorter ? .succeeded($0) : later($0 + 1) }
            }
            @Sendable func queued(_ n: Int) -> Deferred<Int, any Error> {
                Deferred.succeeded(n).then(on: .queue(queue)) { $0 == Self.shorter ? .succeeded($0) : queued($0 + 1) }
            }
            let before = footprint()
            #expect((try? resolved(0).outcome?.get()) == Self.length)
            let elsewhere = [try? await later(0).get(), try? await queued(0).get()]
            #expect(elsewhere == [Self.shorter, Self.shorter])
            // A link follows this one.
            let start = Promise<Int, any Error>()
            let last = start.deferred.flatMap { resolved($0) }.map { $0 + 1 }
            start.succeed(Self.length - Self.shorter)
            #expect((try? last.outcome?.get()) == Self.length + 1)
            #expect(footprint() - before < Self.most, "the peak grew by \(footprint() - before) KiB")
        }
    }

    @Test func retry_runsInBoundedStackAndMemory_whenItTriesOften() async {
        await #expect(processExitsWith: .success) {
            let before = footprint()
            let tried = Atomic(0)
            let last = Deferred<Int, any Error>.retry(attempts: Self.shorter) { _ in
                tried.add(1, ordering: .relaxed)
                return .failed(TimeoutError(after: .zero))
            }
            #expect(last.outcome != nil)
            #expect(tried.load(ordering: .relaxed) == Self.shorter)
            #expect(footprint() - before < Self.most, "the peak grew by \(footprint() - before) KiB")
        }
    }
}

/// The most memory this process had so far, in KiB.
func footprint() -> Int {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM") }
    return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
}
