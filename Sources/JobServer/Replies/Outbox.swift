import JobProtocol
import NIOCore
import Synchronization

/// Lines that wait to be sent to one client: answers and states in order and within a bound, then progress.
///
/// A closed outbox drops everything. Of the progress of a job only the latest waits, so a slow client takes no more memory than
/// a fast one.
final class Outbox: Sendable {
    private struct State {
        /// The bytes that may wait.
        var limit: Int
        /// What waits.
        var lines = ByteBuffer()
        /// Watches with progress that waits, in the order in which it is sent.
        var progress = CircularBuffer<Watch>()
        /// Bytes that the socket has not accepted: those that wait, and those being sent.
        var unread = 0
        /// How many looks have found a large backlog since something was sent.
        var idleLooks = 0
        var isClosed = false
        /// The event loop is about to write.
        var isWoken = false
        /// The call that is being answered, and those that are answered after it.
        var turn: Int64?
        var turns = CircularBuffer<(call: Int64, begin: CheckedContinuation<Void, Never>)>()

        /// Whether the client has read so much that an answer of any size fits.
        var hasRoom: Bool { unread <= max(0, min(limit / 4, limit - Answer.mostBytes)) }

        /// Begins the next turn, if it may.
        mutating func nextTurn() -> CheckedContinuation<Void, Never>? {
            guard turn == nil, isClosed || hasRoom, let next = turns.popFirst() else { return nil }
            turn = next.call
            return next.begin
        }

        /// The watch whose progress is sent next, behind all else that waits, and the rest of a chunk.
        var nextProgress: (watch: Watch, room: Int)? {
            guard lines.readableBytes < Outbox.chunk, let watch = progress.first else { return nil }
            return (watch, Outbox.chunk - lines.readableBytes)
        }

        /// Takes the next bytes to send. They and the rest are copied, as slices would keep the memory of a whole burst until its
        /// last part is sent.
        mutating func takeChunk() -> ByteBuffer {
            guard lines.readerIndex > 0 || lines.readableBytes > Outbox.chunk else {
                return exchange(&lines, with: ByteBuffer())
            }
            let chunk = ByteBuffer(bytes: lines.readableBytesView.prefix(Outbox.chunk))
            lines.moveReaderIndex(forwardBy: chunk.readableBytes)
            if lines.readerIndex >= lines.readableBytes { lines = ByteBuffer(bytes: lines.readableBytesView) }
            return chunk
        }
    }

    /// The most bytes sent at once, so that a slow reader can be told from one that does not read.
    static let chunk = 256 << 10

    private let state: Mutex<State>
    private let budget: UserBudget
    private let wake: @Sendable (Outbox) -> Void
    private let drained: @Sendable () -> Void
    private let overflowed: @Sendable () -> Void

    /// `wake` lets the event loop write later, so that lines that come together are sent together. `drained` is called whenever
    /// less is unread than before, `overflowed` once, when more than `limit` bytes wait; the outbox is closed then.
    init(
        limit: Int, budget: UserBudget = UserBudget(limit: .max),
        wake: @escaping @Sendable (Outbox) -> Void = { _ in }, drained: @escaping @Sendable () -> Void = {},
        overflowed: @escaping @Sendable () -> Void
    ) {
        state = Mutex(State(limit: limit))
        self.budget = budget
        self.wake = wake
        self.drained = drained
        self.overflowed = overflowed
        budget.enter(self)
    }

    /// Whether everything sent is dropped, so that a sender need not begin.
    var isClosed: Bool { limit == nil }

    func configure(limit: Int) { update { $0.limit = limit } }

    /// The bytes that may wait; nil once nothing more is accepted.
    var limit: Int? { state.withLock { $0.isClosed ? nil : $0.limit } }

    /// The maximum size of one answer in bytes, without its end.
    var longestAnswer: Int { state.withLock { min(Answer.mostBytes, $0.limit - 1) } }

    /// Bytes that wait or are being sent.
    var backlog: Int { state.withLock(\.unread) }

    /// A user's connections with less than this unread on each are far from the bound together.
    private static let smallBacklog = 64 << 10

