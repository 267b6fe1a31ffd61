import JobCore
import JobModel
import Synchronization
import Testing

@testable import JobEngine

@Suite struct StateBackupTests {
    /// A connection that asks for a backup and reads nothing kept all others from making one, as long as it was open.
    @Test func backup_isGivenUp_whenNobodyReadsOfIt_andAnotherIsAskedFor() async throws {
        let seconds = Mutex<Int64>(1)
        let clock = EngineClock(
            now: {
                let now = seconds.withLock(\.self)
                return CoreTime(
                    wall: Timestamp(milliseconds: 1_800_000_000_000 + now * 1000), monotonic: now * 1_000_000_000)
            }, random: { 0 })
        func pass(_ passed: Int64) { seconds.withLock { $0 += passed } }
        try await AskingTests.withEngine(clock: clock) { engine in
            func expectRefusal(_ sourceLocation: SourceLocation = #_sourceLocation) async {
                let refusal = await #expect(throws: StoreError.self, sourceLocation: sourceLocation) {
                    try await engine.backUp()
                }
                #expect(refusal?.code == .locked, sourceLocation: sourceLocation)
            }
            let silent = try await engine.backUp()
            pass(59)
            await expectRefusal()
            let piece = try await engine.read(silent, offset: 0, length: 6, for: 0)
            #expect(piece.bytes == Array("SQLite".utf8))
            pass(59)
            await expectRefusal()
            pass(1)
            let other = try await engine.backUp()
            await #expect(throws: StateBackup.Failure.givenUp) {
                try await engine.read(silent, offset: 6, length: 6, for: 0)
            }
            // One that is gone does not end another's.
            silent.end()
            await expectRefusal()
            pass(1000)
            // Nobody else wants one.
            #expect(try await engine.read(other, offset: 0, length: 6, for: 0).bytes == piece.bytes)
            withExtendedLifetime((silent, other)) {}
        }
    }
}
