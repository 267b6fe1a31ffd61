import Dispatch
import Glibc
import Synchronization
import Testing

@testable import DeferctlCommands

/// Ctrl-C, as this process gets it itself.
@Suite(.serialized) struct InterruptionTests {
    /// Sends this process a SIGINT.
    private static func press() { kill(getpid(), SIGINT) }

    @Test func secondCtrlC_cancels_andTheWaitGoesOn() async throws {
        let (cancels, cancel) = AsyncStream.makeStream(of: Void.self)
        let (hints, hint) = AsyncStream.makeStream(of: Void.self)
        let interruption = Interruption(farewell: "Bye.", patience: .seconds(1000)) { _ in hint.yield() }
        interruption.set(hint: "Again?") { cancel.yield() }
        let value = try await interruption.run {
            Self.press()
            for await _ in hints { break }
            Self.press()
            for await _ in cancels { break }
            return 3
        }
        #expect(value == 3)
    }

    @Test func firstCtrlC_detaches_afterAMoment() async throws {
        let isCancelled = Mutex(false)
        let interruption = Interruption(farewell: "Bye.", patience: .milliseconds(1)) { _ in }
        interruption.set(hint: "Again?") { isCancelled.withLock { $0 = true } }
        await #expect(throws: CommandFailure(.tryAgain, "Bye.")) {
            try await interruption.run {
                Self.press()
                try await Task.sleep(for: .seconds(1000))
            }
        }
        #expect(isCancelled.withLock { $0 } == false)
    }
}
