import JobModel
import LoopTasks
import NIOCore
import NIOHTTP1
import Synchronization

/// One response, received on an event loop and read by a task, in blocks as large as they arrive.
///
/// It waits for the head, then receives the body until it is finished or failed. With ``limit`` unread bytes, the
/// connection stops reading until the reader has taken them. One task calls ``open()``, ``next()`` and ``close()``.
final class ResponseStream: Sendable {
    /// The unread bytes at which the connection stops reading.
    static let limit = 1 << 20
    /// Blocks with fewer bytes than `small` are joined, up to `joined` bytes.
    private static let small = 4 << 10
    private static let joined = 64 << 10

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
        /// Whether something happened since the reader last looked.
        var isChanged = false
        /// The reader, while it waits.
        var reader: CheckedContinuation<Void, Never>?
        var connection: ServerConnection?
        var paces: [Pace]
        /// When the current wait of the reader began, or the paces were last updated during it.
        var waitsSince: NIODeadline?
        var check: Scheduled<Void>?

        var isFull: Bool { buffered >= ResponseStream.limit }

        var isOver: Bool {
            switch phase {
            case .finished, .failed: true
            case .waiting, .receiving: false
            }
        }

        /// Adds a block. Small ones are joined, as each takes far more memory than its bytes.
        mutating func append(_ buffer: ByteBuffer) {
            buffered += buffer.readableBytes
            let last = blocks.count - 1
            if buffer.readableBytes < ResponseStream.small, last >= 0,
                blocks[last].readableBytes < ResponseStream.joined
            {
                blocks[last].writeImmutableBuffer(buffer)
            } else {
                blocks.append(buffer)
            }
        }

        /// Counts moved bytes, and the time for which the reader has waited for them.
        mutating func move(_ bytes: Int, at now: NIODeadline) {
            let wait = waitsSince.map { now - $0 } ?? .zero
            if waitsSince != nil { waitsSince = now }
            for index in paces.indices { paces[index].move(bytes, in: wait) }
        }

        mutating func takeReader() -> CheckedContinuation<Void, Never>? {
            defer { (reader, waitsSince) = (nil, nil) }
            return reader
        }

