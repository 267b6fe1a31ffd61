import DeferredKit
import Testing

/// Promises that are dropped unresolved. In sequence and in separate processes, as the handler belongs to the whole
/// process.
@Suite(.serialized) struct BrokenPromiseTests {
    @Test func promise_isReportedOnce_withWhereItWasMade_whenItsLastCopyGoes() async {
        await #expect(processExitsWith: .success) {
            let journal = Journal<BrokenPromise>()
            BrokenPromise.setHandler { journal.note($0) }
            var promise: Promise<Int, any Error>?
            let line: UInt
            (promise, line) = makePromise()
            var copy = promise
            // It is reported although a consumer still waits.
            let link = promise?.deferred.map { $0 }
            promise = nil
            #expect(journal.entries.isEmpty)
            withExtendedLifetime(copy) {}
            copy = nil
            #expect(journal.entries.count == 1)
            #expect(journal.entries.first?.line == line)
            #expect(journal.entries.first?.file.hasSuffix("BrokenPromiseTests.swift") == true)
            #expect(journal.entries.first?.description.contains("dropped unresolved") == true)
            #expect(link?.isResolved == false)
        }
    }

    @Test func promise_isNotReported_whenItWasResolvedBoundOrCancelled() async {
        await #expect(processExitsWith: .success) {
            let journal = Journal<BrokenPromise>()
            BrokenPromise.setHandler { journal.note($0) }
            Promise<Int, any Error>().succeed(1)
            Promise<Int, Oops>().fail(.one)
            let other = Promise<Int, any Error>()
            Promise<Int, any Error>().resolve(with: other.deferred)
            other.deferred.cancel()
            let typed = Promise<Int, Oops>()
            typed.deferred.cancel()
            #expect(journal.entries.isEmpty)
        }
    }

    @Test func promise_isNotReported_whenOnCancelKeepsIt() async {
        await #expect(processExitsWith: .success) {
            let journal = Journal<BrokenPromise>()
            BrokenPromise.setHandler { journal.note($0) }
            let kept = Journal<Promise<Int, Oops>>()
            var promise: Promise<Int, Oops>? = Promise { kept.note($0) }
            promise?.deferred.cancel()
            promise = nil
            #expect(journal.entries.isEmpty)
            var dropped: Promise<Int, Oops>? = Promise { _ in }
            let deferred = dropped?.deferred
            dropped = nil
            #expect(journal.entries.count == 1)
            deferred?.cancel()
            BrokenPromise.setHandler(nil)
            _ = Promise<Int, Oops>()
            #expect(journal.entries.count == 1)
        }
    }
}

private func makePromise() -> (Promise<Int, any Error>?, UInt) {
    (Promise(), #line)
}
