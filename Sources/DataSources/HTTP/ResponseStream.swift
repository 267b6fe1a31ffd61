import JobModel
import LoopTasks
import NIOCore
import NIOHTTP1
import Synchronization

/// One response, received on an event loop and read from a task, in blocks as large as have come in.
///
/// States: `waiting` for the head, `receiving` its body, then `finished` or `failed`, which are terminal. What the
/// reader has not read is bounded: at `limit` bytes the connection is told to stop reading, and goes on once the
/// reader has read it all. `open`, `next` and `close` come from one task; the connection's part from its event loop.
final class ResponseStream: Sendable {
    /// Bytes beyond which the connection is not read from.
    static let limit = 1 << 20
    /// Blocks of fewer bytes than `small` are joined to one of at most `joined` bytes.
    private static let small = 4 << 10
    private static let joined = 64 << 10

    /// How slow a server may be.
    struct Patience: Sendable {
        /// Without a byte.
        let idle: TimeAmount
        /// Fewer than `bytes` in so many seconds; none where the seconds are 0.
        let lowSpeed: HTTPSettings.LowSpeed

        var withoutLowSpeed: Patience { Patience(idle: idle, lowSpeed: HTTPSettings.LowSpeed()) }
    }

    private enum Phase {
        case waiting
        case receiving
        case finished
        case failed(any Error)
    }

    private struct State {
        var phase = Phase.waiting
        var head: HTTPResponseHead?
        var blocks: [ByteBuffer] = []
        var buffered = 0
        var isFull = false
        /// The reader, where it waits, and whether it is about to be woken.
        var reader: CheckedContinuation<Void, Never>?
        var isWaking = false
        var connection: ServerConnection?
        var isClosed = false
        /// When the server last sent or took something; nil before the request is out.
        var lastActivity: NIODeadline?
        var idleCheck: Scheduled<Void>?
        /// What was moved while the reader waited for `waited` in all; since when it waits now.
        var moved = 0
        var waited = TimeAmount.zero
        var waitsSince: NIODeadline?
        var speedCheck: Scheduled<Void>?

        /// Whether the end has come.
        var isOver: Bool {
            switch phase {
            case .finished, .failed: true
            case .waiting, .receiving: false
            }
        }

        /// Adds a block to those that wait. Small ones are joined, as each takes far more than its bytes: a server may send
        /// one byte a chunk.
        mutating func append(_ buffer: ByteBuffer) {
            let last = blocks.count - 1
            if buffer.readableBytes < ResponseStream.small, last >= 0,
                blocks[last].readableBytes < ResponseStream.joined
            {
                blocks[last].writeImmutableBuffer(buffer)
            } else {
                blocks.append(buffer)
            }
        }

        /// The checks, which are not needed any more.
        mutating func removeChecks() -> [Scheduled<Void>] {
            defer { (idleCheck, speedCheck) = (nil, nil) }
            return [idleCheck, speedCheck].compactMap(\.self)
        }

        mutating func stopWaiting(at now: NIODeadline) {
            if let waitsSince { waited = waited + (now - waitsSince) }
            waitsSince = nil
        }
    }

    private let state = Mutex(State())
    private let loop: any EventLoop
    private let clock: any EventLoop
    private let patience: Patience

    /// Time is `clock`'s.
    init(loop: any EventLoop, clock: any EventLoop, _ patience: Patience) {
        self.loop = loop
        self.clock = clock
        self.patience = patience
    }

    // MARK: The reader's side

    /// Waits for the head of the response.
    func open() async throws -> HTTPResponseHead {
        while true {
            let found: Result<HTTPResponseHead?, any Error> = state.withLock { state in
                if let head = state.head { return .success(head) }
                if case .failed(let error) = state.phase { return .failure(error) }
                return .success(nil)
            }
            if let head = try found.get() { return head }
            await wait { $0.head != nil }
        }
    }

    /// All that has come in, waiting for some where there is nothing yet; nil at the end of the body.
    func next() async throws -> [ByteBuffer]? {
        while true {
            let now = clock.now
            let (found, connection): (Result<[ByteBuffer]?, any Error>?, ServerConnection?) = state.withLock { state in
                guard state.blocks.isEmpty else {
                    defer {
                        state.blocks = []
                        state.buffered = 0
                        state.isFull = false
                        state.lastActivity = now
                    }
                    return (.success(state.blocks), state.isFull ? state.connection : nil)
                }
                switch state.phase {
                case .finished: return (.success(nil), nil)
                case .failed(let error): return (.failure(error), nil)
                case .waiting, .receiving: return (nil, nil)
                }
            }
            connection?.goOn(self)
            if let found { return try found.get() }
            await wait { !$0.blocks.isEmpty }
        }
    }

    /// Whether more of the body may come.
    var hasRoom: Bool { state.withLock { !$0.isFull } }

    /// Whether the end has come.
    var isOver: Bool { state.withLock(\.isOver) }

    /// Whether nothing of a response has come.
    var isUntouched: Bool { state.withLock { $0.head == nil } }

    /// Ends the transfer where it is still going on. What has come in is forgotten.
    func close() {
        end(with: TransferError.cancelled, forgetting: true)
    }

    /// Lets the transfer fail where it is still going on. What has come in can still be read.
    func fail(_ error: JobError) {
        end(with: error, forgetting: false)
    }

