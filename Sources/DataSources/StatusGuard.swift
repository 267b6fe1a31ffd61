import NIOCore
import NIOHTTP1

/// Ends a connection whose server answers with a status that ends no exchange.
///
/// The HTTP client takes it for granted that none comes to it: informational ones are dropped before, but for 101, and
/// 099 is one that the parser lets pass.
final class StatusGuard: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart

    static func use(on channel: any Channel) throws {
        let pipeline = channel.pipeline.syncOperations
        let parser = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
        try pipeline.addHandler(StatusGuard(), position: .after(parser))
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .head(let head) = unwrapInboundIn(data), head.status.code < 200 {
            context.fireErrorCaught(HTTPParserError.invalidStatus)
            return context.close(promise: nil)
        }
        context.fireChannelRead(data)
    }
}
