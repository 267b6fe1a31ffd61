import NIOCore
import NIOPosix
import Synchronization

/// A server that gives each connection the next of some answers, whatever it asks, and closes it behind that.
final class FuzzedServer: Sendable {
    /// Loopback, but not where anything else listens that a redirect could lead to.
    static let host = "127.0.0.77"

    private let answers: Answers
    let port: Int

    init() throws {
        let answers = Answers()
        let channel = try ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.backlog, value: 1024)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AnswerHandler(answers))
                }
            }
            .bind(host: Self.host, port: 0).wait()
        self.answers = answers
        port = channel.localAddress?.port ?? 0
    }

    /// Begins anew with these answers.
    func serve(_ texts: [ByteBuffer]) { answers.state.withLock { $0 = (texts, 0) } }
}

/// The answers, in turn.
private final class Answers: Sendable {
    let state = Mutex<(texts: [ByteBuffer], next: Int)>(([], 0))

    func next() -> ByteBuffer {
        state.withLock { state in
            guard !state.texts.isEmpty else { return ByteBuffer() }
            defer { state.next += 1 }
            return state.texts[state.next % state.texts.count]
        }
    }
}

/// Answers one request.
private final class AnswerHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let answers: Answers
    private var request = ByteBuffer()
    private var isAnswered = false

    init(_ answers: Answers) {
        self.answers = answers
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        request.writeImmutableBuffer(unwrapInboundIn(data))
        guard !isAnswered, String(buffer: request).hasSuffix("\r\n\r\n") else { return }
        isAnswered = true
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.writeAndFlush(wrapOutboundOut(answers.next())).whenComplete { _ in bound.value.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
