import DeferredKit
import JobModel
import LoopTasks
import NIOCore
import Synchronization

/// One request and its response: sent and received on an event loop, read by a task in blocks as large as they arrive.
///
/// With ``limit`` unread bytes, the connection stops reading until the reader has taken them. One task calls
/// ``begin(on:_:)``, ``open()``, ``next()`` and ``close()``; each wait of it ends when the transfer is stopped, or when
/// the server is silent or slow for too long.
final class Exchange: Sendable {
    /// The unread bytes at which the connection stops reading.
    static let limit = 1 << 20
    /// Blocks with fewer bytes than `small` are copied together, up to `joined` bytes.
    private static let small = 32 << 10
    private static let joined = 64 << 10

    private struct State {
        var parser: AnswerParser
        /// Until the exchange is over.
        var connection: ServerConnection?
        var isSent = false
        /// Whether the sender waits for the rate of its queue, and the server for the sender.
        var isThrottled = false
        var head: ResponseHead?
        var end: Result<Void, any Error>?
        /// Whether another request may follow on the connection.
        var isKept = false
        var blocks: [ByteBuffer] = []
        var buffered = 0
        /// Whether a read of the connection waits for room.
        var mustRead = false
        /// Whether something happened since the reader last looked.
        var isChanged = false
        var reader: Promise<Void, JobError>?
        /// The bytes that are not counted in the pace yet.
        var moved = 0
        var pace: Pace?

        /// Adds a block. A small one is copied, as it keeps the memory of everything that was read with it, and a
        /// server may send much else, as extensions of chunks.
        mutating func append(_ buffer: ByteBuffer) {
            buffered += buffer.readableBytes
            moved += buffer.readableBytes
            guard buffer.readableBytes < Exchange.small else { return blocks.append(buffer) }
            if blocks.last.map({ $0.readableBytes >= Exchange.joined }) ?? true { blocks.append(ByteBuffer()) }
            blocks[blocks.count - 1].writeImmutableBuffer(buffer)
        }

        mutating func finish(_ result: Result<Void, any Error>) {
            end = end ?? result
            isChanged = true
        }
    }

    let request: OutgoingRequest
    let control: TransferControl
    private let loop: any EventLoop
    private let idleTimeout: TimeAmount
    private let start: NIODeadline
    private let state: Mutex<State>

    /// The server may be silent for `idleTimeout`, and must keep `pace`.
    init(
        of request: OutgoingRequest, _ control: TransferControl, loop: any EventLoop, idleTimeout: TimeAmount,
        _ pace: Pace? = nil, longestHeader: Int
    ) {
        self.request = request
        self.control = control
        self.loop = loop
        self.idleTimeout = idleTimeout
        start = control.clock.now
        let parser = AnswerParser(limit: longestHeader, isHead: request.method == "HEAD")
        state = Mutex(State(parser: parser, pace: pace))
    }

    // MARK: - The request

    /// Sends the request, whose head is `head`. Called on the connection's event loop.
    func begin(on connection: ServerConnection, _ head: ByteBuffer) {
        state.withLock { $0.connection = connection }
        connection.begin(self)
        let channel = connection.channel
        let written = channel.writeAndFlush(head)
        switch request.body {
        case .file(let file) where file.size > 0:
            // The task needs no handle: it stops once the exchange has ended, or at a failed write.
            Task(executorPreference: LoopExecutor(loop)) { await self.send(file, over: channel) }
        case .bytes(let bytes) where !bytes.isEmpty:
            channel.writeAndFlush(ByteBuffer(bytes: bytes)).whenComplete { self.finishSending($0, bytes.count) }
        default: written.whenComplete { self.finishSending($0) }
        }
    }

    private func send(_ file: OutgoingFile, over channel: any Channel) async {
        do {
            let isWhole = try await file.send { block in
                if let rate = file.rate {
                    update { ($0.isThrottled, $0.isChanged) = (true, true) }
                    try await rate.wait(for: block.readableBytes, control)
                    update { ($0.isThrottled, $0.isChanged) = (false, true) }
                }
                guard isSending else { return false }
                try await channel.writeAndFlush(block)
                guard isSending else { return false }
                noteSent(block.readableBytes)
                return true
            }
            if isWhole { state.withLock { $0.isSent = true } }
        } catch {
            fail(error)
        }
    }

    /// Not after an answer with an error.
    private var isSending: Bool { state.withLock { $0.end == nil && ($0.head?.status ?? 0) < 300 } }

    /// The network has taken a part of the body, which counts as a sign of life.
    private func noteSent(_ count: Int) { update { ($0.moved, $0.isChanged) = ($0.moved + count, true) } }

