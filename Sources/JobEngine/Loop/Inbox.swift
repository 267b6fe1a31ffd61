import Dispatch
import DequeModule
import JobModel
import JobCore
import Synchronization

/// What waits for the engine, from any thread: each user has a queue of its own, and so has the engine itself. Users have their
/// turns one after the other.
final class Inbox: Sendable {
    struct Entry: Sendable {
        /// About how many bytes it brings into a round.
        let size: Int
        /// Work for the engine's thread.
        let body: @Sendable (EngineLoop) -> Void

        static func task(_ body: @escaping @Sendable (EngineLoop) -> Void) -> Entry { Entry(size: 0, body: body) }

        static func input(_ input: CoreInput) -> Entry { Entry(size: input.size) { $0.feed(input) } }
    }

    /// What a user has of one turn: short requests several, a long one alone.
    private static let inTurn = (entries: 16, bytes: 64 << 10)

    private struct State {
        var queues: [UInt32?: Deque<Entry>] = [:]
        /// Users with something that waits, the next one first.
        var turns: Deque<UInt32?> = []
        var isWaiting = false
    }

    private let state = Mutex(State())
    private let signal = DispatchSemaphore(value: 0)

    /// Adds an entry of `user`; nil stands for the engine itself.
    func put(_ entry: Entry, of user: UInt32?) {
        let mustWake = state.withLock { state in
            if state.queues[user] == nil {
                state.turns.append(user)
                state.queues[user] = []
            }
            state.queues[user]?.append(entry)
            defer { state.isWaiting = false }
            return state.isWaiting
        }
        if mustWake { signal.signal() }
    }

    /// What comes next, in the users' turns: about so many entries and bytes at most.
    func take(entries: Int, bytes: Int) -> [Entry] {
        state.withLock { state in
            var taken: [Entry] = []
            var left = bytes
            while taken.count < entries, left > 0, let user = state.turns.popFirst(),
                var queue = state.queues.removeValue(forKey: user)
            {
                var (count, size) = (0, 0)
                while count < Self.inTurn.entries, size < Self.inTurn.bytes, let entry = queue.popFirst() {
                    taken.append(entry)
                    count += 1
                    size += entry.size
                }
                left -= size
                guard !queue.isEmpty else { continue }
                state.queues[user] = queue
                state.turns.append(user)
            }
            return taken
        }
    }

    /// Waits for an entry, so many milliseconds at most; nil waits for ever. May return early. One thread waits.
    func wait(_ milliseconds: Int64?) {
        let mustWait = state.withLock { state in
            state.isWaiting = state.turns.isEmpty
            return state.isWaiting
        }
        guard mustWait else { return }
        // Longer waits end once in between.
        let limit = milliseconds.map { DispatchTime.now() + .milliseconds(Int(max(0, min($0, 3_600_000)))) }
        _ = signal.wait(timeout: limit ?? .distantFuture)
    }
}

extension CoreInput {
    /// About how many bytes it brings into a round.
    var size: Int {
        switch self {
        case .request(_, let request, _): request.size
        case .prepared(_, .success(let job)): Int(clamping: job.document.size)
        case .run(_, .ended(let end)): end.outcome.blob == nil ? Int(clamping: end.outcome.size) : 0
        case .run(_, .children(let children, _)): children.reduce(0) { $0 + Int(clamping: $1.document.size) }
        case .run(_, .list(let list)): Int(clamping: list.template?.size ?? 0)
        default: 0
        }
    }
}

extension CoreRequest {
    /// What a row that is read or changed counts, by the time that it takes.
    private static let (rowRead, rowChange) = (64, 1024)

    fileprivate var size: Int {
        switch self {
        case .submit(let jobs):
            jobs.reduce(0) { $0 + Int(clamping: $1.document.size + JobRow.fixedSize) + $1.jobs.count * Self.rowRead }
        case .setSchedule(let new): new.spec.count
        case .wait(let jobs): jobs.count * Self.rowRead
        case .watch(let scope, _): if case .jobs(let jobs) = scope.subject { jobs.count * Self.rowRead } else { 0 }
        case .changeAll(let jobs, _, _): jobs.count * Self.rowChange
        default: 0
        }
    }
}
