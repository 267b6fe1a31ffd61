import JobModel
import NIOCore
import Synchronization
import Testing

@testable import DataSources

/// Which of a download's connections writes next.
@Suite struct WriteOrderTests {
    private final class Clock: Sendable {
        private let time = Mutex(NIODeadline.uptimeNanoseconds(0))
        var now: NIODeadline { time.withLock(\.self) }
        func advance(by amount: TimeAmount) { time.withLock { $0 = $0 + amount } }
    }

    private let clock = Clock()
    private let order: WriteOrder

    init() { order = WriteOrder { [clock] in clock.now } }

    /// Begins a turn at each offset, one after the other, and returns once all wait; what ends is told to `log`.
    private func wait(
        at offsets: [Int64], _ control: TransferControl, in group: inout ThrowingTaskGroup<Void, any Error>,
        _ body: @escaping @Sendable (Int64) -> Void
    ) async {
        for offset in offsets {
            group.addTask { [order] in
                try await order.begin(at: offset, control)
                body(offset)
                order.end()
            }
            // Each is behind those before it, so only its own waiting is in front of what is right behind it.
            while order.mayGoOn(at: offset + 1) { await Task.yield() }
        }
    }

    @Test func foremost_isNext_whoeverCameFirst() async throws {
        let log = Mutex<[Int64]>([])
        try await order.begin(at: 0, TransferControl())
        try await withThrowingTaskGroup(of: Void.self) { group in
            await wait(at: [300, 200, 100], TransferControl(), in: &group) { offset in
                log.withLock { $0.append(offset) }
            }
            #expect(order.mayGoOn(at: 50))
            #expect(!order.mayGoOn(at: 150))
            order.end()
            try await group.waitForAll()
        }
        #expect(log.withLock(\.self) == [100, 200, 300])
    }

    @Test func longestWaiting_isNext_whenItHasWaitedTooLong() async throws {
        let log = Mutex<[Int64]>([])
        try await order.begin(at: 0, TransferControl())
        try await withThrowingTaskGroup(of: Void.self) { group in
            await wait(at: [300, 100], TransferControl(), in: &group) { offset in log.withLock { $0.append(offset) } }
            clock.advance(by: WriteOrder.patience - .nanoseconds(1))
            #expect(order.mayGoOn(at: 0))
            await wait(at: [50], TransferControl(), in: &group) { offset in log.withLock { $0.append(offset) } }
            clock.advance(by: .nanoseconds(1))
            #expect(!order.mayGoOn(at: 0))
            order.end()
            try await group.waitForAll()
        }
        #expect(log.withLock(\.self) == [300, 100, 50])
    }

    @Test func waitingConnection_endsAtOnce_whereTheTransferIsStopped() async throws {
        let control = TransferControl()
        try await order.begin(at: 0, TransferControl())
        await withThrowingTaskGroup(of: Void.self) { group in
            await wait(at: [100], control, in: &group) { _ in Issue.record("It was its turn.") }
            control.interrupt(JobError(.timeout, "It took too long."))
            await #expect(throws: JobError.self) { try await group.waitForAll() }
        }
        // It is nobody's turn now, so it can be the next one's.
        order.end()
        try await order.begin(at: 200, TransferControl())
    }
}
