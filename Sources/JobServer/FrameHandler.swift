import JobProtocol
import NIOCore

/// Cuts what a client sends into lines, one array for each read.
final class FrameHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = [LineFramer.Frame]

    private var framer: LineFramer

    init(limit: Int) {
        framer = LineFramer(limit: limit)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        var frames: [LineFramer.Frame] = []
        buffer.withUnsafeReadableBytes { framer.feed($0, into: &frames) }
        if !frames.isEmpty { context.fireChannelRead(wrapInboundOut(frames)) }
    }
}
