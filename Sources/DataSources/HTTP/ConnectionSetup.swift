import NIOCore
import NIOTLS

/// Talks to a proxy until it passes bytes on, then leaves the pipeline.
final class ProxyHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var handshake: ProxyHandshake
    private let promise: EventLoopPromise<Void>

    init(_ handshake: ProxyHandshake, _ promise: EventLoopPromise<Void>) {
        self.handshake = handshake
        self.promise = promise
    }

    func handlerAdded(context: ChannelHandlerContext) {
        send(handshake.greeting, context)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        // Where it is through this changes nothing.
        promise.fail(TransferError.closed)
    }

    private func send(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: bytes)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes: [UInt8] = Array(unwrapInboundIn(data).readableBytesView)
        while true {
            switch handshake.receive(bytes) {
            case .wait: return
            case .send(let answer):
                send(answer, context)
                // What came behind that was kept.
                bytes = []
            case .failed(let reason):
                promise.fail(TransferError.proxy(reason))
                return context.close(promise: nil)
            case .done(let rest):
                promise.succeed()
                // Those who come now are in the pipeline already.
                if !rest.isEmpty { context.fireChannelRead(wrapInboundOut(ByteBuffer(bytes: rest))) }
                return context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
            }
        }
    }

    typealias InboundOut = ByteBuffer

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        promise.fail(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        promise.fail(TransferError.closed)
        context.fireChannelInactive()
    }
}

/// Waits until TLS is established, then leaves the pipeline.
final class HandshakeHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let promise: EventLoopPromise<Void>

    init(_ promise: EventLoopPromise<Void>) {
        self.promise = promise
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        promise.fail(TransferError.closed)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent {
            promise.succeed()
            context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        promise.fail(error)
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        promise.fail(TransferError.closed)
        context.fireChannelInactive()
    }
}
