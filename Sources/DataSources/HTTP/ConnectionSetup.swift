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
        // No effect if the step is done.
        promise.fail(TransferError.closed)
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

    func handlerAdded(context: ChannelHandlerContext) {
        send(handshake.greeting, context)
    }

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
    /// Whether a certificate is for `host`.
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

/// The configured proxy.
struct ProxyAddress: Sendable {
    enum Kind: Sendable {
        case http
        case socks
    }

    let kind: Kind
    let host: RequestURL.Host
    let port: Int
    /// `user:password`, for an HTTP proxy only.
    let credentials: String?

    init(_ text: String) throws(JobError) {
        let isSocks = text.lowercased().hasPrefix("socks5://")
        guard let url = RequestURL(text), isSocks || url.scheme == "http", url.target == "/",
            !isSocks || url.credentials == nil
        else {
            throw JobError(
                .invalid,
                "\(SourceMessage.quoted(text)) in http.proxy is not a proxy; write http://host:port or socks5://host:port."
            )
        }
        kind = isSocks ? .socks : .http
        host = url.host
        // `RequestURL` gives URLs of other schemes the port of http.
        port = isSocks && url.port == 80 ? 1080 : url.port
        credentials = url.credentials
    }
}

/// The conversation with a proxy before it forwards bytes: HTTP's CONNECT, or SOCKS version 5.
///
/// Bytes in, action out; the conversation is over with the first `done` or `failed`.
struct ProxyHandshake {
    enum Action: Equatable {
        case send([UInt8])
        case wait
        /// The proxy forwards; `rest` are the bytes behind its answer.
        case done(rest: [UInt8])
        /// The reason, as a clause.
        case failed(String)
    }

    /// The longest answer of a proxy.
    static let limit = 16 << 10

    private let proxy: ProxyAddress
    private let host: RequestURL.Host
    private let port: Int
    /// Whether a SOCKS proxy has returned the greeting.
    private var isGreeted = false
    private var received: [UInt8] = []

    init(to url: RequestURL, by proxy: ProxyAddress) {
        self.proxy = proxy
        host = url.host
        port = url.port
    }

    /// The first bytes to send.
    var greeting: [UInt8] {
        switch proxy.kind {
        case .socks: return [5, 1, 0]
        case .http:
            let authority = "\(RequestURL.text(of: host)):\(port)"
            var lines = ["CONNECT \(authority) HTTP/1.1", "Host: \(authority)"]
            if let credentials = proxy.credentials {
                lines.append("Proxy-Authorization: Basic \(Base64.encode(Array(credentials.utf8)))")
            }
            return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
        }
    }

    mutating func receive(_ bytes: some Sequence<UInt8>) -> Action {
        received += bytes
        let action =
            switch proxy.kind {
            case .http: receiveHTTP()
            case .socks: receiveSOCKS()
            }
        return action == .wait && received.count > Self.limit ? .failed("its answer has no end") : action
    }

    private func receiveHTTP() -> Action {
        guard let end = received.firstRange(of: Array("\r\n\r\n".utf8)) else { return .wait }
        let line = String(decoding: received.prefix { $0 != 0x0D }, as: UTF8.self)
        let words = line.split(separator: " ", maxSplits: 2)
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), words[1].utf8.count == 3,
            let status = Decimal.number(words[1])
        else { return .failed("its answer is not HTTP") }
        guard (200..<300).contains(status) else { return .failed("it answered with \(status)") }
        return .done(rest: Array(received[end.upperBound...]))
    }

    private mutating func receiveSOCKS() -> Action {
        guard received.count >= 2 else { return .wait }
        let isAccepted = received[0] == 5 && received[1] == 0
        guard isGreeted else {
            guard isAccepted else { return .failed("it takes no client without a password") }
            received.removeFirst(2)
            isGreeted = true
            return .send(socksRequest)
        }
        guard isAccepted else { return .failed("it answered with \(received[1])") }
        guard received.count >= 5 else { return .wait }
        let address: Int
        switch received[3] {
        case 1: address = 4
        case 3: address = 1 + Int(received[4])
        case 4: address = 16
        default: return .failed("its answer is not SOCKS")
        }
        let length = 4 + address + 2
        return received.count < length ? .wait : .done(rest: Array(received[length...]))
    }

    private var socksRequest: [UInt8] {
        let destination: [UInt8] =
            switch host {
            case .name(let name): [3, UInt8(clamping: name.utf8.count)] + name.utf8.prefix(255)
            case .address(let address): [address.isVersion4 ? 1 : 4] + address.bytes
            }
        return [5, 1, 0] + destination + [UInt8(port >> 8 & 0xFF), UInt8(port & 0xFF)]
    }
}
