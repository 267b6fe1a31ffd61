import DeferredKit
import Dispatch
import Glibc
import JobCore
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

    @Test func submitOn_leavesTheWorkToTheExecutor() async {
        let (executor, caller, log) = (EngineExecutor(), HeldExecutor(), Log())
        executor.submit(on: caller) { log.add("first") }
        executor.submit(on: caller) { log.add("second") }
        #expect(log.all == [])
        // It was asked once, for both.
        #expect(caller.runAll() == 1)
        #expect(log.all == ["first", "second"])
        executor.submit(on: caller) { log.add("third") }
        #expect(caller.runAll() == 1)
        #expect(log.all == ["first", "second", "third"])
    }

    @Test func submitOn_delaysNobody_whenItsExecutorIsSlow() async {
        let (executor, caller, log) = (EngineExecutor(), HeldExecutor(), Log())
        executor.submit(on: caller) { log.add("first") }
        executor.runNow({ log.add("second") }, further: 0)
        #expect(log.all == ["first", "second"])
        executor.submit(on: caller) { log.add("third") }
        // The queue runs it.
        await settled(executor)
        #expect(log.all == ["first", "second", "third"])
        _ = caller.runAll()
        #expect(log.all.count == 3)
        executor.submit(on: caller) { log.add("fourth") }
        _ = caller.runAll()
        #expect(log.all.last == "fourth")
    }

    @Test func submitOn_leavesTheRestToTheQueue_afterWhatItMayRun() async {
        let (executor, caller, log) = (EngineExecutor(), HeldExecutor(), Log())
        let here = pthread_self()
        @Sendable func step(_ left: Int) {
            log.add(pthread_self() == here ? "here" : "elsewhere")
            if left > 0 { executor.submit { step(left - 1) } }
        }
        executor.submit(on: caller) { step(EngineExecutor.mostFurther + 1) }
        _ = caller.runAll()
        await settled(executor)
        #expect(log.all == Array(repeating: "here", count: EngineExecutor.mostFurther + 1) + ["elsewhere"])
    }

    @Test func runNow_leavesAllToTheQueue_whenMuchWaits() async {
        let (executor, caller, log) = (EngineExecutor(), HeldExecutor(), Log())
        let here = pthread_self()
        for number in 0..<EngineExecutor.mostFurther + 1 {
            executor.submit(on: caller) { log.add(pthread_self() == here ? "here" : "\(number)") }
        }
        executor.runNow({ log.add(pthread_self() == here ? "here" : "last") }, further: 0)
        await settled(executor)
        #expect(log.all == (0..<EngineExecutor.mostFurther + 1).map { "\($0)" } + ["last"])
    }

    @Test func user_waitsForOneOfAnothers_howeverManyThereAre() async {
        let (executor, log) = (EngineExecutor(), Log())
        executor.runNow(
            {
                for number in 0..<1000 { executor.submit(of: 1) { log.add("a\(number)") } }
                executor.submit { log.add("own") }
                for number in 0..<2 { executor.runNow({ log.add("b\(number)") }, of: 2, further: 0) }
                executor.submit(of: 3) { log.add("c") }
            }, further: 0)
        await settled(executor)
        // The last of all may still be running.
        await withCheckedContinuation { continuation in executor.submit(of: 1) { continuation.resume() } }
        #expect(log.all.prefix(7) == ["own", "a0", "b0", "c", "a1", "b1", "a2"])
        #expect(log.all.count == 1004)
        #expect(log.all.filter { $0.hasPrefix("a") } == (0..<1000).map { "a\($0)" }, "each in the order of the calls")
    }

    @Test func ownWork_andRequests_doNotStarveEachOther() async {
        let (executor, log) = (EngineExecutor(), Log())
        executor.runNow(
            {
                for _ in 0..<1000 { executor.submit { log.add("own") } }
                for _ in 0..<1000 { executor.submit(of: 1) { log.add("a") } }
            }, further: 0)
        await withCheckedContinuation { continuation in executor.submit(of: 1) { continuation.resume() } }
        #expect(log.all.prefix(90).count { $0 == "a" } == 10)
        #expect(log.all.count == 2000)
    }

    @Test func work_runsOneAtATimeAndOnce_whoeverBringsIt() async {
        let executor = EngineExecutor()
        let other: any CallbackExecutor = EngineExecutor()
        // Not guarded by anything but the executor.
        nonisolated(unsafe) var count = 0
        await withTaskGroup { tasks in
            for number in 0..<8 {
                tasks.addTask {
                    for round in 0..<2_000 {
                        if (number + round).isMultiple(of: 3) {
                            executor.submit(on: number.isMultiple(of: 2) ? InlineExecutor() : other) {
                                executor.checkIsolated(); count += 1
                            }
                        } else if (number + round).isMultiple(of: 2) {
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

    // MARK: - What takes long

    /// Time goes on when a piece says so.
    private final class Clock: Sendable {
        private let time = Mutex<Int64>(0)
        private let pauses = Mutex<[(end: Int64, body: @Sendable () -> Void)]>([])
        var now: Int64 { time.withLock(\.self) }
        var pauseCount: Int { pauses.withLock(\.count) }

        func executor(isShared: Bool = true) -> EngineExecutor {
            let executor = EngineExecutor(
                now: { self.now },
                after: { pause, body in
                    self.pauses.withLock { [end = self.now + pause] in $0.append((end, body)) }
                })
            executor.connected(isShared ? .several : .none)
            return executor
        }

        func advance(_ nanoseconds: Int64) {
            time.withLock { $0 += nanoseconds }
            let now = now
            let due = pauses.withLock { pauses in
                defer { pauses.removeAll { $0.end <= now } }
                return pauses.filter { $0.end <= now }
            }
            for pause in due { pause.body() }
        }
    }

    @Test func longWork_runsOnTheQueue_whoeverBringsIt() async {
        let executor = EngineExecutor()
        for isEntered in [true, false] {
            // The queue may have the same thread once that has gone back from here.
            let caller = Mutex<pthread_t?>(pthread_self())
            let ranHere = await withCheckedContinuation { continuation in
                let submit = { @Sendable in
                    executor.submitLong(of: 1) {
                        let thread = pthread_self()
                        continuation.resume(returning: caller.withLock { $0 == thread })
                    }
                }
                if isEntered { executor.runNow(submit, further: 9) } else { submit() }
                caller.withLock { $0 = nil }
            }
            #expect(!ranHere)
        }
    }

    @Test func longWork_standsBehindOther_andGoesOnAllTheSame() async {
        let (executor, log) = (EngineExecutor(), Log())
        await withCheckedContinuation { continuation in
            executor.submit {
                for number in 0..<3 { executor.submitLong(of: 1) { log.add("a\(number)") } }
                executor.submitLong(of: 2) { log.add("b") }
                for _ in 0..<100 { executor.submit { log.add("own") } }
                executor.submitLong(of: 2) { continuation.resume() }
            }
        }
        let long = log.all.enumerated().filter { $0.element != "own" }
        #expect(long.map(\.element) == ["a0", "b", "a1", "a2"] || long.map(\.element) == ["a0", "b", "a1"])
        #expect(long[0].offset >= 8, "others come first")
        #expect(long[1].offset - long[0].offset > 8 && long[2].offset < 100, "and in between")
    }

    @Test func whoTookLong_pauses_whileOthersAreThere() async {
        let clock = Clock()
        let (executor, log) = (clock.executor(), Log())
        executor.submitLong(of: 1) {
            clock.advance(2_000_000)
            log.add("a0")
        }
        executor.submitLong(of: 1) { log.add("a1") }
        await done(executor, 2)
        await settled(executor)
        #expect(log.all == ["a0"] && clock.pauseCount == 1)
        // What is short of the same user does not wait.
        executor.runNow({ log.add("short") }, of: 1, further: 0)
        clock.advance(5_000_000)
        await done(executor, 2)
        #expect(log.all == ["a0", "short"])
        // What it has in the store makes it longer.
        executor.took(1_000_000, of: 1)
        #expect(clock.pauseCount == 1)
        clock.advance(1_000_000)
        await done(executor, 2)
        #expect(log.all == ["a0", "short"] && clock.pauseCount == 1)
        clock.advance(2_000_000)
        await done(executor, 1)
        #expect(log.all == ["a0", "short", "a1"] && clock.pauseCount == 0)
    }

    /// The queue is asked for a long piece, and finds that its user pauses meanwhile.
    @Test func otherWork_goesOn_whereAPauseTookTheQueueNothingToDo() async {
        let clock = Clock()
        let (executor, log) = (clock.executor(), Log())
        await withCheckedContinuation { continuation in
            executor.queue.async {
                executor.submitLong(of: 1) { log.add("long") }
                executor.took(1_000_000, of: 1)
                continuation.resume()
            }
        }
        await withCheckedContinuation { continuation in executor.queue.async { continuation.resume() } }
        executor.runNow({ log.add("now") }, further: 0)
        await settled(executor)
        #expect(log.all == ["now"])
        clock.advance(3_000_000)
        await done(executor, 1)
        #expect(log.all == ["now", "long"])
    }

    /// What a user has in the store makes their pause longer, and not endless.
    @Test func pause_ends_howeverMuchIsStoredMeanwhile() async {
        let clock = Clock()
        let (executor, log) = (clock.executor(), Log())
        executor.took(100_000_000, of: 1)
        executor.submitLong(of: 1) { log.add("long") }
        for _ in 0..<9 {
            clock.advance(100_000_000)
            executor.took(100_000_000, of: 1)
        }
        await done(executor, 2)
        #expect(log.all == [])
        clock.advance(100_000_000)
        await done(executor, 1)
        #expect(log.all == ["long"])
    }

    @Test func whatWaits_isRunBeforeTheEnd_whoeverPauses() async {
        let clock = Clock()
        let (executor, log) = (clock.executor(), Log())
        executor.took(1_000_000, of: 1)
        for number in 0..<3 { executor.submitLong(of: 1) { log.add("a\(number)") } }
        await withCheckedContinuation { continuation in
            executor.submit {
                executor.runAllLong()
                log.add("end")
                continuation.resume()
            }
        }
        #expect(log.all == ["a0", "a1", "a2", "end"])
    }

    @Test func nobodyPauses_alone_orForLittle() async {
        let clock = Clock()
        for (isShared, time): (Bool, Int64) in [(false, 9_000_000_000), (true, 499_999)] {
            let executor = clock.executor(isShared: isShared)
            executor.submitLong(of: 1) { clock.advance(time) }
            await done(executor, 1)
            executor.took(time, of: 1)
            #expect(clock.pauseCount == 0)
        }
    }

    @Test func noPause_isLongerThanASecond() async {
        let clock = Clock()
        let executor = clock.executor()
        executor.submitLong(of: 1) { clock.advance(60_000_000_000) }
        executor.submitLong(of: 1) {}
        await done(executor, 2)
        await settled(executor)
        #expect(clock.pauseCount == 1)
        clock.advance(1_000_000_000)
        await done(executor, 1)
    }

    /// Waits until `user` has had its long pieces, where it does not pause.
    private func done(_ executor: EngineExecutor, _ user: UInt32) async {
        await withCheckedContinuation { continuation in executor.submitLong(of: user) { continuation.resume() } }
    }

    /// Runs nothing before it is told to.
    private final class HeldExecutor: CallbackExecutor {
        private let jobs = Mutex<[@Sendable () -> Void]>([])

        func submit(_ job: @escaping @Sendable () -> Void) { jobs.withLock { $0.append(job) } }

        /// Gives the number of jobs that there were.
        func runAll() -> Int {
            let jobs = jobs.withLock { jobs in
                defer { jobs = [] }
                return jobs
            }
            for job in jobs { job() }
            return jobs.count
        }
    }
}
