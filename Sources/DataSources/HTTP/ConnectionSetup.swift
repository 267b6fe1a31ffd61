import JobModel
import NIOCore
import NIOSSL
import NIOTLS

/// A step in setting up a connection; the handler completes its promise and leaves the pipeline.
protocol ConnectionStep: ChannelInboundHandler, RemovableChannelHandler
where InboundIn == ByteBuffer, InboundOut == ByteBuffer {
    var promise: EventLoopPromise<Void> { get }
}

extension ConnectionStep {
    func handlerRemoved(context: ChannelHandlerContext) {
        // The connection has ended; no effect if the step is done.
        promise.fail(TransferError.closed)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        promise.fail(error)
        context.close(promise: nil)
    }
}

/// Talks to a proxy until it forwards bytes.
final class ProxyHandler: ConnectionStep {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    let promise: EventLoopPromise<Void>
    private var handshake: ProxyHandshake

    init(_ handshake: ProxyHandshake, _ promise: EventLoopPromise<Void>) {
        self.handshake = handshake
        self.promise = promise
    }

    func handlerAdded(context: ChannelHandlerContext) { send(handshake.greeting, context) }

    private func send(_ bytes: [UInt8], _ context: ChannelHandlerContext) {
        context.writeAndFlush(NIOAny(ByteBuffer(bytes: bytes)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes: [UInt8] = Array(unwrapInboundIn(data).readableBytesView)
        while true {
            switch handshake.receive(bytes) {
            case .wait: return
            case .send(let answer):
                send(answer, context)
                // The handshake still holds the bytes behind the answer.
                bytes = []
            case .failed(let reason):
                promise.fail(TransferError.proxy(reason))
                return context.close(promise: nil)
            case .done(let rest):
                promise.succeed()
                // The handlers behind this one are added by now.
                if !rest.isEmpty { context.fireChannelRead(wrapInboundOut(ByteBuffer(bytes: rest))) }
                return context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
            }
        }
    }
}

/// Waits until TLS is established with a certificate for the server.
final class HandshakeHandler: ConnectionStep {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    let promise: EventLoopPromise<Void>
    private let host: RequestURL.Host

    init(_ host: RequestURL.Host, _ promise: EventLoopPromise<Void>) {
        self.host = host
        self.promise = promise
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent {
            guard let certificate = try? context.pipeline.syncOperations.nioSSL_peerCertificate(),
                ServerIdentity.of(certificate, includes: host)
            else {
                promise.fail(NIOSSLExtraError.failedToValidateHostname)
                return context.close(promise: nil)
            }
            promise.succeed()
            context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        }
        context.fireUserInboundEventTriggered(event)
    }
}

/// The server that a certificate is for, by RFC 9525: only alternative names of the URL's kind count.
///
/// NIOSSL also accepts the address of the connection, whatever name was asked for, so a false name server or a proxy
/// could impersonate every server.
enum ServerIdentity {
    static func of(_ certificate: NIOSSLCertificate, includes host: RequestURL.Host) -> Bool {
        certificate._subjectAlternativeNames().contains { name in
            switch host {
            case .name(let host): name.nameType == .dnsName && matches(Array(name.contents), host)
            case .address(let address): name.nameType == .ipAddress && Array(name.contents) == address.bytes
            }
        }
    }

    /// Whether a certificate's name matches `host`, in lower case. `*` stands for one whole label, the first, above at
    /// least two others.
    static func matches(_ name: [UInt8], _ host: String) -> Bool {
        guard !name.isEmpty, name.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return false }
        var name = Substring(String(decoding: name, as: UTF8.self).lowercased())
        if name.hasSuffix(".") { name.removeLast() }
        if name == host { return true }
        guard name.hasPrefix("*."), let dot = host.firstIndex(of: "."), dot > host.startIndex else { return false }
        let parent = name.dropFirst()
        return parent == host[dot...] && parent.dropFirst().contains(".")
    }
}