    /// The number of calls in a row that have found a client with a large backlog reading nothing.
    func idles() -> Int {
        state.withLock { state in
            state.idleLooks = state.unread > Self.smallBacklog ? state.idleLooks + 1 : 0
            return state.idleLooks
        }
    }

    // MARK: - Room

    /// Whether the client has read so much that another answer can be made.
    var hasRoom: Bool { state.withLock(\.hasRoom) }

    /// Returns once there is room for the answer to a call, whose turn lasts until ``endTurn(of:)``. Calls take turns, so
    /// that many that are answered together take little memory.
    func beginTurn(of call: Int64) async {
        await withCheckedContinuation { continuation in
            update { $0.turns.append((call, continuation)) }
        }
    }

    /// Ends the turn of a call, if it has one.
    func endTurn(of call: Int64) { update { if $0.turn == call { $0.turn = nil } } }

    private func update<Value>(_ change: (inout State) -> Value) -> Value {
        let (value, next) = state.withLock { (change(&$0), $0.nextTurn()) }
        next?.resume()
        return value
    }

    // MARK: - Sending

    /// Sends an answer without its line end.
    func send(answer: [UInt8]) {
        add { lines in
            lines.writeBytes(answer)
            lines.writeInteger(UInt8(ascii: "\n"))
        }
        flush()
    }

    /// Adds lines, which ``flush()`` sends.
    func add(_ write: (inout ByteBuffer) -> Void) {
        state.withLock { state in
            guard !state.isClosed else { return }
            let before = state.lines.readableBytes
            write(&state.lines)
            let size = state.lines.readableBytes - before
            state.unread += size
            if size > 0 { budget.add(size, as: .unread) }
        }
    }

    /// Adds a watch with progress, which is written once nothing else waits.
    func enqueue(_ watch: Watch) { state.withLock { if !$0.isClosed { $0.progress.append(watch) } } }

    func dequeue(_ watch: Watch) { state.withLock { $0.progress.removeAll { $0 === watch } } }

    /// Lets the event loop write what was added; closes the outbox if more waits than it may. No lock is held, as that ends the
    /// connection.
    func flush() {
        let (mustWake, fits) = state.withLock { state in
            (!exchange(&state.isWoken, with: true), state.lines.readableBytes <= state.limit)
        }
        if !fits { overflow() } else if mustWake { wake(self) }
        budget.makeRoom()
    }

    /// Closes the outbox of a client that does not read.
    func overflow() {
        if close() { overflowed() }
    }

    // MARK: - Writing

    /// Writes to the channel while it accepts more, on its event loop.
    func write(to channel: any Channel) {
        // The channel says when it accepts more.
        guard channel.isWritable else { return }
        state.withLock { $0.isWoken = false }
        while channel.isWritable {
            // Without bytes, too, less waits if the progress of a job was replaced.
            guard let chunk = next() else { return drained() }
            let size = chunk.readableBytes
            channel.writeAndFlush(chunk).whenComplete { _ in self.sent(size) }
        }
    }

    /// The next bytes to send, whose number is passed to ``sent(_:)``; nil if nothing waits.
    func next() -> ByteBuffer? {
        while let (watch, room) = state.withLock(\.nextProgress) { watch.writeProgress(atMost: room) }
        let chunk = state.withLock { $0.takeChunk() }
        return chunk.readableBytes > 0 ? chunk : nil
    }

    /// Called once the socket has accepted so many bytes, or never will.
    func sent(_ size: Int) {
        update { state in
            state.unread -= size
            state.idleLooks = 0
        }
        budget.add(-size, as: .unread)
        drained()
    }

    /// Whether nothing waits or is being sent, not even progress, which takes up no bytes before.
    var isEmpty: Bool { state.withLock { $0.unread == 0 && $0.progress.isEmpty } }

    /// Drops everything that waits; returns false if the outbox was closed already.
    @discardableResult
    func close() -> Bool {
        // Turns begin at once from now on.
        let (wasOpen, size) = update { state in
            let (wasOpen, size) = (!state.isClosed, state.lines.readableBytes)
            state.isClosed = true
            state.unread -= size
            (state.lines, state.progress) = (ByteBuffer(), [])
            return (wasOpen, size)
        }
        budget.add(-size, as: .unread)
        budget.leave(self)
        return wasOpen
    }
}