    private func end(with error: any Error, forgetting: Bool) {
        let (connection, reader, checks) = state.withLock { state in
            if forgetting {
                state.isClosed = true
                state.blocks = []
            }
            defer { (state.reader, state.connection) = (nil, nil) }
            guard !state.isOver else { return (ServerConnection?.none, state.reader, state.removeChecks()) }
            state.phase = .failed(error)
            return (state.connection, state.reader, state.removeChecks())
        }
        connection?.end(self)
        for check in checks { check.cancel() }
        reader?.resume()
    }

    /// Waits until `isDue` or the end.
    private func wait(until isDue: @Sendable (borrowing State) -> Bool) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now = clock.now
                let mustWait = state.withLock { state in
                    if state.isOver || isDue(state) { return false }
                    if state.lastActivity != nil { state.lastActivity = now }
                    state.waitsSince = now
                    state.reader = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            close()
        }
    }

    // MARK: The connection's side

    /// A request goes out whose answer this is.
    func begin(on connection: ServerConnection) {
        let now = clock.now
        let isOver = state.withLock { state in
            state.connection = connection
            state.lastActivity = now
            return state.isOver
        }
        if isOver { return connection.end(self) }
        checkIdleness(after: patience.idle)
        if patience.lowSpeed.seconds > 0 { checkSpeed(after: .seconds(saturating: patience.lowSpeed.seconds)) }
    }

    /// So many bytes of the request's body have gone out.
    func sent(_ count: Int) {
        let now = clock.now
        state.withLock { state in
            state.lastActivity = now
            state.moved = state.moved.saturatingAdding(count)
        }
    }

    func receive(_ head: HTTPResponseHead) {
        update { state in
            guard case .waiting = state.phase else { return }
            state.phase = .receiving
            state.head = head
            // A head without a body counts as one byte, so that it is not nothing.
            state.moved = state.moved.saturatingAdding(1)
        }
    }

    /// Part of the body.
    func receive(_ buffer: ByteBuffer) {
        update { state in
            guard !state.isClosed, buffer.readableBytes > 0 else { return }
            state.append(buffer.compact)
            state.buffered += buffer.readableBytes
            state.moved = state.moved.saturatingAdding(buffer.readableBytes)
            state.isFull = state.buffered >= Self.limit
        }
    }

    func receive(_ error: any Error) {
        update { if !$0.isOver { $0.phase = .failed(error) } }
    }

    func finish() {
        update { if case .receiving = $0.phase { $0.phase = .finished } }
    }

    /// Changes the state and wakes the reader.
    private func update(_ change: (inout State) -> Void) {
        let now = clock.now
        let (mustWake, checks) = state.withLock { state in
            change(&state)
            state.lastActivity = now
            state.stopWaiting(at: now)
            let mustWake = state.reader != nil && !state.isWaking
            if mustWake { state.isWaking = true }
            guard state.isOver else { return (mustWake, [Scheduled<Void>]()) }
            state.connection = nil
            return (mustWake, state.removeChecks())
        }
        for check in checks { check.cancel() }
        // After what else this read of the socket brings: a small response is read with one waking.
        if mustWake { loop.execute { self.wake() } }
    }

    private func wake() {
        let reader = state.withLock { state in
            state.isWaking = false
            defer { state.reader = nil }
            return state.reader
        }
        reader?.resume()
    }

    // MARK: Slow servers

    /// Looks again when the server could have been silent for too long.
    private func checkIdleness(after delay: TimeAmount) {
        let check = clock.scheduleTask(in: delay) { [weak self] in
            guard let self else { return }
            let now = self.clock.now
            // While the reader is the slow one, the server is not to blame.
            let last = self.state.withLock { $0.isFull || $0.reader == nil ? now : $0.lastActivity ?? now }
            if now - last < self.patience.idle {
                self.checkIdleness(after: self.patience.idle - (now - last))
            } else {
                self.end(with: TransferError.idle, forgetting: false)
            }
        }
        keep(check) { $0.idleCheck = check }
    }

    /// Looks again when the reader could have waited for the whole time in which so many bytes must have come.
    private func checkSpeed(after delay: TimeAmount) {
        let check = clock.scheduleTask(in: delay) { [weak self] in
            guard let self else { return }
            let now = self.clock.now
            let window = TimeAmount.seconds(saturating: self.patience.lowSpeed.seconds)
            let (rest, moved) = self.state.withLock { state in
                let isWaiting = state.waitsSince != nil
                state.stopWaiting(at: now)
                if isWaiting { state.waitsSince = now }
                guard state.waited >= window else { return (window - state.waited, state.moved) }
                defer { (state.waited, state.moved) = (.zero, 0) }
                return (TimeAmount.zero, state.moved)
            }
            if rest == .zero, moved < self.patience.lowSpeed.bytes {
                let speed = self.patience.lowSpeed
                self.end(with: TransferError.slow(bytes: speed.bytes, seconds: speed.seconds), forgetting: false)
            } else {
                self.checkSpeed(after: rest == .zero ? window : rest)
            }
        }
        keep(check) { $0.speedCheck = check }
    }

    private func keep(_ check: Scheduled<Void>, _ change: (inout State) -> Void) {
        let isOver = state.withLock { state in
            if !state.isOver { change(&state) }
            return state.isOver
        }
        if isOver { check.cancel() }
    }
}

extension ByteBuffer {
    /// The same bytes, copied where they are a small part of what they keep in memory: part of a body keeps all that was read
    /// with it from the socket, and a server may send very much beside it, as extensions of chunks.
    fileprivate var compact: ByteBuffer {
        guard readableBytes < storageCapacity / 8 else { return self }
        var copy = ByteBuffer()
        copy.writeImmutableBuffer(self)
        return copy
    }
}
