import Dispatch
import Glibc
import Synchronization
import Testing

@testable import JobEngine

@Suite struct EngineExecutorTests {
    private final class Log: Sendable {
        private let entries = Mutex<[String]>([])
        func add(_ entry: String) { entries.withLock { $0.append(entry) } }
        var all: [String] { entries.withLock(\.self) }
    }

    /// Waits until the executor has done what was submitted before.
    private func settled(_ executor: EngineExecutor) async {
        await withCheckedContinuation { continuation in executor.submit { continuation.resume() } }
    }

    @Test func runNow_runsOnTheCallingThread_whenNothingRuns() {
        let (executor, log) = (EngineExecutor(), Log())
        let caller = pthread_self()
        executor.runNow({ log.add(pthread_self() == caller ? "here" : "elsewhere") }, further: 0)
        #expect(log.all == ["here"])
    }

    @Test func runNow_waitsItsTurn_whenSomethingRuns() async {
        let (executor, log) = (EngineExecutor(), Log())
        executor.runNow(
            {
                executor.runNow({ log.add("inner") }, further: 9)
                executor.submit { log.add("last") }
                log.add("outer")
            }, further: 0)
        await settled(executor)
        #expect(log.all == ["outer", "inner", "last"])
    }

    @Test func runNow_leavesTheRestToTheQueue_afterWhatItMayRun() async {
        let (executor, log) = (EngineExecutor(), Log())
        let caller = pthread_self()
        @Sendable func step(_ left: Int) {
            log.add(pthread_self() == caller ? "here" : "elsewhere")
            if left > 0 { executor.submit { step(left - 1) } }
        }
        executor.runNow({ step(4) }, further: 2)
        await settled(executor)
        #expect(log.all == ["here", "here", "here", "elsewhere", "elsewhere"])
    }

    @Test func work_runsOneAtATimeAndOnce_whoeverBringsIt() async {
        let executor = EngineExecutor()
        // Not guarded by anything but the executor.
        nonisolated(unsafe) var count = 0
        await withTaskGroup { tasks in
            for number in 0..<8 {
                tasks.addTask {
                    for round in 0..<2_000 {
                        if (number + round).isMultiple(of: 2) {
                            executor.runNow(
                                {
                                    executor.checkIsolated(); count += 1
                                }, further: round % 3)
                        } else {
                            executor.submit {
                                executor.checkIsolated(); count += 1
                            }
                        }
                    }
                }
            }
        }
        await settled(executor)
        #expect(count == 16_000)
    }
}
