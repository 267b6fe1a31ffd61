import JobEngine
import NIOCore
import Synchronization

/// Lines that wait to be sent to one client: answers and states in order and within a bound, then progress.
///
/// An outbox is open, finishing (it still sends what waits) or closed (it drops everything). Of the progress of a job only
/// the latest waits, so a slow client takes no more memory than a fast one.
final class Outbox: Sendable {
    fileprivate enum Entry {
        case bytes([UInt8])
        case state(watch: Int, JobEvent)
        /// The watch ended, and its progress with it.
        case end(watch: Int)
    }

    fileprivate struct State {
        var entries = CircularBuffer<Entry>()
        /// By number.
        var watches: [Int: OutboxWatch] = [:]
        /// Watches with progress that waits, in the order in which it is sent.
        var progress = CircularBuffer<Int>()
        /// Bytes of the entries.
        var size = 0
        /// Bytes being sent.
        var sending = 0
        /// Whether something was sent since the last look, and how many looks before that found nothing sent.
        var hasSent = false
        var idleLooks = 0
        /// Chunks that the socket has not accepted completely.
        var unsent = 0
        /// Waits until at most so many bytes wait or are being sent.
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

    /// The bytes sent at once.
    static let chunk = 256 << 10

    private let state = Mutex(State())
    private let limit: Atomic<Int>
    private let closed = Atomic<Bool>(false)
    /// Whether everything sent is dropped, so that a sender need not begin.
    var isClosed: Bool { closed.load(ordering: .relaxed) }
    private let budget: UserBudget
    private let wake: @Sendable (Outbox, _ atOnce: Bool) -> Void
    private let overflowed: @Sendable () -> Void

    /// `wake` lets the event loop write, later unless `atOnce`, so that lines that come together are sent together.
    /// `overflowed` is called once, when more than `limit` bytes wait; the outbox is closed then.
    init(
        limit: Int, budget: UserBudget = UserBudget(limit: .max),
        wake: @escaping @Sendable (Outbox, _ atOnce: Bool) -> Void = { _, _ in },
        overflowed: @escaping @Sendable () -> Void
    ) {
        self.limit = Atomic(limit)
        self.budget = budget
        self.wake = wake
        self.overflowed = overflowed
        budget.enter(self)
    }

    /// The bytes that may wait.
    var most: Int { limit.load(ordering: .relaxed) }

    /// Changes the bytes that may wait.
    func configure(limit: Int) { self.limit.store(limit, ordering: .relaxed) }

    /// Bytes that wait or are being sent.
    var backlog: Int { state.withLock { $0.size + $0.sending } }

    /// A user's connections with less than this unread on each are far from the bound together.
    private static let smallBacklog = 64 << 10

    /// The number of calls in a row that have found a client with a large backlog reading nothing.
    func idles() -> Int {
        state.withLock { state in
            defer { state.hasSent = false }
            state.idleLooks = state.hasSent || state.size + state.sending <= Self.smallBacklog ? 0 : state.idleLooks + 1
            return state.idleLooks
        }
    }

    /// Sends an answer without its line end.
    func send(answer: [UInt8]) {
        var line = answer
        line.append(UInt8(ascii: "\n"))
        send(lines: line)
    }

    /// Sends lines including their ends; `atOnce` if nothing will be sent together with them.
    func send(lines: [UInt8], atOnce: Bool = false) {
        whileOpen(size: lines.count, atOnce: atOnce) { $0.append(lines) }
    }

    /// Sends an event to a watch.
    func send(_ event: JobEvent, watch: Int) {
        whileOpen(size: OutboxWatch.size(of: event)) { state in
            state.watches[watch]?.replaceProgress(of: event.job)
            state.entries.append(.state(watch: watch, event))
        }
    }

    /// Sends the progress of many jobs to a watch, once no entry waits.
    func send(_ batch: ProgressBatch, watch: Int) {
        whileOpen(size: 0) { state in
            if state.watches[watch, default: OutboxWatch(watch)].add(batch) { state.progress.append(watch) }
        }
    }

    /// Ends a watch; states sent to it before still reach the client.
    func end(watch: Int) {
        whileOpen(size: 0) { $0.entries.append(.end(watch: watch)) }
    }

    /// Closes the outbox of a client that does not read.
    func overflow() {
        if close() { overflowed() }
    }

    /// Adds `size` bytes to an open outbox, and closes it if they do not fit.
    private func whileOpen(size: Int, atOnce: Bool = false, _ add: (inout State) -> Void) {
        let (mustWake, fits) = state.withLock { state in
            guard state.phase == .open else { return (false, true) }
            add(&state)
            state.size += size
            if size > 0 { budget.add(size, as: .unread) }
            let fits = state.size <= most
            defer { state.isWoken = true }
            return (fits && !state.isWoken, fits)
        }
        if mustWake { wake(self, atOnce) }
        if !fits { overflow() }
        if size > 0 { budget.makeRoom() }
    }

    // MARK: - Writing

    /// Writes to the channel while it accepts more, on its event loop.
    func write(to channel: any Channel) {
        // The channel says when it accepts more.
        guard channel.isWritable else { return }
        state.withLock { $0.isWoken = false }
        while channel.isWritable, let next = next() {
            channel.writeAndFlush(next.bytes).whenComplete { _ in self.sent(next.size) }
        }
    }

    /// The next bytes to send and the size to pass to ``sent(_:)``; nil if nothing waits.
    func next() -> (bytes: ByteBuffer, size: Int)? {
        while let next = state.withLock({ $0.dequeue() }) {
            if next.bytes.readableBytes > 0 { return next }
            sent(next.size)
        }
        return nil
    }

    /// Called once the socket has accepted so many bytes, or never will.
    func sent(_ size: Int) {
        let waiter = state.withLock { state in
            state.sending -= size
            state.hasSent = true
            state.unsent -= 1
            return state.removeWaiter()
        }
        budget.add(-size, as: .unread)
        waiter?.resume()
    }

    /// Returns once at most so many bytes wait or are being sent, or the outbox is closed. One task waits at a time.
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
        closed.store(true, ordering: .relaxed)
        let (wasOpen, waiter, size) = state.withLock { state in
            let wasOpen = state.phase != .closed
            let size = state.close()
            return (wasOpen, state.removeWaiter(), size)
        }
        budget.add(-size, as: .unread)
        budget.leave(self)
        waiter?.resume()
        return wasOpen
    }
}