        mutating func takeCheck() -> Scheduled<Void>? {
            defer { check = nil }
            return check
        }
    }

    private let state: Mutex<State>
    private let loop: any EventLoop
    private let clock: any EventLoop

    /// A response that must keep all of `paces`, by the time of `clock`.
    init(loop: any EventLoop, clock: any EventLoop, _ paces: [Pace]) {
        self.loop = loop
        self.clock = clock
        state = Mutex(State(paces: paces))
    }

    // MARK: - The reader's side

    /// Waits for the head of the response.
    func open() async throws -> HTTPResponseHead {
        guard let head = try await wait(for: \.head) else { throw TransferError.closed }
        return head
    }

    /// Returns everything that has arrived, waiting if necessary; nil at the end of the body.
    func next() async throws -> [ByteBuffer]? {
        let found = try await wait { state -> ([ByteBuffer], ServerConnection?)? in
            guard !state.blocks.isEmpty else { return nil }
            defer { (state.blocks, state.buffered) = ([], 0) }
            return (state.blocks, state.isFull ? state.connection : nil)
        }
        found?.1?.goOn(self)
        return found?.0
    }

    /// Waits until `take` returns something; nil at the end of the body.
    private func wait<Value: Sendable>(for take: @Sendable (inout State) -> Value?) async throws -> Value? {
        while true {
            let outcome = state.withLock { state -> Result<Value?, any Error>? in
                state.isChanged = false
                if let value = take(&state) { return .success(value) }
                switch state.phase {
                case .finished: return .success(nil)
                case .failed(let error): return .failure(error)
                case .waiting, .receiving: return nil
                }
            }
            if let outcome { return try outcome.get() }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let now = clock.now
                    let mustWait = state.withLock { state in
                        if state.isChanged { return false }
                        (state.reader, state.waitsSince) = (continuation, now)
                        return true
                    }
                    if !mustWait { continuation.resume() }
                }
            } onCancel: {
                close()
            }
        }
    }

    /// Whether the connection may read more of the body.
    var hasRoom: Bool { state.withLock { !$0.isFull } }

    var isOver: Bool { state.withLock(\.isOver) }

    /// Whether nothing of the response has arrived.
    var isUntouched: Bool { state.withLock { $0.head == nil } }

    /// Ends the transfer and drops unread bytes.
    func close() {
        end(with: TransferError.cancelled, dropping: true)
    }

    /// Ends the transfer with an error; unread bytes can still be read.
    func fail(_ error: any Error) {
        end(with: error, dropping: false)
    }

    private func end(with error: any Error, dropping: Bool) {
        let (connection, reader, check) = state.withLock { state in
            if dropping { (state.blocks, state.buffered) = ([], 0) }
            let connection = state.isOver ? nil : state.connection
            if !state.isOver { state.phase = .failed(error) }
            (state.connection, state.isChanged) = (nil, true)
            return (connection, state.takeReader(), state.takeCheck())
        }
        connection?.end(self)
        check?.cancel()
        reader?.resume()
    }

    // MARK: - The connection's side

    /// The request is about to be sent.
    func begin(on connection: ServerConnection) {
        let isOver = state.withLock { state in
            state.connection = connection
            return state.isOver
        }
        if isOver { return connection.end(self) }
        checkPaces()
    }

    /// A number of bytes of the request's body were sent.
    func sent(_ count: Int) {
        let now = clock.now
        state.withLock { $0.move(count, at: now) }
    }

    func receive(_ head: HTTPResponseHead) {
        update { state in
            guard case .waiting = state.phase else { return 0 }
            (state.phase, state.head) = (.receiving, head)
            // The head counts as a sign of life.
            return 1
        }
    }

    /// Receives a part of the body.
    func receive(_ buffer: ByteBuffer) {
        update { state in
            guard case .receiving = state.phase, buffer.readableBytes > 0 else { return 0 }
            state.append(buffer.compact)
            return buffer.readableBytes
        }
    }

    func receive(_ error: any Error) {
        update { state in
            if !state.isOver { state.phase = .failed(error) }
            return 0
        }
    }

    func finish() {
        update { state in
            if case .receiving = state.phase { state.phase = .finished }
            return 0
        }
    }

    /// Changes the state and wakes the reader; `change` returns the number of moved bytes.
    private func update(_ change: (inout State) -> Int) {
        let now = clock.now
        let (reader, check) = state.withLock { state in
            state.isChanged = true
            state.move(change(&state), at: now)
            guard state.isOver else { return (state.takeReader(), Scheduled<Void>?.none) }
            state.connection = nil
            return (state.takeReader(), state.takeCheck())
        }
        check?.cancel()
        // After this read of the socket is complete, so that a small response wakes the reader once.
        if let reader { loop.execute { reader.resume() } }
    }

    // MARK: - Slow servers

    /// Fails the response if it is too slow; otherwise checks again when it could be.
    private func checkPaces() {
        let now = clock.now
        let (failure, delay) = state.withLock { state in
            state.move(0, at: now)
            return (state.paces.first { $0.isMissed }?.error, state.paces.map(\.rest).min())
        }
        if let failure { return fail(failure) }
        guard let delay else { return }
        let check = clock.scheduleTask(in: delay) { [weak self] () -> Void in self?.checkPaces() }
        let isOver = state.withLock { state in
            if !state.isOver { state.check = check }
            return state.isOver
        }
        if isOver { check.cancel() }
    }
}

/// The bytes that a server must move in a time; time counts only while the reader waits.
struct Pace: Sendable {
    let bytes: Int
    let time: TimeAmount
    let error: TransferError
    private var moved = 0
    private var waited = TimeAmount.zero

    init(_ bytes: Int, in time: TimeAmount, or error: TransferError) {
        self.bytes = bytes
        self.time = time
        self.error = error
    }

    var isMissed: Bool { waited >= time }
    /// The time until the server is too slow, if nothing moves.
    var rest: TimeAmount { time - waited }

    mutating func move(_ count: Int, in wait: TimeAmount) {
        moved = moved.saturatingAdding(count)
        waited = waited + wait
        if moved >= bytes { (moved, waited) = (0, .zero) }
    }
}

extension ByteBuffer {
    /// The same bytes, copied if they are a small part of the memory that they keep.
    ///
    /// A part of a body keeps everything that was read with it, and a server may send much else, as extensions of
    /// chunks.
    fileprivate var compact: ByteBuffer {
        guard readableBytes < storageCapacity / 8 else { return self }
        var copy = ByteBuffer()
        copy.writeImmutableBuffer(self)
        return copy
    }
}
