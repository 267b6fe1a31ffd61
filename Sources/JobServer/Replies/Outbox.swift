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
        /// Waits until there are none.
        var flushed: CheckedContinuation<Void, Never>?
        var phase = Phase.open
        var reader: CheckedContinuation<Void, Never>?
        /// The reader is about to be woken.
        var isDelivering = false
    }

    fileprivate enum Phase {
        case open
        case finishing
        case closed
    }

    fileprivate enum Dequeued {
        /// `size` is what the bytes were counted as while they waited.
        case bytes(ByteBuffer, size: Int)
        case nothing
        case end
    }

    /// How many bytes are sent at once.
    static let chunk = 256 << 10

    private let state = Mutex(State())
    private let limit: Atomic<Int>
    /// Whether nothing is kept any more, so that whoever has much to send need not begin.
    private let closed = Atomic<Bool>(false)
    var isClosed: Bool { closed.load(ordering: .relaxed) }
    private let account: MemoryAccount
    private let deliver: @Sendable (@escaping @Sendable () -> Void) -> Void
    private let sendNow: @Sendable (() -> OutgoingBytes?) -> Void
    private let overflowed: @Sendable () -> Void

    /// `deliver` runs what wakes the reader; it may do so later, so that what comes together is sent together. Before that
    /// `sendNow` is offered what waits, and writes it to the socket if it is called on the socket's event loop and the socket is
    /// writable, so that the reader's task need not be scheduled.
    /// `overflowed` is called once, when more than `limit` bytes wait; the outbox is closed then.
    init(
        limit: Int, account: MemoryAccount = MemoryAccount(limit: .max),
        deliver: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void = { $0() },
        sendNow: @escaping @Sendable (() -> OutgoingBytes?) -> Void = { _ in },
        overflowed: @escaping @Sendable () -> Void
    ) {
        self.limit = Atomic(limit)
        self.account = account
        self.deliver = deliver
        self.sendNow = sendNow
        self.overflowed = overflowed
        account.enter(self)
    }

    /// How many bytes may wait.
    var most: Int { limit.load(ordering: .relaxed) }

    /// Changes how many bytes may wait, from the next on.
    func configure(limit: Int) { self.limit.store(limit, ordering: .relaxed) }

    /// Bytes of what waits and is being sent, and a number that grows whenever something was sent.
    var backlog: (size: Int, sent: Int) { state.withLock { ($0.size + $0.sending, $0.sent) } }

    /// The socket has accepted so many more bytes, or never will.
    fileprivate func sent(_ size: Int) {
        let flushed = state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.sending -= size
            state.sent &+= 1
            state.unsent -= 1
            guard state.unsent == 0 else { return nil }
            defer { state.flushed = nil }
            return state.flushed
        }
        account.release(size)
        flushed?.resume()
    }

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
        if account.isOverfull { account.makeRoom() }
    }

    /// Sends an event to a watch.
    func send(_ event: JobEvent, watch: Int) {
        append(.state(watch: watch, event), size: OutboxWatch.size(of: event)) { state in
            // Progress that comes after it stays behind it.
            state.watches[watch]?.waits(event, at: state.entries.count)
        }
        if account.isFull { account.makeRoom() }
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

    /// Writes what waits to the socket from here, or wakes the reader where that cannot be done or something is left.
    private func sendOrWakeReader() {
        sendNow { dequeueForReader() }
        let reader = state.withLock { state in
            state.isDelivering = false
            return state.removeReader()
        }
        reader?.resume()
    }

    /// Closes, as something that must be sent cannot be buffered: the same as when more than the limit waits. Also where
    /// nothing more comes and what was there is not read.
    func overflow() {
        closed.store(true, ordering: .relaxed)
        let closed = state.withLock { state -> (reader: CheckedContinuation<Void, Never>?, size: Int)? in
            guard state.phase != .closed else { return nil }
            let size = state.close()
            return (state.removeReader(), size)
        }
        guard let closed else { return }
        account.release(closed.size)
        closed.reader?.resume()
        overflowed()
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
        account.charge(size)
        return state.size <= limit.load(ordering: .relaxed)
    }

    /// Changes what waits, unless it is closed, and closes where `change` says that it does not fit.
    private func whileOpen(atOnce: Bool = false, _ change: (inout State) -> Bool) {
        let (mustDeliver, isOver) = state.withLock { state in
            guard state.phase == .open else { return (false, false) }
            let fits = change(&state)
            if !fits {
                closed.store(true, ordering: .relaxed)
                account.release(state.close())
            }
            return (state.mustDeliver(), !fits)
        }
        if mustDeliver { atOnce ? sendOrWakeReader() : deliver(sendOrWakeReader) }
        if isOver { overflowed() }
    }

    /// Lets what waits be sent, and accepts nothing more.
    func finish() {
        let reader = state.withLock { state in
            if state.phase == .open { state.phase = .finishing }
            return state.removeReader()
        }
        reader?.resume()
    }

    /// Drops what waits.
    func close() {
        closed.store(true, ordering: .relaxed)
        let (reader, size) = state.withLock { state in
            let size = state.close()
            return (state.removeReader(), size)
        }
        account.release(size)
        account.leave(self)
        reader?.resume()
    }

    /// Returns once the socket has all that was given out to be sent, or never will: closing it before would lose the rest.
    func flush() async {
        await withCheckedContinuation { continuation in
            let isFlushed = state.withLock { state in
                if state.unsent == 0 { return true }
                state.flushed = continuation
                return false
            }
            if isFlushed { continuation.resume() }
        }
    }

    /// What the reader would get next, while it waits; nil once it was woken.
    private func dequeueForReader() -> OutgoingBytes? {
        let next = state.withLock { $0.reader == nil ? .nothing : $0.dequeue() }
        guard case .bytes(let bytes, let size) = next else { return nil }
        let sending = SendingBytes(size, of: self)
        return bytes.readableBytes > 0 ? OutgoingBytes(bytes: bytes, sending: sending) : nil
    }

    /// The next bytes to send, as soon as there are some; nil at the end. There is one reader.
    func next() async -> OutgoingBytes? {
        while true {
            switch state.withLock({ $0.dequeue() }) {
            case .bytes(let bytes, let size):
                let sending = SendingBytes(size, of: self)
                if bytes.readableBytes > 0 { return OutgoingBytes(bytes: bytes, sending: sending) }
            case .end: return nil
            case .nothing:
                await withCheckedContinuation { continuation in
                    let reader = state.withLock { state in
                        state.reader = continuation
                        return state.removeReader()
                    }
                    reader?.resume()
                }
            }
        }
    }
}

/// Bytes that are counted until the socket has them, or never will.
final class SendingBytes: Sendable {
    private let outbox: Outbox
    private let size: Int

    fileprivate init(_ size: Int, of outbox: Outbox) {
        self.size = size
        self.outbox = outbox
    }

    deinit { outbox.sent(size) }
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

    /// Whether the reader waits and nobody is about to wake it.
    fileprivate mutating func mustDeliver() -> Bool {
        guard reader != nil, !isDelivering else { return false }
        isDelivering = true
        return true
    }

    /// The reader, if it waits and there is something for it.
    fileprivate mutating func removeReader() -> CheckedContinuation<Void, Never>? {
        if isEmpty, phase == .open { return nil }
        defer { reader = nil }
        return reader
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

    fileprivate mutating func dequeue() -> Outbox.Dequeued {
        if isEmpty { return phase == .open ? .nothing : .end }
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
        return .bytes(bytes, size: before - size)
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
