import JobProtocol
import NIOCore

/// The lines of one read, counted until they are handled.
struct ReadLines: Sendable {
    let frames: [LineFramer.Frame]
    private let charge: BudgetCharge

    /// What a line takes beside its bytes: an array's head, and its element among the lines.
    private static let lineOverhead = 64

    init(_ frames: [LineFramer.Frame], _ budget: UserBudget) {
        self.frames = frames
        charge = BudgetCharge(.lines, of: frames.reduce(0) { $0 + $1.size + Self.lineOverhead }, in: budget)
    }
}

/// Cuts what a client sends into lines, one array for each read.
///
/// The socket is read when ``Connection`` asks for more, and then until a line is whole. A long line is read on once its user
/// has room for all of it.
final class FrameHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private var framer: LineFramer
    private let connection: Connection
    private let budget: UserBudget
    /// The length of the longest line may change between reads.
    private let limit: () -> Int
    /// Bytes that are reserved for the present line.
    private var reserved = 0
    /// Bytes of a line whose end has not come that need no room.
    private static let shortPart = 4 << 10

    init(_ connection: Connection, limit: @escaping () -> Int, budget: UserBudget) {
        self.connection = connection
        self.limit = limit
        self.budget = budget
        framer = LineFramer(limit: limit())
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var frames: [LineFramer.Frame] = []
        framer.limit = limit()
        unwrapInboundIn(data).withUnsafeReadableBytes { framer.feed($0, into: &frames) }
        deliver(frames)
        if frames.isEmpty { readOn(context) }
    }

    /// Reads the rest of a line.
    private func readOn(_ context: ChannelHandlerContext) {
        guard framer.partialSize > Self.shortPart, reserved == 0 else { return context.read() }
        let (size, channel) = (framer.limit, context.channel)
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        budget.whenReserved(line: size, on: context.eventLoop) {
            handler.value.reserved = size
            if channel.isActive { channel.read() } else { handler.value.giveBack() }
        }
    }

    private func deliver(_ frames: [LineFramer.Frame]) {
        guard !frames.isEmpty else { return }
        connection.receive(ReadLines(frames, budget))
        giveBack()
    }

    private func giveBack() {
        guard reserved > 0 else { return }
        budget.giveBack(line: reserved)
        reserved = 0
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed? = event as? ChannelEvent {
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

    func handlerRemoved(context: ChannelHandlerContext) { giveBack() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        connection.clientLeft()
        context.close(promise: nil)
    }
}

extension LineFramer.Frame {
    fileprivate var size: Int {
        if case .line(let line) = self { line.count } else { 0 }
    }
}
