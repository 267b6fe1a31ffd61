import JobModel
import JobProtocol
import NIOCore

/// The lines of one read, and the memory reserved for a long one.
struct ReadLines: Sendable {
    let frames: [LineFramer.Frame]
    fileprivate let reserved: BudgetCharge?
}

/// Splits a client's input into lines, one array per read.
///
/// The socket is read when ``Connection`` asks for more, until a line is complete. The rest of a long line is read once
/// its user has room for all of it.
final class FrameHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private var framer: LineFramer
    private let connection: Connection
    private var reserved: BudgetCharge?
    /// Whether the client sends nothing more.
    private var hasEnded = false
    /// The largest part of an incomplete line that needs no reservation, in bytes.
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
            // A client that is gone, or sends nothing more, must not keep room from others.
            guard channel.isActive, !handler.value.hasEnded else { return }
            handler.value.reserved = charge
            channel.read()
        }
    }

    private func deliver(_ frames: [LineFramer.Frame]) {
        guard !frames.isEmpty else { return }
        // These lines may wait long, so others should wait for no more memory than these take.
        reserved?.resize(to: frames.reduce(0) { if case .line(let line) = $1 { $0 + line.count } else { $0 } })
        connection.receive(ReadLines(frames: frames, reserved: reserved))
        reserved = nil
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed? = event as? ChannelEvent {
            hasEnded = true
            // A stop of the daemon may cut off the last line.
            if !connection.isShuttingDown {
                var last: [LineFramer.Frame] = []
                framer.finish(into: &last)
                deliver(last)
            }
            connection.inputEnded()
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) { connection.send() }

    func channelInactive(context: ChannelHandlerContext) { connection.inputEnded() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
