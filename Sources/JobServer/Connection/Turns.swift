import DequeModule
import Synchronization

/// The turns of one user, over all connections, so that what one user asks for does not make others wait for long.
///
/// Calls that are carried out at once are bounded, the more so while other users are there. Then submissions on their way to
/// the disk are bounded too, as the store writes in the order they come. Long lines are read one at a time. Every turn ends by
/// itself, whatever clients do.
final class Turns: Sendable {
    /// Calls that are carried out at once: what each of them reads is in memory before its answer is counted. The second
    /// bound holds while other users are there: with 2, two threads that read long lists keep two processors busy, and in
    /// `soak floods` another's `job.get` takes 5 to 9 times as long instead of 1.3 to 1.9 times.
    static let mostCalls = 8
    static let mostSharedCalls = 1
    /// Submissions that are handed to the store together, and those that are on their way there, while other users are there:
    /// about as many as take as long as an fsync. With 64 and 128 another's submission takes twice as long and more.
    static let submissionGroup = 16
    static let mostSubmissions = 32

    fileprivate struct State {
        var calls = 0
        var waitingCalls: Deque<CheckedContinuation<Void, Never>> = []
        var isReadingLine = false
        var waitingLines: Deque<CheckedContinuation<Void, Never>> = []
        var submissions = 0
        var waitingSubmissions: Deque<(count: Int, continuation: CheckedContinuation<Void, Never>)> = []
    }

    private let state = Mutex(State())
    let isShared: @Sendable () -> Bool

    /// `isShared` tells whether other users are there.
    init(isShared: @escaping @Sendable () -> Bool) {
        self.isShared = isShared
    }

    // MARK: - Calls

    /// Waits for the turn to carry out a call.
    func beginCall() async {
        let most = isShared() ? Self.mostSharedCalls : Self.mostCalls
        if state.withLock({ $0.beginCall(most) }) { return }
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.beginCall(most) { return true }
                state.waitingCalls.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    func endCall() {
        let most = isShared() ? Self.mostSharedCalls : Self.mostCalls
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            // The next one has the turn now, unless more are at work than may be since another user came.
            if state.calls <= most, let next = state.waitingCalls.popFirst() { return next }
            state.calls -= 1
            return nil
        }
        next?.resume()
    }

    // MARK: - Long lines

    /// Waits for the turn to read a line whose values take up memory and a thread for long.
    func beginLongLine() async {
        if state.withLock({ $0.beginLongLine() }) { return }
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.beginLongLine() { return true }
                state.waitingLines.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    func endLongLine() {
        let next = state.withLock { state in
            let next = state.waitingLines.popFirst()
            // The next one has the turn now.
            if next == nil { state.isReadingLine = false }
            return next
        }
        next?.resume()
    }

    // MARK: - Submissions

    /// The most that go to the store together.
    var largestGroup: Int { isShared() ? Self.submissionGroup : .max }

    /// Waits until so many submissions may go to the store.
    func beginSubmissions(_ count: Int) async {
        let isShared = isShared()
        if state.withLock({ $0.beginSubmissions(count, isShared: isShared) }) { return }
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.beginSubmissions(count, isShared: isShared) { return true }
                state.waitingSubmissions.append((count, continuation))
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    /// So many have their answers.
    func endSubmissions(_ count: Int) {
        let next = state.withLock { state in
            state.submissions -= count
            return state.admitSubmissions()
        }
        for continuation in next { continuation.resume() }
    }
}

extension Turns.State {
    fileprivate mutating func beginCall(_ most: Int) -> Bool {
        guard calls < most else { return false }
        calls += 1
        return true
    }

    fileprivate mutating func beginLongLine() -> Bool {
        defer { isReadingLine = true }
        return !isReadingLine
    }

    /// Nobody overtakes those who wait.
    fileprivate mutating func beginSubmissions(_ count: Int, isShared: Bool) -> Bool {
        guard !isShared || submissions == 0 || (waitingSubmissions.isEmpty && fits(count)) else { return false }
        submissions += count
        return true
    }

    private func fits(_ count: Int) -> Bool { submissions + count <= Turns.mostSubmissions }

    /// Those that may go on now.
    fileprivate mutating func admitSubmissions() -> [CheckedContinuation<Void, Never>] {
        var admitted: [CheckedContinuation<Void, Never>] = []
        while let next = waitingSubmissions.first, submissions == 0 || fits(next.count) {
            waitingSubmissions.removeFirst()
            submissions += next.count
            admitted.append(next.continuation)
        }
        return admitted
    }
}
