import NIOCore
import Synchronization

/// A request to a ``ScriptedOrigin`` that a test answers piece by piece.
package final class OriginExchange: Sendable {
    package let request: OriginLog.Entry
    private let channel: any Channel
    private let goOn: @Sendable () -> Void
    private let isOver = Atomic(false)

    init(_ request: OriginLog.Entry, _ channel: any Channel, _ goOn: @escaping @Sendable () -> Void) {
        (self.request, self.channel, self.goOn) = (request, channel, goOn)
    }

    /// Sends bytes as they are; the exchange stays open.
    package func send(_ bytes: [UInt8]) { channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }

    /// Ends the answer, and takes the next request of the connection.
    package func finish() {
        isOver.store(true, ordering: .releasing)
        channel.eventLoop.execute(goOn)
    }

    /// Ends the connection behind what was sent.
    package func close() {
        isOver.store(true, ordering: .releasing)
        channel.writeAndFlush(ByteBuffer()).whenComplete { [channel] _ in channel.close(promise: nil) }
    }

    /// Calls `body` if the client goes away before the exchange is over.
    package func whenClientLeaves(_ body: @escaping @Sendable () -> Void) {
        channel.closeFuture.whenComplete { _ in if !self.isOver.load(ordering: .acquiring) { body() } }
    }
}
