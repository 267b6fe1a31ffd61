import NIOCore
import NIOPosix
import NIOSSL
import TestSupport

/// A server on loopback that answers each path according to `Behaviour`, and closes each connection after its answer.
final class SoakServer: Sendable {
    private let channel: any Channel
    private let port: Int
    private let isSecure: Bool

    /// With a `certificate` it speaks TLS.
    init(certificate: String? = nil) async throws {
        let tls = try certificate.map { certificate in
            let chain = [
                NIOSSLCertificateSource.certificate(try NIOSSLCertificate(bytes: Array(certificate.utf8), format: .pem))
            ]
            let key = try NIOSSLPrivateKey(bytes: Array(Certificates.key.utf8), format: .pem)
            return try NIOSSLContext(
                configuration: .makeServerConfiguration(certificateChain: chain, privateKey: .privateKey(key)))
        }
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .serverChannelOption(.backlog, value: 1024)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let tls { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls)) }
                    try channel.pipeline.syncOperations.addHandler(SoakHandler())
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = channel.localAddress?.port ?? 0
        isSecure = tls != nil
    }

    func url(_ behaviour: Behaviour) -> String {
        "\(isSecure ? "https" : "http")://127.0.0.1:\(port)/\(behaviour.rawValue)"
    }
}

/// The servers that the users of a soak ask.
struct SoakServers: Sendable {
    let good: SoakServer
    let hostile: SoakServer
    /// With a certificate that the daemon trusts.
    let secure: SoakServer
    /// With a certificate that is for another name.
    let wrongName: SoakServer

    init() async throws {
        (good, hostile) = (try await SoakServer(), try await SoakServer())
        secure = try await SoakServer(certificate: Certificates.loopback)
        wrongName = try await SoakServer(certificate: Certificates.otherName)
    }
}

/// Answers one request: at once, or with one piece after the other for as long as its client reads.
private final class SoakHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var head = ByteBuffer()
    private var behaviour: Behaviour?
    private var range: ClosedRange<Int>?
    /// Bytes of the body that are yet to come before the answer.
    private var missing = 0
    private var isAnswered = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isAnswered else { return }
        let bytes = unwrapInboundIn(data)
        if behaviour == nil {
            head.writeImmutableBuffer(bytes)
            let view = head.readableBytesView
            guard let end = view.firstRange(of: "\r\n\r\n".utf8) else { return }
            behaviour = readHead(String(decoding: view[..<end.lowerBound], as: UTF8.self))
            missing -= view[end.upperBound...].count
            head = ByteBuffer()
        } else {
            missing -= bytes.readableBytes
        }
        guard let behaviour, missing <= 0 || !behaviour.readsBody else { return }
        isAnswered = true
        switch behaviour.answer(for: range) {
        case .silence: break
        case .whole(let text): send(ByteBuffer(string: text), context)
        case .bytes(let bytes): send(bytes, context)
        case .endless(let head, let piece, let pause):
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: head)), promise: nil)
            goOn(ByteBuffer(string: piece), pause, context)
        }
    }

    private func readHead(_ head: String) -> Behaviour {
        let lines = head.split(separator: "\r\n")
        func field(_ name: String) -> Substring? {
            lines.first { $0.lowercased().hasPrefix(name + ":") }?.dropFirst(name.count + 1).drop { $0 == " " }
        }
        missing = field("content-length").flatMap { Int($0) } ?? 0
        if let text = field("range"), text.hasPrefix("bytes=") {
            let ends = text.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
            let (first, last) = (ends.first.flatMap { Int($0) } ?? 0, ends.last.flatMap { Int($0) } ?? .max)
            if first <= last { range = first...last }
        }
        let path = lines.first?.split(separator: " ").dropFirst().first.map { String($0.dropFirst()) }
        return path.flatMap(Behaviour.init) ?? .silent
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
