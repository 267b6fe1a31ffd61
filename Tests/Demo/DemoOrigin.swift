import NIOCore
import NIOHTTP1
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
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
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
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let resource: @Sendable (String, Int) -> ByteBuffer?
    private var request: HTTPRequestHead?

    init(resource: @escaping @Sendable (String, Int) -> ByteBuffer?) {
        self.resource = resource
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): request = head
        case .body: break
        case .end: if let request { answer(request, context) }
        }
    }

    private func answer(_ request: HTTPRequestHead, _ context: ChannelHandlerContext) {
        var headers: HTTPHeaders = ["ETag": "\"1\"", "Accept-Ranges": "bytes"]
        var status = HTTPResponseStatus.ok
        var body = resource(request.uri, context.localAddress?.port ?? 0) ?? ByteBuffer()
        let size = body.readableBytes
        if size == 0 { status = .notFound }
        // The one form in which deferd asks: from an offset to the end.
        if let range = request.headers.first(name: "Range"), range.hasPrefix("bytes="), range.hasSuffix("-"),
            let start = Int(range.dropFirst(6).dropLast()), (0..<size).contains(start)
        {
            status = .partialContent
            body.moveReaderIndex(forwardBy: start)
            headers.add(name: "Content-Range", value: "bytes \(start)-\(size - 1)/\(size)")
        }
        headers.add(name: "Content-Length", value: "\(body.readableBytes)")
        context.write(wrapOutboundOut(.head(.init(version: .http1_1, status: status, headers: headers))), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}
