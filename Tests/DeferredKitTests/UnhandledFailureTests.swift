import DeferredKit
import Testing

/// Unhandled failures. In sequence, as the handler belongs to the whole process.
@Suite(.serialized) struct UnhandledFailureTests {
    private struct Unseen: Error {
        let name: String
    }

    /// The failures made here that are reported while `body` runs.
    private func reported(_ body: () async -> Void) async -> [String] {
        let journal = Journal<String>()
        UnhandledFailure.setHandler { error in
            if let unseen = error as? Unseen { journal.note(unseen.name) }
            if error is CancellationError { journal.note("cancellation") }
        }
        await body()
        UnhandledFailure.setHandler(nil)
        return journal.entries
    }

    @Test func failure_isReported_whenItsDeferredIsReleased() async {
        let reports = await reported {
            _ = Deferred<Int, any Error>.failed(Unseen(name: "made"))
            let promise = Promise<Int, Unseen>()
            promise.fail(Unseen(name: "promised"))
            Deferred<Int, any Error>.succeeded(1).then { _ in throw Unseen(name: "thrown") }
        }
        #expect(reports.sorted() == ["made", "promised", "thrown"])
    }

    @Test func failure_isReportedOnce_byTheLastOfTheChain() async {
        let reports = await reported {
            _ = Deferred<Int, Unseen>.failed(Unseen(name: "once")).map { $0 }.erased().then { $0 }.finally { _ in }
        }
        #expect(reports == ["once"])
    }

    @Test func success_isNotReported() async {
        let reports = await reported {
            _ = Deferred<Int, any Error>.succeeded(1)
            _ = Deferred<Int, any Error>.never
        }
        #expect(reports.isEmpty)
    }

    @Test func cancellation_isNeverReported() async {
        let reports = await reported {
            let promise = Promise<Int, any Error>()
            promise.deferred.map { $0 }.cancel()
            _ = Deferred<Int, any Error>.failed(CancellationError())
            _ = Deferred<Int, CancellationError>.failed(CancellationError())
        }
        #expect(reports.isEmpty)
    }

    @Test func whoeverLooks_takesOverTheResponsibility() async {
        @Sendable func failed() -> Deferred<Int, any Error> { .failed(Unseen(name: "looked at")) }
        let reports = await reported {
            failed().upon { _ in }
            failed().fail { _ in 0 }
            failed().both { _ in 0 }
            _ = try? await failed().get()
            block(failed())
            _ = failed().outcome
            _ = Deferred.settled([failed(), failed()])
            Promise<Int, any Error>().resolve(with: .succeeded(1))
            let before = Promise<Int, any Error>()
            before.deferred.upon { _ in }
            before.fail(Unseen(name: "looked at"))
            _ = Deferred<Int, any Error>.succeeded(1).flatMap { _ in failed() }.fail { _ in 0 }
            _ = Deferred<Int, any Error>.succeeded(1).then { _ in
                Deferred<Int, Unseen>.failed(Unseen(name: "looked at"))
            }
            .fail { _ in 0 }
        }
        #expect(reports.isEmpty)
    }

    private func block(_ deferred: Deferred<Int, any Error>) {
        _ = deferred.wait(timeout: .zero)
    }

    @Test func progressObserver_doesNotLook() async {
        let reports = await reported {
            let promise = Promise<Int, any Error>()
            promise.deferred.onProgress { _ in }
            promise.fail(Unseen(name: "unseen"))
        }
        #expect(reports == ["unseen"])
    }

    @Test func list_looksAtAllItsMembers() async {
        let reports = await reported {
            func members() -> [Promise<Int, any Error>] { (0..<3).map { _ in Promise { _ in } } }
            for looking: (([Deferred<Int, any Error>]) -> Void) in [
                { Deferred.all($0).upon { _ in } }, { Deferred.settled($0).upon { _ in } },
                { Deferred.firstSuccess($0).upon { _ in } }, { Deferred.firstResolved($0).upon { _ in } },
                { both($0[0], $0[1], $0[2]).upon { _ in } },
            ] {
                let members = members()
                looking(members.map(\.deferred))
                for member in members { member.fail(Unseen(name: "member")) }
            }
        }
        #expect(reports.isEmpty)
    }

    @Test func list_isReported_whenNobodyLooksAtIt() async {
        let reports = await reported {
            _ = Deferred.all([Deferred<Int, any Error>.failed(Unseen(name: "list"))])
        }
        #expect(reports == ["list"])
    }

    @Test func internalWaiters_doNotLook() async {
        let reports = await reported {
            let clock = ManualClock()
            let promise = Promise<Int, any Error>()
            var limited: Deferred<Int, any Error>? = promise.deferred.timeout(.seconds(1), clock: clock)
            await clock.slept(1)
            promise.fail(Unseen(name: "after a timeout link"))
            limited = nil
            _ = limited
            let queue = WorkQueue(concurrency: 1)
            _ = queue.add { Deferred<Int, any Error>.failed(Unseen(name: "in a queue")) }
            await queue.drained()
        }
        #expect(reports.contains("in a queue"))
    }

    @Test func isResolved_doesNotLook() async {
        let reports = await reported {
            let failed = Deferred<Int, any Error>.failed(Unseen(name: "polled"))
            #expect(failed.isResolved)
            let promise = Promise<Int, any Error>()
            #expect(!promise.deferred.isResolved)
        }
        #expect(reports == ["polled"])
    }
}
