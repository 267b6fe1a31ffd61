import JobModel
import JobProtocol
import NIOCore

/// Carries out what a ``Conversation`` decides, on the event loop of its channel.
final class ConnectionHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer
    typealias Waiter = CheckedContinuation<Result<JSON, JobClientError>, Never>

    private var conversation: Conversation<Waiter>
    private var framer = LineFramer(limit: JobClient.maximumAnswerBytes)
    private var frames: [LineFramer.Frame] = []
    private let events: JobEvents.Storage
    private var context: ChannelHandlerContext?
    private var isFlushDue = false

    init(events: JobEvents.Storage) {
        conversation = Conversation(limit: JobClient.maximumCalls)
        self.events = events
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    /// Sends a call; calls made in one turn of the event loop go out in one write.
    func call(_ id: Int, line: [UInt8], waiter: Waiter) {
        if let action = conversation.call(id, length: line.count, waiter: waiter) { return carryOut([action]) }
        guard let context else { return }
        context.write(wrapOutboundOut(context.channel.allocator.buffer(bytes: line)), promise: nil)
        guard !isFlushDue else { return }
        isFlushDue = true
        let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.execute {
            bound.value.isFlushDue = false
            bound.value.context?.flush()
        }
    }

    func abandon(_ id: Int) {
        if let action = conversation.abandon(id) { carryOut([action]) }
    }

    func close() { carryOut(conversation.end(nil)) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        unwrapInboundIn(data).withUnsafeReadableBytes { framer.feed($0, into: &frames) }
        for frame in frames { carryOut(conversation.receive(frame)) }
        frames.removeAll(keepingCapacity: true)
    }

    func channelInactive(context: ChannelHandlerContext) {
        carryOut(conversation.end(.closedThere))
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        carryOut(
            conversation.end(
                JobClientError(
                    .closed, "The connection to the daemon failed: \(error). Connect again.", underlying: error)))
    }

    private func carryOut(_ actions: [Conversation<Waiter>.Action]) {
        for action in actions {
            switch action {
            case .answer(let waiter, let result): waiter.resume(returning: result)
            case .deliver(let event):
                guard !events.append(event) else { continue }
                carryOut(
                    conversation.end(
                        JobClientError(
                            .slowReader,
                            "More than \(JobClient.maximumWaitingBytes) bytes of notifications were not read; "
                                + "read them faster or watch less, and connect again.")))
            case .end(let error):
                events.end(error)
                context?.close(promise: nil)
            }
        }
    }
}
