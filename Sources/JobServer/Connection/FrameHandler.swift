import JobModel
import JobProtocol
import NIOCore

/// The lines of one read, and what is reserved for a long one of them.
struct ReadLines: Sendable {
    let frames: [LineFramer.Frame]
    fileprivate let reserved: BudgetCharge?
}

/// Cuts what a client sends into lines, one array for each read.
///
/// The socket is read when ``Connection`` asks for more, and then until a line is whole. A long line is read on once its user
/// has room for all of it.
final class FrameHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private var framer: LineFramer
    private let connection: Connection
    private var reserved: BudgetCharge?
    /// The client sends nothing more.
    private var hasEnded = false
    /// Bytes of a line whose end has not come that need no room.
    private static let shortPart = 4 << 10

    init(_ connection: Connection) {
        self.connection = connection
        framer = LineFramer(limit: connection.limits.line)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var frames: [LineFramer.Frame] = []
        framer.limit = connection.limits.line
        unwrapInboundIn(data).withUnsafeReadableBytes { framer.feed($0, into: &frames) }
        if frames.isEmpty { readOn(context) } else { deliver(frames) }
    }

    /// Reads the rest of a line.
    private func readOn(_ context: ChannelHandlerContext) {
        guard framer.partialSize > Self.shortPart, reserved == nil else { return context.read() }
        let (handler, channel) = (NIOLoopBound(self, eventLoop: context.eventLoop), context.channel)
        connection.budget.whenReserved(line: framer.limit, on: context.eventLoop) { charge in
            // A client that has gone, or sends nothing more, keeps no room from others.
            guard channel.isActive, !handler.value.hasEnded else { return }
            handler.value.reserved = charge
            channel.read()
        }
    }

    private func deliver(_ frames: [LineFramer.Frame]) {
        guard !frames.isEmpty else { return }
        // They may wait for long: no other line is to wait for more than they take.
        reserved?.shrink(to: frames.reduce(0) { if case .line(let line) = $1 { $0 + line.count } else { $0 } })
        connection.receive(ReadLines(frames: frames, reserved: reserved))
        reserved = nil
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed? = event as? ChannelEvent {
            hasEnded = true
            // A stop of the daemon has ended the reading in the middle of a line.
            if !connection.isShuttingDown {
                var last: [LineFramer.Frame] = []
                framer.finish(into: &last)
                deliver(last)
            }
            connection.inputEnded()
        }
        context.fireUserInboundEventTriggered(event)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        connection.send()
        context.fireChannelWritabilityChanged()
    }

    func channelInactive(context: ChannelHandlerContext) {
        connection.inputEnded()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { reserved = nil }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        connection.clientLeft()
        context.close(promise: nil)
    }
}
