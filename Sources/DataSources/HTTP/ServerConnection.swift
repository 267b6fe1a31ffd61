import NIOCore
import NIOHTTP1
import Synchronization

/// One connection to a server, which carries one exchange after the other.
///
/// It is idle, busy with the stream of an exchange, or closed. Data that a server sends to an idle connection closes
/// it. Except for ``end(_:)`` and ``goOn(_:)``, methods are called on the connection's event loop.
final class ServerConnection: ChannelDuplexHandler, Sendable {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    private struct State {
        var stream: ResponseStream?
        /// Whether the whole request is sent.
        var isSent = false
        /// Whether the server answered with an error before the whole request was sent.
        var isRefused = false
        /// Whether the server keeps the connection after this exchange.
        var isKept = false
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

    /// Sends `request`; the response goes to `stream`.
    func begin(_ request: OutgoingRequest, _ stream: ResponseStream) {
        state.withLock { $0 = State(stream: stream) }
        stream.begin(on: self)
        guard let body = request.body, body.size > 0 else {
            channel.write(HTTPClientRequestPart.head(request.head), promise: nil)
            return finishSending(stream)
        }
        channel.writeAndFlush(HTTPClientRequestPart.head(request.head), promise: nil)
        switch body {
        case .bytes(let bytes): send(ByteBuffer(bytes: bytes), stream) { self.finishSending(stream) }
        case .file(let file): send(file, file.begin(), stream)
        }
    }

    /// Whether the request of `stream` is still to be sent.
    private func isSending(_ stream: ResponseStream) -> Bool {
        state.withLock { $0.stream === stream && !$0.isRefused }
    }

    /// Sends a block; calls `finished` when the network has taken it, which counts as a sign of life.
    private func send(_ block: ByteBuffer, _ stream: ResponseStream, _ finished: @escaping @Sendable () -> Void) {
        channel.writeAndFlush(HTTPClientRequestPart.body(.byteBuffer(block))).whenComplete { result in
            guard self.isSending(stream) else { return }
            switch result {
            case .success:
                stream.sent(block.readableBytes)
                finished()
            case .failure(let error): self.fail(error)
            }
        }
    }

    /// Sends the blocks of a file.
    private func send(_ file: OutgoingFile, _ request: Int, _ stream: ResponseStream) {
        file.next(request, on: channel.eventLoop).whenComplete { result in
            guard self.isSending(stream) else { return }
            switch result {
            case .success(let block?):
                self.send(block, stream) {
                    file.sent(block.readableBytes, request)
                    self.send(file, request, stream)
                }
            case .success(nil): self.finishSending(stream)
            case .failure(let error): self.fail(error)
            }
        }
    }

    private func finishSending(_ stream: ResponseStream) {
        channel.writeAndFlush(HTTPClientRequestPart.end(nil)).whenComplete { result in
            let isPresent = self.state.withLock { state in
                if state.stream === stream { state.isSent = true }
                return state.stream === stream
            }
            if isPresent, case .failure(let error) = result { self.fail(error) }
        }
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
        guard let stream = state.withLock({ $0.stream }) else { return context.close(promise: nil) }
        switch unwrapInboundIn(data) {
        case .head(let head):
            // NIO drops informational responses except for 101, and its parser accepts 099.
            guard head.status.code >= 200 else { return fail(HTTPParserError.invalidStatus) }
            state.withLock { state in
                state.isKept = head.isKeepAlive
                state.isRefused = !state.isSent && head.status.code >= 300
            }
            stream.receive(head)
        case .body(let buffer): stream.receive(buffer)
        case .end:
            let (isReusable, mustRead) = state.withLock { state in
                // Reads must continue even if this stream is full: the next response, or the server's closing, follows.
                defer { (state.stream, state.mustRead) = (nil, false) }
                return (state.isKept && state.isSent, state.mustRead)
            }
            if isReusable { pool.add(self) } else { context.close(promise: nil) }
            if isReusable, mustRead { context.read() }
            stream.finish()
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        fail(error)
    }

    func channelInactive(context: ChannelHandlerContext) {
        pool.remove(self)
        fail(TransferError.closed)
        context.fireChannelInactive()
    }
}
