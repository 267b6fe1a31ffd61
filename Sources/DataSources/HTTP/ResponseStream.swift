import DeferredKit
import JobModel
import LoopTasks
import NIOCore
import Synchronization

/// One response, received on an event loop and read by a task, in blocks as large as they arrive.
///
/// It waits for the head, then receives the body until it is finished or failed. With ``limit`` unread bytes, the
/// connection stops reading until the reader has taken them. One task calls ``open()``, ``next()`` and ``close()``;
/// each wait of it ends when the transfer is stopped, or when the server is silent or slow for too long.
final class ResponseStream: Sendable {
    /// The unread bytes at which the connection stops reading.
    static let limit = 1 << 20
    /// Blocks with fewer bytes than `small` are copied together, up to `joined` bytes.
    private static let small = 32 << 10
    private static let joined = 64 << 10

    private struct State {
        var head: ResponseHead?
        var end: Result<Void, any Error>?
        var blocks: [ByteBuffer] = []
        var buffered = 0
        /// Whether something happened since the reader last looked.
        var isChanged = false
        var reader: Promise<Void, JobError>?
        var connection: ServerConnection?
        /// The bytes that are not counted in the pace yet.
        var moved = 0
        var pace: Pace?

        var isFull: Bool { buffered >= ResponseStream.limit }

        /// Adds a block. A small one is copied, as it keeps the memory of everything that was read with it, and a
        /// server may send much else, as extensions of chunks.
        mutating func append(_ buffer: ByteBuffer) {
            buffered += buffer.readableBytes
            guard buffer.readableBytes < ResponseStream.small else { return blocks.append(buffer) }
            if blocks.last.map({ $0.readableBytes >= ResponseStream.joined }) ?? true { blocks.append(ByteBuffer()) }
            blocks[blocks.count - 1].writeImmutableBuffer(buffer)
        }
    }

    let url: RequestURL
    let control: TransferControl
    private let loop: any EventLoop
    private let idleTimeout: TimeAmount
    private let start: NIODeadline
    private let state: Mutex<State>

    /// The response to a request for `url`, whose server may be silent for `idleTimeout`, and must keep `pace`.
    init(
        _ url: RequestURL, _ control: TransferControl, loop: any EventLoop, idleTimeout: TimeAmount,
        _ pace: Pace? = nil
    ) {
        self.url = url
        self.control = control
        self.loop = loop
        self.idleTimeout = idleTimeout
        start = control.clock.now
        state = Mutex(State(pace: pace))
    }

    // MARK: - The reader's side

    /// Waits for the head of the response, whose time began with the request.
    func open() async throws -> ResponseHead {
        guard let head = try await wait(from: start, for: \.head) else { throw TransferError.closed }
        return head
    }

    /// Returns everything that has arrived, waiting if necessary; nil at the end of the body.
    func next() async throws -> [ByteBuffer]? {
        try control.check()
        let found = try await wait(from: control.clock.now) { state -> ([ByteBuffer], ServerConnection?)? in
            guard !state.blocks.isEmpty else { return nil }
            defer { (state.blocks, state.buffered) = ([], 0) }
            return (state.blocks, state.isFull ? state.connection : nil)
        }
        found?.1?.goOn(self)
        return found?.0
    }

    /// Waits until `take` returns something; nil at the end of the body.
    private func wait<Value: Sendable>(
        from start: NIODeadline, for take: @Sendable (inout State) -> Value?
    ) async throws -> Value? {
        var (start, waited) = (start, TimeAmount.zero)
        while true {
            let (outcome, pace) = state.withLock { state -> (Result<Value?, any Error>?, Pace?) in
                state.isChanged = false
                state.pace?.move(state.moved, in: waited)
                state.moved = 0
                if let value = take(&state) { return (.success(value), nil) }
                return (state.end?.map { nil }, state.pace)
            }
            if let outcome { return try outcome.get() }
            try await control.wait(limit: limit(from: start, pace)) { promise in
                let isChanged = state.withLock { state in
                    if !state.isChanged { state.reader = promise }
                    return state.isChanged
                }
                if isChanged { promise.succeed(()) }
            }
            let now = control.clock.now
            (start, waited) = (now, now - start)
        }
    }

    /// When the server is too slow unless something moves.
    private func limit(from now: NIODeadline, _ pace: Pace?) -> TransferControl.Limit {
        let rest = pace?.rest ?? idleTimeout
        let error = rest < idleTimeout ? pace?.error : nil
        return TransferControl.Limit(deadline: now + min(rest, idleTimeout)) { [url] in
            JobError(transport: error ?? .idle, to: url)
        }
    }

    /// Whether the connection may read more of the body.
    var hasRoom: Bool { state.withLock { !$0.isFull } }

    /// Whether nothing of the response has arrived.
    var isUntouched: Bool { state.withLock { $0.head == nil } }

    /// Ends the transfer and drops unread bytes.
    func close() {
        let (connection, reader) = state.withLock { state in
            state.end = state.end ?? .failure(TransferControl.cancelled)
            (state.blocks, state.buffered, state.isChanged) = ([], 0, true)
            return (state.connection.take(), state.reader.take())
        }
        connection?.end(self)
        reader?.succeed(())
    }

    // MARK: - The connection's side

    /// The request is about to be sent.
    func begin(on connection: ServerConnection) { state.withLock { $0.connection = connection } }

    /// The server takes bytes of the request's body, or says that it works on the request: signs of life.
    func receiveSign(sent count: Int = 0) { update { $0.moved += count } }

    func receive(_ head: ResponseHead) {
        update { state in
            state.head = head
            state.moved += 1
        }
    }

    func receive(_ buffer: ByteBuffer) {
        update { state in
            state.append(buffer)
            state.moved += buffer.readableBytes
        }
    }

    func receive(_ error: any Error) { update { $0.end = $0.end ?? .failure(error) } }

    func finish() { update { $0.end = $0.end ?? .success(()) } }

    private func update(_ change: (inout State) -> Void) {
        let reader = state.withLock { state in
            change(&state)
            state.isChanged = true
            if state.end != nil { state.connection = nil }
            return state.reader.take()
        }
        // After this read of the socket is complete, so that a small response wakes the reader once.
        if let reader { loop.execute { reader.succeed(()) } }
    }
}

/// The bytes that a server must move in a time: `http.lowSpeed`. Time counts only while the reader waits.
struct Pace: Sendable {
    private let limit: HTTPSettings.LowSpeed
    private var moved = 0
    private var waited = TimeAmount.zero

    init(_ limit: HTTPSettings.LowSpeed) { self.limit = limit }

    /// The time until the server is too slow, if nothing moves.
    var rest: TimeAmount { .seconds(saturating: limit.seconds) - waited }
    var error: TransferError { .slow(limit) }

    mutating func move(_ count: Int, in wait: TimeAmount) {
        moved = moved.saturatingAdding(count)
        waited = waited + wait
        if moved >= limit.bytes { (moved, waited) = (0, .zero) }
    }
}
