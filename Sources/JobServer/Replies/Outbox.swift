import JobEngine
import NIOCore
import Synchronization

/// What waits to be sent to one client, in order and within a bound.
///
/// It sends whatever it gets. ``Replies`` above it knows which answers belong together, and ``SubmitReplies`` above both
/// writes many answers at once.
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
        case sent
    }

    fileprivate struct State {
        var entries: [Entry] = []
        var first = 0
        /// How many rows of the first entry are sent, where that is a batch.
        var sentRows = 0
        /// By number.
        var watches: [Int: OutboxWatch] = [:]
        /// Bytes of what waits, progress not counted.
        var size = 0
        /// Bytes that are being sent.
        var sending = 0
        /// How often something was sent.
        var sent = 0
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

    /// Bytes of what waits and is being sent, and a number that grows whenever something was sent.
    var backlog: (size: Int, sent: Int) { state.withLock { ($0.size + $0.sending, $0.sent) } }

    /// Sends an answer, which has no line end yet.
    func send(answer: [UInt8]) {
        var line = answer
        line.append(UInt8(ascii: "\n"))
        send(lines: line)
    }

    /// Sends lines with their ends; `atOnce` where nothing is to be sent together with them.
    func send(lines: [UInt8], atOnce: Bool = false) {
        whileOpen(atOnce: atOnce) { state in
            state.append(lines)
            return count(lines.count, &state)
        }
        budget.makeRoom()
    }

    /// Sends an event to a watch.
    func send(_ event: JobEvent, watch: Int) {
        append(.state(watch: watch, event), size: OutboxWatch.size(of: event)) { state in
            // Progress that comes after it stays behind it.
            state.watches[watch]?.waits(event, at: state.entries.count)
        }
        budget.makeRoom()
    }

    /// Sends the progress of many jobs to a watch.
    func send(_ batch: ProgressBatch, watch: Int) {
        whileOpen { state in
            state.add(batch, of: watch)
            return true
        }
    }

    /// Ends a watch: what was given to `send` before is still sent.
    func end(watch: Int) {
        append(.end(watch: watch), size: 0)
    }

    /// Closes, as something that must be sent cannot be buffered: the same as when more than the limit waits. Also where
    /// nothing more comes and what was there is not read.
    func overflow() {
        if close() { overflowed() }
    }

    private func append(_ entry: Entry, size: Int, _ prepare: (inout State) -> Void = { _ in }) {
        whileOpen { state in
            prepare(&state)
            state.entries.append(entry)
            return count(size, &state)
        }
    }

    /// Counts what was added; false where it is too much.
    private func count(_ size: Int, _ state: inout State) -> Bool {
        state.size += size
        budget.charge(unread: size)
        return state.size <= limit.load(ordering: .relaxed)
    }

    /// Changes what waits, unless it is closed, and closes where `change` says that it does not fit.
    private func whileOpen(atOnce: Bool = false, _ change: (inout State) -> Bool) {
        let (mustWake, fits) = state.withLock { state in
            guard state.phase == .open else { return (false, true) }
            let fits = change(&state)
            defer { state.isWoken = true }
            return (fits && !state.isWoken, fits)
        }
        if mustWake { wake(self, atOnce) }
        if !fits { overflow() }
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
        while true {
            guard let next = state.withLock({ $0.dequeue() }) else {
                // Ends of watches may have been all that waited.
                sent(0, pieces: 0)
                return nil
            }
            if next.bytes.readableBytes > 0 { return next }
            sent(next.size)
        }
    }

    /// The socket has accepted so many more bytes, or never will.
    func sent(_ size: Int, pieces: Int = 1) {
        let waiter = state.withLock { state in
            state.sending -= size
            state.sent &+= pieces
            state.unsent -= pieces
            return state.removeWaiter()
        }
        budget.release(unread: size)
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
        budget.release(unread: size)
        budget.leave(self)
        waiter?.resume()
        return wasOpen
    }
}

