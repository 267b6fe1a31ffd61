import JobModel
import Synchronization
import Testing

@testable import DataSources

/// Which of a download's connections writes next.
@Suite struct WriteOrderTests {
    private let order = WriteOrder()

    /// Whether nobody waits whose bytes come before those at `offset`; changes nothing.
    private func isFirst(_ offset: Int64) -> Bool {
        var isFirst = false
        _ = order.mayGoOn(at: offset) {
            isFirst = true
            return true
        }
        return isFirst
    }

    /// Begins a turn at each offset, one after the other, and returns once all wait; what ends is told to `log`.
    private func wait(
        at offsets: [Int64], _ control: TransferControl, in group: inout ThrowingTaskGroup<Void, any Error>,
        _ body: @escaping @Sendable (Int64) -> Void
    ) async {
        for offset in offsets {
            group.addTask { [order] in
                try await order.begin(at: offset, control) { false }
                body(offset)
                order.end { false }
            }
            // Each is behind those before it, so only its own waiting is in front of what is right behind it.
            while isFirst(offset + 1) { await Task.yield() }
        }
    }

    @Test func foremost_isNext_whoeverCameFirst() async throws {
        let log = Mutex<[Int64]>([])
        try await order.begin(at: 0, TransferControl()) { false }
        try await withThrowingTaskGroup(of: Void.self) { group in
            await wait(at: [300, 200, 100], TransferControl(), in: &group) { offset in
                log.withLock { $0.append(offset) }
            }
            #expect(order.mayGoOn(at: 50) { false })
            #expect(!order.mayGoOn(at: 150) { false })
            order.end { false }
            try await group.waitForAll()
        }
        #expect(log.withLock(\.self) == [100, 200, 300])
    }

    @Test func longestWaiting_isNext_afterManyTurnsOfOthers() async throws {
        let log = Mutex<[Int64]>([])
        try await order.begin(at: 0, TransferControl()) { false }
        try await withThrowingTaskGroup(of: Void.self) { group in
            await wait(at: [300, 200], TransferControl(), in: &group) { offset in log.withLock { $0.append(offset) } }
            var turns: Int64 = 1
            while order.mayGoOn(at: 0, unless: { false }) { turns += 1 }
            #expect(turns == 15)
            order.end { false }
            try await group.waitForAll()
        }
        #expect(log.withLock(\.self) == [300, 200])
    }

    private final class Pause: Sendable {
        private let state = Mutex(true)
        var isOn: Bool { state.withLock { $0 } }
        func end() { state.withLock { $0 = false } }
    }

    @Test func nobodyWrites_whilePaused() async throws {
        let pause = Pause()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [order, pause] in
                try await order.begin(at: 0, TransferControl()) { pause.isOn }
                #expect(!pause.isOn)
            }
            while isFirst(1) { await Task.yield() }
            order.goOn { true }
            pause.end()
            order.goOn { false }
            try await group.waitForAll()
        }
        #expect(order.mayGoOn(at: 0) { false })
        #expect(!order.mayGoOn(at: 0) { true })
    }

    @Test func waitingConnection_endsAtOnce_whereTheTransferIsStopped() async throws {
        let control = TransferControl()
        try await order.begin(at: 0, TransferControl()) { false }
        await withThrowingTaskGroup(of: Void.self) { group in
            await wait(at: [100], control, in: &group) { _ in Issue.record("It was its turn.") }
            control.interrupt(JobError(.timeout, "It took too long."))
            await #expect(throws: JobError.self) { try await group.waitForAll() }
        }
        // It is nobody's turn now, so it can be the next one's.
        order.end { false }
        try await order.begin(at: 200, TransferControl()) { false }
    }
}
