import DeferredKit
import NIOCore
import NIOSSL
import NIOTLS
import Synchronization

/// One connection to a server, which carries one exchange after the other.
///
/// It is idle, busy with an exchange, or closed. Data that a server sends to an idle connection closes it.
final class ServerConnection: ChannelDuplexHandler, Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = Never

    let channel: any Channel
    let key: ConnectionPool.Key
    /// Resolved once requests can be sent: behind a proxy when that forwards bytes, with `https` when TLS is established.
    let readiness = Promise<Result<Void, any Error>, Never>()
    private let pool: ConnectionPool
    private let exchange = Mutex<Exchange?>(nil)

    init(on channel: any Channel, _ key: ConnectionPool.Key, _ pool: ConnectionPool) {
        self.channel = channel
        self.key = key
        self.pool = pool
    }

    /// Passes the response to `exchange` from now on. Called on the event loop.
    func begin(_ exchange: Exchange) { self.exchange.withLock { $0 = exchange } }

    /// Ends the exchange: a connection that is kept becomes idle, for at most the time that its server gives it.
    func end(isKept: Bool, for time: TimeAmount?, mustRead: Bool) {
        exchange.withLock { $0 = nil }
        guard isKept else { return channel.close(promise: nil) }
        pool.add(self, for: time)
        // The server's closing, or the next response, follows.
        if mustRead { channel.read() }
    }

    private func fail(_ error: any Error) {
        readiness.succeed(.failure(error))
        exchange.withLock(\.self)?.fail(error)
        channel.close(promise: nil)
    }

    // MARK: - Events of the channel

    func channelActive(context: ChannelHandlerContext) {
        if key.origin.scheme == "http" { readiness.succeed(.success(())) }
        context.fireChannelActive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent {
            let certificate = try? context.pipeline.syncOperations.nioSSL_peerCertificate()
            guard let certificate, ServerIdentity.of(certificate, includes: key.origin.host) else {
                return fail(NIOSSLExtraError.failedToValidateHostname)
            }
            readiness.succeed(.success(()))
        }
        context.fireUserInboundEventTriggered(event)
    }

    func read(context: ChannelHandlerContext) {
        if exchange.withLock(\.self)?.mayRead() ?? true { context.read() }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard let exchange = exchange.withLock(\.self) else { return context.close(promise: nil) }
        exchange.receive(unwrapInboundIn(data))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { fail(error) }

    func channelInactive(context: ChannelHandlerContext) {
        pool.remove(self)
        fail(TransferError.closed)
        context.fireChannelInactive()
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
