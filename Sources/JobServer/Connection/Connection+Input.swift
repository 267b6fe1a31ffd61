import JobModel
import JobProtocol
import LoopTasks
import NIOCore
import Synchronization

/// Reads lines from the socket, no more than their user has memory for.
extension Connection {
    enum Input: Sendable {
        /// The bytes of one read.
        case bytes(ByteBuffer)
        /// The memory for the rest of a long line.
        case room(BudgetCharge)
        /// The client sends nothing more.
        case end
    }

    /// The largest part of an incomplete line that needs no reservation, in bytes.
    private static let shortPart = 4 << 10

    /// Executes the calls of all lines; returns once no more come.
    ///
    /// The socket is read until a line is complete, and again once its calls are executed and its user has room for more. The
    /// rest of a long line is read once there is room for all of it.
    func readLines() async {
        var framer = LineFramer(limit: limits.line)
        var frames: [LineFramer.Frame] = []
        var reserved: BudgetCharge?
        budget.whenRoom(on: loop.loop) { [channel] in channel.read() }
        for await part in input.stream {
            framer.limit = limits.line
            switch part {
            case .bytes(let bytes): bytes.withUnsafeReadableBytes { framer.feed($0, into: &frames) }
            case .room(let charge): reserved = charge
            case .end: framer.finish(into: &frames)
            }
            if !frames.isEmpty {
                state.withLock { $0.hasBegun = true }
                // These lines may wait long, so others should wait for no more memory than these take.
                reserved?.resize(to: frames.reduce(0) { if case .line(let line) = $1 { $0 + line.count } else { $0 } })
                await handle(exchange(&frames, with: []))
                reserved = nil
                if isShuttingDown { channel.close(mode: .input, promise: nil) }
                budget.whenRoom(on: loop.loop) { [channel] in channel.read() }
            } else if framer.partialSize > Self.shortPart, reserved == nil {
                // Once no more comes, the memory goes to others.
                budget.whenReserved(line: framer.limit, on: loop.loop) { [input] in
                    input.continuation.yield(.room($0))
                }
            } else {
                channel.read()
            }
        }
    }

    /// Records the end of the input. If the connection is closed, nothing can be sent, so all waiting ends.
    fileprivate func inputEnded() {
        input.continuation.finish()
        guard !channel.isActive else { return }
        outbox.close()
        shutDown()
    }
}

/// Tells a connection of its socket.
final class SocketHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let connection: Connection

    init(_ connection: Connection) { self.connection = connection }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        connection.input.continuation.yield(.bytes(unwrapInboundIn(data)))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard case ChannelEvent.inputClosed? = event as? ChannelEvent else { return }
        // A stop of the daemon may cut off the last line.
        if !connection.isShuttingDown { connection.input.continuation.yield(.end) }
        connection.inputEnded()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) { connection.outbox.write(to: context.channel) }

    func channelInactive(context: ChannelHandlerContext) { connection.inputEnded() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