extension Outbox.State {
    private var isEmpty: Bool { first == entries.count }

    /// Adds lines, to those that wait already where these are few: an entry of its own takes more than a short answer. Long
    /// ones are cut, so that who reads them slowly can be told from who does not read, and memory is given back on the way.
    fileprivate mutating func append(_ lines: [UInt8]) {
        guard lines.count <= Outbox.chunk else {
            for start in stride(from: 0, to: lines.count, by: Outbox.chunk) {
                entries.append(.bytes(Array(lines[start...].prefix(Outbox.chunk))))
            }
            return
        }
        guard !isEmpty, case .bytes(var last) = entries[entries.count - 1], last.count + lines.count <= Self.mostJoined
        else { return entries.append(.bytes(lines)) }
        // The array must be the only owner of its bytes, or all of them would be copied.
        entries[entries.count - 1] = .sent
        last += lines
        entries[entries.count - 1] = .bytes(last)
    }

    /// Bytes of lines that are joined.
    private static let mostJoined = 16 << 10

    /// Drops what waits; gives its size.
    fileprivate mutating func close() -> Int {
        defer { size = 0 }
        phase = .closed
        entries = []
        first = 0
        sentRows = 0
        watches = [:]
        return size
    }

    /// The one who waits, if there is as little left.
    fileprivate mutating func removeWaiter() -> CheckedContinuation<Void, Never>? {
        guard let waiter, phase == .closed || size + sending <= waiter.most else { return nil }
        guard phase == .closed || waiter.most > 0 || isEmpty && unsent == 0 else { return nil }
        self.waiter = nil
        return waiter.continuation
    }

    fileprivate mutating func add(_ batch: ProgressBatch, of watch: Int) {
        let (merged, rest) = watches[watch, default: OutboxWatch(watch)].split(batch, end: entries.count)
        for (index, batch) in merged {
            if case .progress(_, let earlier) = entries[index] {
                entries[index] = .progress(watch: watch, earlier.merged(with: batch))
            }
        }
        if let rest { entries.append(.progress(watch: watch, rest)) }
    }

    /// The next chunk, and what it was counted as while it waited.
    fileprivate mutating func dequeue() -> (bytes: ByteBuffer, size: Int)? {
        if isEmpty { return nil }
        let before = size
        var bytes = ByteBufferAllocator().buffer(capacity: room)
        while !isEmpty, bytes.readableBytes < Outbox.chunk {
            switch entries[first] {
            case .bytes(let line):
                size -= line.count
                bytes.writeBytes(line)
            case .state(let watch, let event):
                size -= OutboxWatch.size(of: event)
                watches[watch, default: OutboxWatch(watch)].write(event, to: &bytes)
            case .progress(let watch, let batch):
                watches[watch]?.leaves(first)
                sentRows =
                    watches[watch]?.write(batch, from: sentRows, to: &bytes, limit: Outbox.chunk - bytes.readableBytes)
                    ?? batch.rows.count
                if sentRows < batch.rows.count { continue }
                sentRows = 0
            case .end(let watch): watches[watch] = nil
            case .sent: break
            }
            entries[first] = .sent
            first += 1
        }
        compact()
        sending += before - size
        unsent += 1
        return (bytes, before - size)
    }

    /// How many bytes the next chunk takes, about.
    private var room: Int {
        var room = 0
        for entry in entries[first...] {
            switch entry {
            case .bytes(let line): room += line.count
            case .state(_, let event): room += OutboxWatch.size(of: event)
            // Lines of progress reserve their own room.
            case .progress, .end, .sent: break
            }
            if room >= Outbox.chunk { return Outbox.chunk }
        }
        return room
    }

    private mutating func compact() {
        if isEmpty {
            entries.removeAll(keepingCapacity: entries.count < 4096)
        } else if first > 4096 {
            entries.removeFirst(first)
            for watch in watches.keys { watches[watch]?.shift(by: first) }
        } else {
            return
        }
        first = 0
    }
}
