import JobEngine
import JobModel
import NIOCore
import Synchronization

/// Lines that wait to be sent to one client: answers and states in order and within a bound, then progress.
///
/// An outbox is open, finishing (it still sends what waits) or closed (it drops everything). Of the progress of a job only
/// the latest waits, so a slow client takes no more memory than a fast one.
final class Outbox: Sendable {
    fileprivate struct State {
        /// The bytes that may wait.
        var limit: Int
        /// The bytes that are cut into chunks, and those that came since.
        var draining = ByteBuffer()
        var filling = ByteBuffer()
        /// By number.
        var watches: [Int: OutboxWatch] = [:]
        /// Watches with progress that waits, in the order in which it is sent.
        var progress = CircularBuffer<Int>()
        /// Bytes that the socket has not accepted.
        var unread = 0
        /// Whether something was sent since the last look, and how many looks before that found nothing sent.
        var hasSent = false
        var idleLooks = 0
        /// Waits until at most so many bytes are unread.
        var waiter: (most: Int, continuation: CheckedContinuation<Void, Never>)?
        var phase = Phase.open
        /// The event loop is about to write.
        var isWoken = false
    }

    fileprivate enum Phase {
        case open
        case finishing
        case closed
    }

    /// The most bytes sent at once, so that a slow reader can be told from one that does not read.
    static let chunk = 256 << 10

    private let state: Mutex<State>
    private let budget: UserBudget
    private let wake: @Sendable (Outbox) -> Void
    private let overflowed: @Sendable () -> Void

    /// `wake` lets the event loop write later, so that lines that come together are sent together. `overflowed`
    /// is called once, when more than `limit` bytes wait; the outbox is closed then.
    init(
        limit: Int, budget: UserBudget = UserBudget(limit: .max),
        wake: @escaping @Sendable (Outbox) -> Void = { _ in },
        overflowed: @escaping @Sendable () -> Void
    ) {
        state = Mutex(State(limit: limit))
        self.budget = budget
        self.wake = wake
        self.overflowed = overflowed
        budget.enter(self)
    }

    /// Whether everything sent is dropped, so that a sender need not begin.
    var isClosed: Bool { state.withLock { $0.phase == .closed } }

    func configure(limit: Int) { state.withLock { $0.limit = limit } }

    /// Bytes that wait or are being sent.
    var backlog: Int { state.withLock(\.unread) }

    /// A user's connections with less than this unread on each are far from the bound together.
    private static let smallBacklog = 64 << 10

    /// The number of calls in a row that have found a client with a large backlog reading nothing.
    func idles() -> Int {
        state.withLock { state in
            defer { state.hasSent = false }
            state.idleLooks = state.hasSent || state.unread <= Self.smallBacklog ? 0 : state.idleLooks + 1
            return state.idleLooks
        }
    }

    /// Sends an answer without its line end.
    func send(answer: [UInt8]) {
        whileOpen { state in
            state.filling.writeBytes(answer)
            state.filling.writeInteger(UInt8(ascii: "\n"))
        }
    }

    /// Sends lines including their ends.
    func send(lines: [UInt8]) { whileOpen { $0.filling.writeBytes(lines) } }

    /// Closes the outbox of a client that does not read.
    func overflow() {
        if close() { overflowed() }
    }

    /// Adds to an open outbox, and closes it if that does not fit.
    private func whileOpen(_ add: (inout State) -> Void) {
        let (mustWake, fits) = state.withLock { state in
            guard state.phase == .open else { return (false, true) }
            count(&state, add)
            let fits = state.waiting <= state.limit
            defer { state.isWoken = true }
            return (fits && !state.isWoken, fits)
        }
        if mustWake { wake(self) }
        if !fits { overflow() }
        budget.makeRoom()
    }

    /// Counts the bytes that `add` writes.
    private func count(_ state: inout State, _ add: (inout State) -> Void) {
        let before = state.filling.readableBytes
        add(&state)
        let size = state.filling.readableBytes - before
        state.unread += size
        if size > 0 { budget.add(size, as: .unread) }
    }

    // MARK: - Watches

    func begin(_ new: OutboxWatch, watch: Int) { state.withLock { if $0.phase == .open { $0.watches[watch] = new } } }

    func has(watch: Int) -> Bool { state.withLock { $0.watches[watch] != nil } }

    func isSettled(watch: Int) -> Bool { state.withLock { $0.watches[watch]?.isSettled ?? true } }

    /// Sends states and, once nothing else waits, progress to a watch; returns whether the watch is settled.
    func send(_ update: JobUpdate, watch: Int) -> Bool {
        change(watch) { $0.receive(update, to: &$1, within: $2) }
    }

    /// Opens a watch behind its answer; returns whether it is settled.
    func open(watch: Int, unfinished: Set<JobID>, versions: [JobID: Int64], isAll: Bool) -> Bool {
        change(watch) { watch, lines, _ in
            watch.open(unfinished: unfinished, versions: versions, isAll: isAll, to: &lines)
        }
    }

