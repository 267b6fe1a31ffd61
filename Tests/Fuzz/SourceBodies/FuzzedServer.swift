import NIOCore
import NIOPosix
import Synchronization

/// A server that gives each connection one answer to any request, and then closes it.
final class FuzzedServer: Sendable {
    /// Loopback, but not where anything else listens that a redirect could lead to.
    static let host = "127.0.0.77"

    /// The answer to a request; called on an event loop.
    typealias Answers = @Sendable (_ request: String) -> ByteBuffer

    private let answers: Present
    let port: Int

    init() throws {
        let answers = Present()
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

    /// Begins anew with these answers, given in turn.
    func serve(_ texts: [ByteBuffer]) {
        let next = Mutex(0)
        serve { _ in
            let number = next.withLock { next in
                defer { next += 1 }
                return next
            }
            return texts.isEmpty ? ByteBuffer() : texts[number % texts.count]
        }
    }

    /// Begins anew with these answers.
    func serve(_ answers: @escaping Answers) { self.answers.state.withLock { $0 = answers } }

    /// The answers of the present input.
    fileprivate final class Present: Sendable {
        let state = Mutex<Answers> { _ in ByteBuffer() }
    }
}

/// Answers one request.
private final class AnswerHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let answers: FuzzedServer.Present
    private var request = ByteBuffer()
    private var isAnswered = false

    init(_ answers: FuzzedServer.Present) {
        self.answers = answers
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        request.writeImmutableBuffer(unwrapInboundIn(data))
        let text = String(buffer: request)
        guard !isAnswered, Self.isWhole(text) || isOther else { return }
        isAnswered = true
        let answer = answers.state.withLock(\.self)(text)
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.writeAndFlush(wrapOutboundOut(answer)).whenComplete { _ in bound.value.close(promise: nil) }
    }

    /// Whether a request is there with its body, as long as it says. None here is chunked.
    private static func isWhole(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return false }
        let lengths = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n").compactMap {
            line in
            line.lowercased().hasPrefix("content-length: ") ? Int(line.dropFirst("content-length: ".count)) : nil
        }
        return bytes.count >= end.upperBound + (lengths.first ?? 0)
    }

    /// Whether the input is not a request: after a redirect to https, the client begins TLS and waits for the server's
    /// reply.
    private var isOther: Bool { request.readableBytesView.first.map { !(0x41...0x5A).contains($0) } ?? false }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
