import JobModel
import NIOCore
import NIOPosix
import Synchronization
import Testing
import TestOrigin

@testable import DataSources

/// How much memory documents take at once.
@Suite struct DocumentBudgetTests {
    /// The clock of the transfers.
    private static let loop: any EventLoop = MultiThreadedEventLoopGroup.singleton.next()

    /// Asks for room and tells once there is some.
    private func lease(
        _ budget: DocumentBudget, _ bytes: Int, for user: UInt32 = 1,
        _ control: TransferControl = TransferControl(Self.loop)
    ) -> Task<Lease?, Never> {
        Task { try? await budget.lease(bytes, for: user, control) }
    }

    @Test func document_hasItsTurn_whenThereIsRoom() async throws {
        let budget = DocumentBudget(limit: 100, perUser: 100)
        let first = try await budget.lease(80, for: 1, TransferControl(Self.loop))
        #expect(budget.used == 80)
        let second = lease(budget, 30)
        await budget.waiting(1)
        first.shrink(to: 70)
        #expect(await second.value != nil)
        withExtendedLifetime(first) {}
    }

    @Test func documentThatIsTooLarge_hasItsTurn_alone() async throws {
        let budget = DocumentBudget(limit: 100, perUser: 100)
        var small: Lease? = try await budget.lease(1, for: 1, TransferControl(Self.loop))
        let large = lease(budget, 1000, for: 2)
        await budget.waiting(1)
        #expect(small != nil)
        small = nil
        #expect(await large.value != nil)
        #expect(budget.used == 1000)
    }

    @Test func users_haveTheirTurns_whoeverAskedFirst() async throws {
        let budget = DocumentBudget(limit: 100, perUser: 60)
        let first = try await budget.lease(60, for: 1, TransferControl(Self.loop))
        let next = lease(budget, 40, for: 1)
        await budget.waiting(1)
        // Its share is used up; another's is not.
        let other = try await budget.lease(40, for: 2, TransferControl(Self.loop))
        #expect(budget.used == 100)
        first.shrink(to: 0)
        #expect(await next.value != nil)
        withExtendedLifetime(other) {}
    }

    @Test func transfer_waitsNoLonger_onceItIsInterrupted() async throws {
        let budget = DocumentBudget(limit: 100, perUser: 100)
        var first: Lease? = try await budget.lease(100, for: 1, TransferControl(Self.loop))
        let control = TransferControl(Self.loop)
        let second = lease(budget, 100, control)
        await budget.waiting(1)
        control.interrupt(JobError(.timeout, "It took too long."))
        #expect(await second.value == nil && first != nil)
        first = nil
        #expect(budget.used == 0)
    }

    @Test func document_isTooLarge_whenItsValuesAre() async throws {
        let tiny = "[" + String(repeating: #"{"":0},"#, count: 40_000) + "5]"
        try await Workbench.run(serving: ["/tiny": .json(tiny)], { $0.limits.body = 1 << 20 }) { origin, bench in
            let url = JSON.string(origin.url("/tiny"))
            let error = try await bench.failure(["type": "json", "url": url])
            #expect(error.kind == .tooLarge && !error.isRetryable)
            // What is not selected takes no memory.
            #expect(try await bench.result(["type": "json", "url": url, "select": "/40000"]) == 5)
            #expect(bench.bytes(of: bench.bodyPath) == nil, "nothing stays behind")
        }
    }
}

extension DocumentBudget {
    fileprivate var used: Int { state.withLock(\.used) }

    /// Returns once so many wait.
    fileprivate func waiting(_ count: Int) async {
        while state.withLock({ $0.waiting.count }) < count { await Task.yield() }
    }
}
