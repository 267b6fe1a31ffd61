import JobEngine
import NIOCore
import Synchronization

/// What waits to be sent to one client, in order and within a bound.
///
/// It sends whatever it gets; ``Replies`` above it knows which answers belong together.
///
/// States: open, finishing (what is there is still sent), closed. Closed is terminal; what comes then is dropped. Progress
/// of one job to one watch that was not sent yet is merged, so it takes no more room however slow the client is.
final class Outbox: Sendable {
    fileprivate enum Entry {
        case bytes([UInt8])
        case state(watch: Int, JobEvent)
        case progress(watch: Int, ProgressBatch)
        /// The watch ended; nothing more comes from it.
        case end(watch: Int)
    }

    fileprivate struct State {
        var entries = CircularBuffer<Entry>()
        /// Entries that were there before the first. Together with their index it is their number.
        var left = 0
        /// How many rows of the first entry are sent, where that is a batch.
        var sentRows = 0
        /// By number.
        var watches: [Int: OutboxWatch] = [:]
        /// Bytes of what waits, progress not counted.
        var size = 0
        /// Bytes that are being sent.
        var sending = 0
        /// Whether something was sent since the last look, and how many looks before that nothing was.
        var hasSent = false
        var idleLooks = 0
        /// Chunks that were given out to be sent and that the socket has not accepted whole.
        var unsent = 0
        /// Waits until so few bytes wait or are being sent.
        var waiter: (most: Int, continuation: CheckedContinuation<Void, Never>)?
        var phase = Phase.open
        /// What waits is about to be written.
        var isWoken = false
    }

    fileprivate enum Phase {
        case open
        case finishing
        case closed
    }

    /// How many bytes are sent at once.
    static let chunk = 256 << 10

    private let state = Mutex(State())
    private let limit: Atomic<Int>
    /// Whether nothing is kept any more, so that a sender with much to send need not begin.
    private let closed = Atomic<Bool>(false)
    var isClosed: Bool { closed.load(ordering: .relaxed) }
    private let budget: UserBudget
    private let wake: @Sendable (Outbox, _ atOnce: Bool) -> Void
    private let overflowed: @Sendable () -> Void

    /// `wake` has what waits written to the socket; it may do so later, so that what comes together is sent together, unless it
    /// is to be sent at once. `overflowed` is called once, when more than `limit` bytes wait; the outbox is closed then.
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

    /// How many bytes may wait.
    var most: Int { limit.load(ordering: .relaxed) }

    /// Changes how many bytes may wait, from the next on.
    func configure(limit: Int) { self.limit.store(limit, ordering: .relaxed) }

    /// Bytes of what waits and is being sent.
    var backlog: Int { state.withLock { $0.size + $0.sending } }

    /// With less than this unread on each, all connections of a user are far from the bound.
    private static let smallBacklog = 64 << 10

    /// How many calls of this in a row have found that the client reads nothing of much that waits.
    func idles() -> Int {
        state.withLock { state in
            defer { state.hasSent = false }
            state.idleLooks = state.hasSent || state.size + state.sending <= Self.smallBacklog ? 0 : state.idleLooks + 1
            return state.idleLooks
        }
    }

    /// Sends an answer, which has no line end yet.
    func send(answer: [UInt8]) {
        var line = answer
        line.append(UInt8(ascii: "\n"))
        send(lines: line)
    }

    /// Sends lines with their ends; `atOnce` where nothing is to be sent together with them.
    func send(lines: [UInt8], atOnce: Bool = false) {
        whileOpen(size: lines.count, atOnce: atOnce) { $0.append(lines) }
    }

    /// Sends an event to a watch.
    func send(_ event: JobEvent, watch: Int) {
        whileOpen(size: OutboxWatch.size(of: event)) { state in
            // Progress that comes after it stays behind it.
            let next = state.next
            state.watches[watch]?.waits(event, as: next)
            state.entries.append(.state(watch: watch, event))
        }
    }

    /// Sends the progress of many jobs to a watch.
    func send(_ batch: ProgressBatch, watch: Int) {
        whileOpen(size: 0) { $0.add(batch, of: watch) }
    }

    /// Ends a watch: what was given to `send` before is still sent.
    func end(watch: Int) {
        whileOpen(size: 0) { $0.entries.append(.end(watch: watch)) }
    }

    /// Closes, as something that must be sent cannot be buffered: the same as when more than the limit waits. Also where
    /// nothing more comes and what was there is not read.
    func overflow() {
        if close() { overflowed() }
    }