    /// Forgets a watch and drops its progress; states sent to it before still reach the client.
    func end(watch: Int) { state.withLock { $0.watches[watch] = nil } }

    private func change(
        _ watch: Int, _ body: (inout OutboxWatch, _ lines: inout ByteBuffer, _ most: Int) -> Void
    ) -> Bool {
        var (isSettled, fits) = (false, true)
        whileOpen { state in
            guard let index = state.watches.index(forKey: watch) else { return }
            let hadProgress = state.watches.values[index].hasProgress
            body(&state.watches.values[index], &state.filling, state.limit)
            if !hadProgress, state.watches.values[index].hasProgress { state.progress.append(watch) }
            isSettled = state.watches.values[index].isSettled
            fits = state.watches.values[index].fits(within: state.limit)
        }
        if !fits { overflow() }
        return isSettled
    }

    // MARK: - Writing

    /// Writes to the channel while it accepts more, on its event loop.
    func write(to channel: any Channel) {
        // The channel says when it accepts more.
        guard channel.isWritable else { return }
        state.withLock { $0.isWoken = false }
        while channel.isWritable, let chunk = next() {
            let size = chunk.readableBytes
            channel.writeAndFlush(chunk).whenComplete { _ in self.sent(size) }
        }
    }

    /// The next bytes to send, whose number is passed to ``sent(_:)``; nil if nothing waits.
    func next() -> ByteBuffer? {
        let (chunk, waiter) = state.withLock { state in
            if state.draining.readableBytes == 0 {
                count(&state) { $0.fillWithProgress() }
                state.draining = exchange(&state.filling, with: ByteBuffer())
            }
            return (state.removeChunk(), state.removeWaiter())
        }
        waiter?.resume()
        return chunk
    }

    /// Called once the socket has accepted so many bytes, or never will.
    func sent(_ size: Int) {
        let waiter = state.withLock { state in
            state.unread -= size
            state.hasSent = true
            return state.removeWaiter()
        }
        budget.add(-size, as: .unread)
        waiter?.resume()
    }

    /// Returns once at most so many bytes are unread, or the outbox is closed. One task waits at a time.
    func waits(atMost most: Int) async {
        await withCheckedContinuation { continuation in
            let waiter = state.withLock { state in
                state.waiter = (most, continuation)
                return state.removeWaiter()
            }
            waiter?.resume()
        }
    }

    /// Accepts nothing more; returns once the socket may be closed without losing lines.
    func finish() async {
        state.withLock { if $0.phase == .open { $0.phase = .finishing } }
        await waits(atMost: 0)
    }

    /// Drops everything that waits; returns false if the outbox was closed already.
    @discardableResult
    func close() -> Bool {
        let (wasOpen, waiter, size) = state.withLock { state in
            let (wasOpen, size) = (state.phase != .closed, state.waiting)
            state.phase = .closed
            state.unread -= size
            (state.draining, state.filling) = (ByteBuffer(), ByteBuffer())
            (state.watches, state.progress) = ([:], [])
            return (wasOpen, state.removeWaiter(), size)
        }
        budget.add(-size, as: .unread)
        budget.leave(self)
        waiter?.resume()
        return wasOpen
    }
}

extension Outbox.State {
    /// Bytes that are not being sent yet.
    fileprivate var waiting: Int { draining.readableBytes + filling.readableBytes }

    /// Writes progress behind all else that waits, as far as it fits into a chunk.
    fileprivate mutating func fillWithProgress() {
        while filling.readableBytes < Outbox.chunk, let watch = progress.first {
            let limit = Outbox.chunk - filling.readableBytes
            if watches[watch]?.writeProgress(to: &filling, limit: limit) ?? true { progress.removeFirst() }
        }
    }

    fileprivate mutating func removeChunk() -> ByteBuffer? {
        if draining.readableBytes > Outbox.chunk {
            // A slice would keep the memory of the whole burst until its last part is sent.
            let chunk = ByteBuffer(bytes: draining.readableBytesView.prefix(Outbox.chunk))
            draining.moveReaderIndex(forwardBy: Outbox.chunk)
            if draining.readableBytes < draining.storageCapacity / 2 {
                draining = ByteBuffer(bytes: draining.readableBytesView)
            }
            return chunk
        }
        // A burst does not keep its memory.
        let last = exchange(&draining, with: ByteBuffer())
        return last.readableBytes > 0 ? last : nil
    }

    /// The waiter, if its condition holds.
    fileprivate mutating func removeWaiter() -> CheckedContinuation<Void, Never>? {
        guard let waiter else { return nil }
        // Progress takes up no bytes until it is sent.
        let hasSentAll = unread <= waiter.most && (waiter.most > 0 || progress.allSatisfy { watches[$0] == nil })
        guard hasSentAll || phase == .closed else { return nil }
        self.waiter = nil
        return waiter.continuation
    }
}