extension Outbox.State {
    /// Adds lines, if they are short to the last entry, as an entry of its own takes more memory than a short answer. Long
    /// lines are cut, so that a slow reader can be told from one that does not read, and frees memory on the way.
    fileprivate mutating func append(_ lines: [UInt8]) {
        guard lines.count <= Outbox.chunk else {
            for start in stride(from: 0, to: lines.count, by: Outbox.chunk) {
                entries.append(.bytes(Array(lines[start...].prefix(Outbox.chunk))))
            }
            return
        }
        guard case .bytes(var last)? = entries.last, last.count + lines.count <= Self.mostJoined else {
            return entries.append(.bytes(lines))
        }
        // The array must be the only owner of its bytes, otherwise they would all be copied.
        entries.removeLast()
        last += lines
        entries.append(.bytes(last))
    }

    /// The maximum size of joined lines, in bytes.
    private static let mostJoined = 16 << 10

    /// Drops everything that waits; returns its size.
    fileprivate mutating func close() -> Int {
        defer { size = 0 }
        phase = .closed
        entries = []
        progress = []
        watches = [:]
        return size
    }

    /// The waiter, if its condition holds.
    fileprivate mutating func removeWaiter() -> CheckedContinuation<Void, Never>? {
        guard let waiter, phase == .closed || size + sending <= waiter.most else { return nil }
        let isEmpty = entries.isEmpty && progress.isEmpty && unsent == 0
        guard phase == .closed || waiter.most > 0 || isEmpty else { return nil }
        self.waiter = nil
        return waiter.continuation
    }

    /// The next chunk, and the size that it had among the entries.
    fileprivate mutating func dequeue() -> (bytes: ByteBuffer, size: Int)? {
        if entries.isEmpty, progress.isEmpty { return nil }
        let before = size
        var bytes = ByteBufferAllocator().buffer(capacity: min(size, Outbox.chunk))
        while bytes.readableBytes < Outbox.chunk, let entry = entries.popFirst() {
            switch entry {
            case .bytes(let line):
                size -= line.count
                bytes.writeBytes(line)
            case .state(let watch, let event):
                size -= OutboxWatch.size(of: event)
                watches[watch, default: OutboxWatch(watch)].write(event, to: &bytes)
            case .end(let watch): watches[watch] = nil
            }
        }
        while bytes.readableBytes < Outbox.chunk, let watch = progress.first {
            let limit = Outbox.chunk - bytes.readableBytes
            if watches[watch]?.writeProgress(to: &bytes, limit: limit) ?? true { progress.removeFirst() }
        }
        // A burst does not keep its memory.
        if entries.isEmpty, entries.capacity > 4096 { entries = [] }
        sending += before - size
        unsent += 1
        return (bytes, before - size)
    }
}