    private func finishSending(_ result: Result<Void, any Error>, _ count: Int = 0) {
        state.withLock { $0.isSent = true }
        if case .failure(let error) = result { return fail(error) }
        if count > 0 { noteSent(count) }
    }

    // MARK: - The response

    /// Waits for the head of the response, whose time began with the request.
    func open() async throws -> ResponseHead {
        guard let head = try await wait(from: start, for: \.head) else { throw TransferError.closed }
        return head
    }

    /// Returns what has arrived, at most `count` bytes, waiting if necessary; nil at the end of the body.
    func next(atMost count: Int = .max) async throws -> [ByteBuffer]? {
        try control.check()
        let found = try await wait(from: control.clock.now) { state -> ([ByteBuffer], ServerConnection?)? in
            guard !state.blocks.isEmpty else { return nil }
            let blocks = state.blocks.removeFirst(bytes: count)
            state.buffered -= blocks.byteCount
            defer { state.mustRead = false }
            return (blocks, state.mustRead ? state.connection : nil)
        }
        found?.1?.channel.read()
        return found?.0
    }

    /// Waits until `take` returns something; nil at the end of the body.
    private func wait<Value: Sendable>(
        from start: NIODeadline, for take: @Sendable (inout State) -> Value?
    ) async throws -> Value? {
        var (start, waited) = (start, TimeAmount.zero)
        while true {
            let (outcome, most) = state.withLock { state -> (Result<Value?, any Error>?, TransferControl.Limit?) in
                state.isChanged = false
                state.pace?.move(state.moved, in: waited)
                state.moved = 0
                if let value = take(&state) { return (.success(value), nil) }
                return (state.end?.map { nil }, state.isThrottled ? nil : limit(from: start, state.pace))
            }
            if let outcome { return try outcome.get() }
            try await control.wait(limit: most) { promise in
                let isChanged = state.withLock { state in
                    if !state.isChanged { state.reader = promise }
                    return state.isChanged
                }
                if isChanged { promise.succeed(()) }
            }
            let now = control.clock.now
            (start, waited) = (now, most == nil ? .zero : now - start)
        }
    }

    /// When the server is too slow unless something moves.
    private func limit(from now: NIODeadline, _ pace: Pace?) -> TransferControl.Limit {
        let rest = pace?.rest ?? idleTimeout
        let error = rest < idleTimeout ? pace?.error : nil
        return TransferControl.Limit(deadline: now + min(rest, idleTimeout)) { [url = request.url] in
            JobError(transport: error ?? .idle, to: url)
        }
    }

    /// Whether nothing of the response has arrived.
    var isUntouched: Bool { state.withLock { $0.head == nil } }

    /// Ends the exchange and drops unread bytes.
    func close() {
        update { state in
            state.finish(.failure(TransferControl.cancelled))
            (state.blocks, state.buffered) = ([], 0)
        }
    }

    // MARK: - The connection's side

    /// Whether the connection may read; otherwise it does once there is room.
    func mayRead() -> Bool {
        state.withLock { state in
            state.mustRead = state.buffered >= Self.limit && state.end == nil
            return !state.mustRead
        }
    }

    func receive(_ bytes: ByteBuffer) {
        update { state in
            guard state.end == nil else { return }
            do throws(AnswerParser.Failure) {
                state.parser.append(bytes)
                while let event = try state.parser.next() {
                    // A sign of life, which a part of a header is not.
                    state.isChanged = true
                    switch event {
                    case .informational: break
                    case .head(let head): (state.head, state.moved) = (head, state.moved + 1)
                    case .body(let block): state.append(block)
                    case .end(let isKept):
                        state.isKept = isKept && state.isSent
                        state.finish(.success(()))
                    }
                }
            } catch {
                state.finish(.failure(error))
            }
        }
    }

    /// Ends the exchange, unless the end of the connection completes the response.
    func fail(_ error: any Error) {
        update { state in
            let isComplete = error as? TransferError == .closed && state.parser.endsWithConnection
            state.finish(isComplete ? .success(()) : .failure(error))
        }
    }

    /// Tells the reader of changes, and the connection of the end.
    private func update(_ change: (inout State) -> Void) {
        typealias Release = (connection: ServerConnection, isKept: Bool, keepAlive: TimeAmount?, mustRead: Bool)
        let (reader, release) = state.withLock { state -> (Promise<Void, JobError>?, Release?) in
            change(&state)
            let reader = state.isChanged ? state.reader.take() : nil
            guard state.end != nil, let connection = state.connection.take() else { return (reader, nil) }
            return (reader, (connection, state.isKept, state.head?.keepAlive, state.mustRead))
        }
        if let (connection, isKept, keepAlive, mustRead) = release {
            connection.end(isKept: isKept, for: keepAlive, mustRead: mustRead)
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
