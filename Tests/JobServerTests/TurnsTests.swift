import JobProtocol
import NIOCore
import Synchronization
import Testing

@testable import JobServer

@Suite struct TurnsTests {
    private final class Inside: Sendable {
        let count = Mutex(0)
    }

    /// How many of 100 are inside a gate at once, where each of them counts as `size`.
    private func room(_ gate: Gate, _ size: Int = 1) async -> Int {
        await withTaskGroup(of: Void.self) { group in
            let inside = Inside()
            for _ in 0..<100 {
                group.addImmediateTask {
                    await gate.enter(size)
                    inside.count.withLock { $0 += 1 }
                }
            }
            let count = inside.count.withLock { $0 }
            for _ in 0..<100 { gate.leave(size) }
            await group.waitForAll()
            return count
        }
    }

    @Test func calls_areFewer_whileOthersAreThere() async {
        for (turns, most) in [(Turns { false }, 8), (Turns { true }, 1)] {
            #expect(await room(turns.calls) == most)
            #expect(await room(turns.fileCalls) == most)
            #expect(await room(turns.longLines) == 1)
        }
    }

    @Test func calls_thatMayWaitForFiles_haveTurnsOfTheirOwn() {
        let turns = Turns { true }
        for method in [MethodName.jobCancel, .jobRetry, .jobRemove, .jobResult, .scheduleSet, .serverStats] {
            #expect(turns.gate(of: method) === turns.fileCalls)
        }
        for method in [MethodName.jobGet, .jobList, .jobWait, .jobWatch, .jobUnwatch, .scheduleRun] {
            #expect(turns.gate(of: method) === turns.calls)
        }
        #expect(turns.gate(of: .serverBackup) === nil)
    }

    @Test func submissions_areUnbounded_whileNobodyElseIsThere() async {
        let turns = Turns { false }
        #expect(turns.largestGroup == .max)
        #expect(await room(turns.submissions, 1_000_000) == 100)
    }

    @Test(arguments: [(0, 32), (1000, 32), (10_000, 10), (100_000, 1), (1 << 20, 1)])
    func submissions_areFewerTheLargerTheyAre_whileOthersAreThere(_ bytes: Int, _ most: Int) async {
        let turns = Turns { true }
        #expect(turns.largestGroup == Turns.submissionGroup)
        #expect(await room(turns.submissions, Turns.size(ofSubmission: bytes)) == most)
    }

    @Test func pauses_areLonger_whereSomebodyAsksForSeveralThingsAtOnce() async {
        let turns = Turns { true }
        await turns.calls.enter()
        #expect(turns.pause(after: .jobList, of: .milliseconds(7)) == .milliseconds(7), "that is its own")
        await turns.longLines.enter()
        await turns.submissions.enter()
        #expect(turns.pause(after: .jobList, of: .milliseconds(7)) == .milliseconds(21))
        #expect(turns.pause(after: .jobList, of: .milliseconds(70)) == .milliseconds(100))
        turns.longLines.leave()
        #expect(turns.pause(after: .jobList, of: .milliseconds(7)) == .milliseconds(14))
    }

    @Test func pauses_areByWhatWasDone_whileOthersAreThere() {
        let (alone, shared) = (Turns { false }, Turns { true })
        let large = Turns.size(ofSubmission: 1 << 20)
        #expect(shared.pause(afterReading: .milliseconds(7)) == .milliseconds(14))
        #expect(shared.pause(afterReading: .seconds(7)) == .milliseconds(100), "others can have had the processors")
        #expect(shared.pause(after: .jobList, of: .milliseconds(7)) == .milliseconds(7))
        #expect(shared.pause(after: .jobGet, of: .milliseconds(7)) == nil)
        #expect(shared.pause(afterSubmitting: large, .milliseconds(7)) == .milliseconds(14))
        let group = Turns.submissionGroup
        #expect(shared.pause(afterSubmitting: group, .milliseconds(7)) == nil, "it takes as long as an fsync")
        #expect(alone.pause(afterReading: .milliseconds(7)) == nil)
        #expect(alone.pause(after: .jobList, of: .milliseconds(7)) == nil)
        #expect(alone.pause(afterSubmitting: large, .milliseconds(7)) == nil)
    }

    @Test func connections_beginOneAfterTheOther_withAPause_whileOthersAreThere() async {
        let (alone, shared) = (Turns { false }, Turns { true })
        #expect(await room(shared.newConnections) == 1)
        #expect(await room(alone.newConnections) == 100)
        #expect(shared.pauseAfterConnecting == .milliseconds(2) && alone.pauseAfterConnecting == nil)
    }
}
