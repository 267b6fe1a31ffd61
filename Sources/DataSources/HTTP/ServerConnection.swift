import NIOCore
import Synchronization

/// One connection to a server, which carries one exchange after the other.
///
/// It is idle, busy with the stream of an exchange, or closed. Data that a server sends to an idle connection closes
/// it. Except for ``end(_:)`` and ``goOn(_:)``, methods are called on the connection's event loop.
final class ServerConnection: ChannelDuplexHandler, Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = Never

    private struct State {
        var stream: ResponseStream?
        var parser = AnswerParser(limit: 0, isHead: false)
        var isSent = false
        /// Whether the server answered with an error before the whole request was sent.
        var isRefused = false
        /// How long the server keeps the connection after this exchange, if it said so.
        var keepAlive: TimeAmount?
        /// Whether a read waits until the stream has room.
        var mustRead = false
    }

    let channel: any Channel
    let key: ConnectionPool.Key
    private let pool: ConnectionPool
    private let state = Mutex(State())

    init(on channel: any Channel, _ key: ConnectionPool.Key, _ pool: ConnectionPool) {
        self.channel = channel
        self.key = key
        self.pool = pool
    }

    // MARK: - Exchanges

    /// Sends `request`, whose head is `head`; the response goes to `stream`.
    func begin(_ request: OutgoingRequest, _ head: ByteBuffer, _ stream: ResponseStream, longestHeader: Int) {
        state.withLock {
            $0 = State(stream: stream, parser: AnswerParser(limit: longestHeader, isHead: request.method == "HEAD"))
        }
        stream.begin(on: self)
        let sending = channel.writeAndFlush(head)
        guard let body = request.body, body.size > 0 else {
            return sending.whenComplete { self.finishSending(stream, $0) }
        }
        switch body {
        case .bytes(let bytes): send(ByteBuffer(bytes: bytes), stream) { self.finishSending(stream) }
        case .file(let file): send(file, file.begin(), stream)
        }
    }

    private func isSending(_ stream: ResponseStream) -> Bool {
        state.withLock { $0.stream === stream && !$0.isRefused }
    }

    /// Sends a block; calls `finished` when the network has taken it, which counts as a sign of life.
    private func send(_ block: ByteBuffer, _ stream: ResponseStream, _ finished: @escaping @Sendable () -> Void) {
        channel.writeAndFlush(block).whenComplete { result in
            guard self.isSending(stream) else { return }
            switch result {
            case .success:
                stream.receiveSign(sent: block.readableBytes)
                finished()
            case .failure(let error): self.fail(error)
            }
        }
    }

    private func send(_ file: OutgoingFile, _ sending: OutgoingFile.Sending, _ stream: ResponseStream) {
        file.next(sending, on: channel.eventLoop).whenComplete { result in
            guard self.isSending(stream) else { return }
            switch result {
            case .success(let block?):
                self.send(block, stream) {
                    file.count(block.readableBytes, sentBy: sending)
                    self.send(file, sending, stream)
                }
            case .success(nil): self.finishSending(stream)
            case .failure(let error): self.fail(error)
            }
        }
    }

    /// The last bytes of the request are sent, or failed to be.
    private func finishSending(_ stream: ResponseStream, _ result: Result<Void, any Error> = .success(())) {
        let isPresent = state.withLock { state in
            if state.stream === stream { state.isSent = true }
            return state.stream === stream
        }
        if isPresent, case .failure(let error) = result { fail(error) }
    }

    /// Ends the exchange of `stream`, if it is still running. May be called on any thread.
    func end(_ stream: ResponseStream) {
        let isPresent = state.withLock { state in
            guard state.stream === stream else { return false }
            state.stream = nil
            return true
        }
        if isPresent { channel.close(promise: nil) }
    }

    /// Continues to read when `stream` has room again. May be called on any thread.
    func goOn(_ stream: ResponseStream) {
        let mustRead = state.withLock { state in
            guard state.stream === stream else { return false }
            defer { state.mustRead = false }
            return state.mustRead
        }
        if mustRead { channel.read() }
    }

    private func fail(_ error: any Error) {
        let stream = state.withLock { $0.stream.take() }
        channel.close(promise: nil)
        stream?.receive(error)
    }

    // MARK: - Events of the channel

    func read(context: ChannelHandlerContext) {
        guard let stream = state.withLock({ $0.stream }), !stream.hasRoom else { return context.read() }
        state.withLock { $0.mustRead = true }
        // The reader may have made room meanwhile.
        if stream.hasRoom { goOn(stream) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        let isAwaited = state.withLock { state in
            state.parser.append(bytes)
            return state.stream != nil
        }
        guard isAwaited else { return context.close(promise: nil) }
        do throws(AnswerParser.Failure) {
            while let (event, stream) = try nextEvent() { receive(event, stream, context) }
        } catch {
            fail(error)
        }
    }

    private func nextEvent() throws(AnswerParser.Failure) -> (AnswerParser.Event, ResponseStream)? {
        try state.withLock { (state) throws(AnswerParser.Failure) in
            guard let stream = state.stream, let event = try state.parser.next() else { return nil }
            return (event, stream)
        }
    }

    private func receive(_ event: AnswerParser.Event, _ stream: ResponseStream, _ context: ChannelHandlerContext) {
        switch event {
        case .informational: stream.receiveSign()
        case .head(let head):
            state.withLock { state in
                state.isRefused = !state.isSent && head.status >= 300
                state.keepAlive = head.keepAlive
            }
            stream.receive(head)
        case .body(let block): stream.receive(block)
        case .end(let isKept):
            let (isReusable, mustRead, keepAlive) = state.withLock { state in
                // Reads must continue even if this stream is full: the server's closing, or the next response, follows.
                defer { (state.stream, state.mustRead) = (nil, false) }
                return (isKept && state.isSent, state.mustRead, state.keepAlive)
            }
            if isReusable { pool.add(self, for: keepAlive) } else { context.close(promise: nil) }
            if isReusable, mustRead { context.read() }
            stream.finish()
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { fail(error) }

    func channelInactive(context: ChannelHandlerContext) {
        pool.remove(self)
        let stream = state.withLock { $0.parser.endsWithConnection ? $0.stream.take() : nil }
        if let stream { stream.finish() } else { fail(TransferError.closed) }
        context.fireChannelInactive()
    }
}
