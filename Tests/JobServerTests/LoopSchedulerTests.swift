import NIOCore
import Synchronization
import Testing

@testable import JobServer

@Suite struct LoopSchedulerTests {
    /// A loop whose time and timers the test turns.
    private final class Loop: Sendable {
        private struct State {
            var now = NIODeadline.uptimeNanoseconds(1_000_000_000)
            var timers: [(due: NIODeadline, fire: @Sendable () -> Void)] = []
        }

        private let state = Mutex(State())
        private let (timersSet, timerSet) = AsyncStream.makeStream(of: Void.self)
        private let (turns, turn) = AsyncStream.makeStream(of: String.self)
        let scheduler: LoopScheduler

        init() {
            nonisolated(unsafe) weak var weakSelf: Loop?
            scheduler = LoopScheduler(
                now: { weakSelf?.now ?? .now() },
                schedule: { time, done in weakSelf?.set(time, done) })
            weakSelf = self
        }

        var now: NIODeadline { state.withLock(\.now) }

        var timerCount: Int { state.withLock(\.timers.count) }

        private func set(_ time: TimeAmount, _ fire: @escaping @Sendable () -> Void) {
            state.withLock { $0.timers.append(($0.now + time, fire)) }
            timerSet.yield()
        }

        /// Returns once a timer more was set.
        func timerIsSet() async {
            var iterator = timersSet.makeAsyncIterator()
            await iterator.next()
        }

        /// Lets time pass and fires what is due.
        func pass(_ time: TimeAmount) {
            let due = state.withLock { state in
                state.now = state.now + time
                let now = state.now
                defer { state.timers.removeAll { $0.due <= now } }
                return state.timers.filter { $0.due <= now }
            }
            for timer in due { timer.fire() }
        }

        func work(_ name: String, of user: UInt32, _ bytes: Int) async {
            await scheduler.turn(of: user, work: bytes)
            turn.yield(name)
        }

        /// The names of the next ones that had their turn.
        func next(_ count: Int) async -> Set<String> {
            var iterator = turns.makeAsyncIterator()
            var names: Set<String> = []
            for _ in 0..<count { await iterator.next().map { _ = names.insert($0) } }
            return names
        }
    }

    @Test func user_goesOn_withinItsShare() async {
        let loop = Loop()
        for _ in 0..<LoopScheduler.share / LoopScheduler.lineWork {
            await loop.work("a", of: 1, LoopScheduler.lineWork)
        }
        #expect(loop.timerCount == 0)
    }

    @Test func user_waitsForARest_pastItsShare_andOthersDoNot() async {
        let loop = Loop()
        await loop.work("first", of: 1, LoopScheduler.share)
        async let second: Void = loop.work("second", of: 1, 1)
        await loop.timerIsSet()
        await loop.work("other", of: 2, 1)
        #expect(await loop.next(2) == ["first", "other"])
        loop.pass(LoopScheduler.rest)
        #expect(await loop.next(1) == ["second"])
        await second
    }

    @Test func pieceThatTakesLong_isNoRest() {
        var state = LoopScheduler.State()
        let now = NIODeadline.uptimeNanoseconds(1_000_000_000)
        let end = now + .milliseconds(5)
        let begins = state.mayGoOn(1, LoopScheduler.share, at: now)
        state.worked(until: end)
        let goesOn = state.mayGoOn(1, 1, at: end)
        let goesOnAfterARest = state.mayGoOn(1, 1, at: end + LoopScheduler.rest)
        #expect(begins && !goesOn && goesOnAfterARest)
    }

    @Test func rest_beginsAnew_whenSomethingIsWorkedOn() async {
        let loop = Loop()
        await loop.work("first", of: 1, LoopScheduler.share)
        async let second: Void = loop.work("second", of: 1, 1)
        await loop.timerIsSet()
        loop.pass(.microseconds(60))
        // The loop has not been at rest since.
        await loop.work("other", of: 2, 1)
        loop.pass(.microseconds(60))
        #expect(loop.timerCount == 1)
        #expect(await loop.next(2) == ["first", "other"])
        loop.pass(.microseconds(40))
        #expect(await loop.next(1) == ["second"])
        await second
    }

    @Test func share_isNew_afterARest() async {
        let loop = Loop()
        for _ in 0..<3 {
            await loop.work("a", of: 1, LoopScheduler.share)
            loop.pass(LoopScheduler.rest)
        }
        #expect(loop.timerCount == 0)
    }

    @Test func rest_letsSomeOfEachUserGoOn_andTheOthersAfterTheNext() {
        var state = LoopScheduler.State()
        let now = NIODeadline.uptimeNanoseconds(1_000_000_000)
        let most = LoopScheduler.mostAfterRest
        for index in 0..<most + 1 {
            let isFirst = state.wait(LoopScheduler.Waiter(user: 1, work: 1) {})
            #expect(isFirst == (index == 0))
        }
        _ = state.wait(LoopScheduler.Waiter(user: 2, work: LoopScheduler.share) {})
        _ = state.wait(LoopScheduler.Waiter(user: 2, work: 1) {})
        var (next, again) = state.timerFired(at: now)
        #expect(next.map(\.user) == Array(repeating: 1, count: most) + [2] && again == LoopScheduler.rest)
        (next, again) = state.timerFired(at: now + LoopScheduler.rest)
        #expect(next.map(\.user) == [1, 2] && again == nil && state.waiting.isEmpty)
        let isFirst = state.wait(LoopScheduler.Waiter(user: 1, work: 1) {})
        #expect(isFirst)
    }
}
