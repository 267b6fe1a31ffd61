import DequeModule
import NIOCore
import Synchronization

/// Shares one event loop among users, so that the lines of one do not make the others' sockets wait.
///
/// An event loop looks at its sockets only when no task is left that can run at once, and a connection with many lines always
/// has one. So each user has a share of work; whoever has used it up waits until the loop was at rest for a moment, and
/// nothing here was worked on meanwhile. Whoever is alone never waits.
final class LoopScheduler: Sendable {
    /// Bytes of lines and of answers, and what a line counts beside its bytes: about an eighth of a millisecond.
    static let share = 16 << 10
    static let lineWork = 256
    /// How long a loop has to be at rest. It looks at its sockets within a few microseconds.
    static let rest = TimeAmount.microseconds(100)
    /// Connections of one user that go on after a rest, as each of them takes time even if it has little to do.
    static let mostAfterRest = 8

    struct Waiter: Sendable {
        let user: UInt32
        let work: Int
        let goOn: @Sendable () -> Void
    }

    /// Who has had how much, and who waits.
    struct State {
        /// What each user's lines have taken since the last rest.
        fileprivate var work: [UInt32: Int] = [:]
        /// By user, as whoever comes next is looked for after each rest, however many one user has waiting.
        fileprivate(set) var waiting: [UInt32: Deque<(number: Int, waiter: Waiter)>] = [:]
        /// How many have waited, which numbers them.
        fileprivate var waited = 0
        /// When something was last worked on: when that began, or ended as far as it was told.
        fileprivate var lastWork = NIODeadline.uptimeNanoseconds(0)
        fileprivate var isTimerSet = false
    }

    private let state = Mutex(State())
    private let now: @Sendable () -> NIODeadline
    private let schedule: @Sendable (TimeAmount, @escaping @Sendable () -> Void) -> Void

    /// `schedule` calls back on the event loop after a time, also where the loop ends before.
    init(
        now: @escaping @Sendable () -> NIODeadline,
        schedule: @escaping @Sendable (TimeAmount, @escaping @Sendable () -> Void) -> Void
    ) {
        self.now = now
        self.schedule = schedule
    }

    convenience init(_ loop: any EventLoop) {
        self.init(now: { loop.now }) { time, done in
            loop.scheduleTask(in: time) {}.futureResult.whenComplete { _ in done() }
        }
    }

    /// Returns when it is this user's turn to work on so many bytes.
    func turn(of user: UInt32, work: Int) async {
        let mayGoOn = state.withLock { $0.mayGoOn(user, work, at: now()) }
        if mayGoOn { return }
        await withCheckedContinuation { continuation in
            let mustSetTimer = state.withLock { state in
                state.wait(Waiter(user: user, work: work) { continuation.resume() })
            }
            if mustSetTimer { setTimer(Self.rest) }
        }
    }

    /// What somebody had a turn for is done so far. Else a piece that takes longer than a rest would count as one.
    func worked() { state.withLock { $0.worked(until: now()) } }

    private func setTimer(_ time: TimeAmount) {
        schedule(time) { self.fire() }
    }

    private func fire() {
        let (next, time) = state.withLock { $0.timerFired(at: now()) }
        if let time { setTimer(time) }
        for waiter in next { waiter.goOn() }
    }
}

extension LoopScheduler.State {
    /// Whether a user has some of their share left; if so, this is part of it.
    mutating func mayGoOn(_ user: UInt32, _ bytes: Int, at now: NIODeadline) -> Bool {
        // Nothing was done for a while, so the loop has looked at its sockets.
        if now - lastWork >= LoopScheduler.rest { work.removeAll(keepingCapacity: true) }
        lastWork = now
        guard work[user, default: 0] < LoopScheduler.share else { return false }
        work[user, default: 0] += bytes
        return true
    }

    mutating func worked(until now: NIODeadline) { lastWork = now }

    /// Adds one who waits; true where a timer is to be set.
    mutating func wait(_ waiter: LoopScheduler.Waiter) -> Bool {
        waited += 1
        waiting[waiter.user, default: []].append((waited, waiter))
        defer { isTimerSet = true }
        return !isTimerSet
    }

    /// Those whose turn it is, in the order they came, and when to look again.
    mutating func timerFired(at now: NIODeadline) -> (next: [LoopScheduler.Waiter], again: TimeAmount?) {
        let rested = now - lastWork
        if rested < LoopScheduler.rest { return ([], LoopScheduler.rest - rested) }
        work.removeAll(keepingCapacity: true)
        lastWork = now
        var next: [(number: Int, waiter: LoopScheduler.Waiter)] = []
        for user in Array(waiting.keys) {
            for _ in 0..<LoopScheduler.mostAfterRest {
                guard work[user, default: 0] < LoopScheduler.share, let first = waiting[user]?.popFirst() else { break }
                work[user, default: 0] += first.waiter.work
                next.append(first)
            }
            if waiting[user]?.isEmpty ?? true { waiting[user] = nil }
        }
        next.sort { $0.number < $1.number }
        isTimerSet = !waiting.isEmpty
        return (next.map(\.waiter), isTimerSet ? LoopScheduler.rest : nil)
    }
}
