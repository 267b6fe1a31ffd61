import LoopTasks
import NIOCore
import NIOEmbedded
import NIOPosix
import Testing

@Suite struct LoopClockTests {
    /// The time of this loop stands still.
    @Test func sleep_endsAtOnce_whenItsTimeIsOver() async throws {
        let loop = NIOAsyncTestingEventLoop()
        let clock = LoopClock(loop)
        try await clock.sleep(until: clock.now.advanced(by: .seconds(-1)), tolerance: nil)
        #expect(loop.now == .uptimeNanoseconds(0))
    }

    @Test func sleep_throws_whenTheTaskIsCancelled() async throws {
        let clock = LoopClock(NIOAsyncTestingEventLoop())
        let task = Task { try await clock.sleep(until: clock.now.advanced(by: .seconds(60)), tolerance: nil) }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}
