import NIOCore
import NIOPosix

/// The server that the demo fetches from: it knows a few resources, and gives parts of them.
///
/// It is made of what the daemon is made of, so that nothing is built for it alone.
final class DemoOrigin: Sendable {
    private let channel: any Channel
    let port: Int

    /// Serves what `resource` has for a path, on loopback.
    init(_ resource: @escaping @Sendable (_ path: String, _ port: Int) -> ByteBuffer?) async throws {
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ResourceHandler(resource: resource))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = channel.localAddress?.port ?? 0
    }

    func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

    func close() async throws { try await channel.close() }
}

/// Answers the requests of one connection.
private final class ResourceHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let resource: @Sendable (String, Int) -> ByteBuffer?
    private var received = ""

    init(resource: @escaping @Sendable (String, Int) -> ByteBuffer?) {
        self.resource = resource
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        received += String(buffer: unwrapInboundIn(data))
        // Nothing here sends a body.
        guard received.hasSuffix("\r\n\r\n") else { return }
        let lines = received.split(separator: "\r\n")
        received = ""
        answer(String(lines[0].split(separator: " ")[1]), lines.dropFirst(), context)
    }

    private func answer(_ path: String, _ fields: ArraySlice<Substring>, _ context: ChannelHandlerContext) {
        var head = "ETag: \"1\"\r\nAccept-Ranges: bytes\r\n"
        var status = "200 OK"
        var body = resource(path, context.localAddress?.port ?? 0) ?? ByteBuffer()
        let size = body.readableBytes
        if size == 0 { status = "404 Not Found" }
        // The one form in which deferd asks: from an offset to the end.
        let range = fields.first { $0.lowercased().hasPrefix("range: bytes=") && $0.hasSuffix("-") }
        if let start = range.flatMap({ Int($0.dropFirst(13).dropLast()) }), (0..<size).contains(start) {
            status = "206 Partial Content"
            body.moveReaderIndex(forwardBy: start)
            head += "Content-Range: bytes \(start)-\(size - 1)/\(size)\r\n"
        }
        head += "Content-Length: \(body.readableBytes)\r\n\r\n"
        context.write(wrapOutboundOut(ByteBuffer(string: "HTTP/1.1 \(status)\r\n\(head)")), promise: nil)
        context.writeAndFlush(wrapOutboundOut(body), promise: nil)
    }
}
