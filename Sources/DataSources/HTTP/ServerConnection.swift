import NIOCore
import NIOHTTP1
import Synchronization

/// One connection to a server, which carries one exchange after the other.
///
/// States: `idle`, and `busy` with the stream of an exchange; `closed` is terminal. All but ``end(_:)`` and ``goOn(_:)``
/// is called on the connection's event loop. What a server sends while nothing was asked for ends the connection.
final class ServerConnection: ChannelDuplexHandler, Sendable {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundIn = HTTPClientRequestPart
    typealias OutboundOut = HTTPClientRequestPart

    private struct State {
        var stream: ResponseStream?
        /// Whether the request is out as a whole.
        var isSent = false
        /// Whether the server has answered with an error before it had it all.
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

    // MARK: Exchanges

    /// Sends `request`; what answers it goes to `stream`.
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
        case .file(let file): send(file.reader(), stream)
        }
    }

    /// Whether what belongs to `stream` is still to be sent.
    private func isSending(_ stream: ResponseStream) -> Bool {
        state.withLock { $0.stream === stream && !$0.isRefused }
    }

    /// Sends a block and calls `finished` once the network has taken it, which shows that the server is not idle.
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

    /// Sends the blocks of a file one after the other, each while the next is read.
    private func send(_ reader: OutgoingFile.Reader, _ stream: ResponseStream) {
        reader.next(on: channel.eventLoop).whenComplete { result in
            guard self.isSending(stream) else { return }
            switch result {
            case .success(let block?):
                reader.readAhead(on: self.channel.eventLoop)
                self.send(block, stream) {
                    reader.sent(block.readableBytes)
                    self.send(reader, stream)
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
            guard isPresent else { return }
            switch result {
            case .success: stream.sent(0)
            case .failure(let error): self.fail(error)
            }
        }
    }

    /// Breaks off the exchange that `stream` belongs to, if it is still going on. May be called from any thread.
    func end(_ stream: ResponseStream) {
        let isPresent = state.withLock { state in
            guard state.stream === stream else { return false }
            state.stream = nil
            return true
        }
        if isPresent { channel.close(promise: nil) }
    }

    /// Reads on, as `stream` has room again. May be called from any thread.
    func goOn(_ stream: ResponseStream) {
        let mustRead = state.withLock { state in
            guard state.stream === stream else { return false }
            defer { state.mustRead = false }
            return state.mustRead
        }
        if mustRead { channel.read() }
    }

    private func fail(_ error: any Error) {
        let stream = state.withLock { state in
            defer { state.stream = nil }
            return state.stream
        }
        channel.close(promise: nil)
        stream?.receive(error)
    }

    // MARK: The channel's events

    func read(context: ChannelHandlerContext) {
        guard let stream = state.withLock({ $0.stream }), !stream.hasRoom else { return context.read() }
        state.withLock { $0.mustRead = true }
        // It may have been read meanwhile.
        if stream.hasRoom { goOn(stream) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let stream = state.withLock({ $0.stream }) else { return context.close(promise: nil) }
        switch unwrapInboundIn(data) {
        case .head(let head):
            // Informational ones were dropped before, but for 101; and the parser lets 099 pass.
            guard head.status.code >= 200 else { return fail(HTTPParserError.invalidStatus) }
            state.withLock { state in
                state.isKept = head.isKeepAlive
                state.isRefused = !state.isSent && head.status.code >= 300
            }
            stream.receive(head)
        case .body(let buffer): stream.receive(buffer)
        case .end:
            let (isReusable, mustRead) = state.withLock { state in
                // Reads must go on here even if this stream had no room: the next response, or the server's closing,
                // comes now.
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
