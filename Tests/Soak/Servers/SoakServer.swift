import NIOCore
import NIOPosix

/// A server on loopback that answers each path as `Behaviour` says, on connections that it closes behind each answer.
final class SoakServer: Sendable {
    private let channel: any Channel
    private let port: Int

    init() async throws {
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.backlog, value: 1024)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(SoakHandler()) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = channel.localAddress?.port ?? 0
    }

    func url(_ behaviour: Behaviour) -> String { "http://127.0.0.1:\(port)/\(behaviour.rawValue)" }

    func close() async throws { try await channel.close() }
}

/// Answers one request: at once, or with one piece after the other for as long as its client reads.
private final class SoakHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var request = ""
    private var isAnswered = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isAnswered else { return }
        request += String(buffer: unwrapInboundIn(data))
        guard request.contains("\r\n\r\n") else { return }
        isAnswered = true
        let path = request.split(separator: " ").dropFirst().first.map { String($0.dropFirst()) } ?? ""
        let start = request.split(separator: "\r\n")
            .first { $0.lowercased().hasPrefix("range: bytes=") }
            .flatMap { Int($0.dropFirst("range: bytes=".count).dropLast()) }
        let answer = Behaviour(rawValue: path)?.answer(from: start ?? 0) ?? .whole("")
        switch answer {
        case .silence: break
        case .whole(let text): send(ByteBuffer(string: text), context)
        case .bytes(let bytes): send(bytes, context)
        case .endless(let head, let piece, let pause):
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: head)), promise: nil)
            goOn(ByteBuffer(string: piece), pause, context)
        }
    }

    private func send(_ bytes: ByteBuffer, _ context: ChannelHandlerContext) {
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.writeAndFlush(wrapOutboundOut(bytes)).whenComplete { _ in bound.value.close(promise: nil) }
    }

    private func goOn(_ piece: ByteBuffer, _ pause: TimeAmount, _ context: ChannelHandlerContext) {
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.writeAndFlush(wrapOutboundOut(piece)).whenSuccess {
            bound.value.1.eventLoop.scheduleTask(in: pause) {
                let (handler, context) = bound.value
                if context.channel.isActive { handler.goOn(piece, pause, context) }
            }
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