    /// Adds so many bytes to what waits, unless it is closed, and closes where they do not fit.
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

    /// Writes what waits while the channel takes more, on its event loop.
    func write(to channel: any Channel) {
        // Where it takes nothing it is not offered more until it says that it does.
        guard channel.isWritable else { return }
        state.withLock { $0.isWoken = false }
        while channel.isWritable, let next = next() {
            channel.writeAndFlush(next.bytes).whenComplete { _ in self.sent(next.size) }
        }
    }

    /// The next bytes to send, and what they were counted as; nil where nothing waits. They count until ``sent(_:)``.
    func next() -> (bytes: ByteBuffer, size: Int)? {
        while let next = state.withLock({ $0.dequeue() }) {
            if next.bytes.readableBytes > 0 { return next }
            sent(next.size)
        }
        return nil
    }

    /// The socket has accepted so many more bytes, or never will.
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

    /// Returns once at most so many bytes wait or are being sent, or it is closed. One task waits at a time.
    func waits(atMost most: Int) async {
        await withCheckedContinuation { continuation in
            let waiter = state.withLock { state in
                state.waiter = (most, continuation)
                return state.removeWaiter()
            }
            waiter?.resume()
        }
    }

    /// Accepts nothing more, and returns once the socket has all that waited, or never will: closing it before would lose the
    /// rest.
    func finish() async {
        state.withLock { if $0.phase == .open { $0.phase = .finishing } }
        await waits(atMost: 0)
    }

    /// Drops what waits; false where it was closed before.
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
    /// The number of the next entry.
    fileprivate var next: Int { left + entries.count }

    /// Adds lines, to those that wait already where these are few: an entry of its own takes more than a short answer. Long
    /// ones are cut, so that who reads them slowly can be told from who does not read, and memory is given back on the way.
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
        // The array must be the only owner of its bytes, or all of them would be copied.
        entries.removeLast()
        last += lines
        entries.append(.bytes(last))
    }

    /// Bytes of lines that are joined.
    private static let mostJoined = 16 << 10

    /// Drops what waits; gives its size.
    fileprivate mutating func close() -> Int {
        defer { size = 0 }
        phase = .closed
        entries = []
        sentRows = 0
        watches = [:]
        return size
    }

    /// The one who waits, if there is as little left.
    fileprivate mutating func removeWaiter() -> CheckedContinuation<Void, Never>? {
        guard let waiter, phase == .closed || size + sending <= waiter.most else { return nil }
        guard phase == .closed || waiter.most > 0 || entries.isEmpty && unsent == 0 else { return nil }
        self.waiter = nil
        return waiter.continuation
    }

    fileprivate mutating func add(_ batch: ProgressBatch, of watch: Int) {
        let (merged, rest) = watches[watch, default: OutboxWatch(watch)].split(batch, next: next)
        for (number, batch) in merged {
            let index = entries.index(entries.startIndex, offsetBy: number - left)
            if case .progress(_, let earlier) = entries[index] {
                entries[index] = .progress(watch: watch, earlier.merged(with: batch))
            }
        }
        if let rest { entries.append(.progress(watch: watch, rest)) }
    }

    /// The next chunk, and what it was counted as while it waited.
    fileprivate mutating func dequeue() -> (bytes: ByteBuffer, size: Int)? {
        if entries.isEmpty { return nil }
        let before = size
        var bytes = ByteBufferAllocator().buffer(capacity: min(size, Outbox.chunk))
        while let entry = entries.first, bytes.readableBytes < Outbox.chunk {
            switch entry {
            case .bytes(let line):
                size -= line.count
                bytes.writeBytes(line)
            case .state(let watch, let event):
                size -= OutboxWatch.size(of: event)
                watches[watch, default: OutboxWatch(watch)].write(event, to: &bytes)
            case .progress(let watch, let batch):
                watches[watch]?.leaves(left)
                sentRows =
                    watches[watch]?.write(batch, from: sentRows, to: &bytes, limit: Outbox.chunk - bytes.readableBytes)
                    ?? batch.rows.count
                if sentRows < batch.rows.count { continue }
                sentRows = 0
            case .end(let watch): watches[watch] = nil
            }
            entries.removeFirst()
            left += 1
        }
        // A burst is not to keep what it took.
        if entries.isEmpty, entries.capacity > 4096 { entries = [] }
        sending += before - size
        unsent += 1
        return (bytes, before - size)
    }
}
