import JobModel
import NIOCore

/// The configured proxy, and the hosts that are asked without it.
struct ProxyAddress: Sendable {
    /// Whether it speaks SOCKS, and not HTTP.
    let isSOCKS: Bool
    let host: RequestURL.Host
    let port: Int
    /// `user:password`.
    let credentials: String?

    /// Why a proxy refuses: its user and password must be changed before another attempt can succeed.
    static let unauthorized = "it demands another user and password"

    init(_ text: String) throws(JobError) {
        isSOCKS = text.lowercased().hasPrefix("socks5://")
        guard let url = RequestURL(text), isSOCKS || url.scheme == "http", url.target == "/",
            !isSOCKS || url.credentials?.split(separator: ":", maxSplits: 1).allSatisfy({ $0.utf8.count < 256 }) ?? true
        else {
            throw JobError(
                .invalid,
                "\(SourceMessage.quoted(noURL: text)) in http.proxy is not a proxy; write http://host:port or socks5://host:port, with user:password@ before the host if it needs them."
            )
        }
        host = url.host
        port = url.port
        credentials = url.credentials
    }

    /// Whether it is asked for `url` itself, in a request with the whole URL, and not only for a connection.
    func forwards(_ url: RequestURL) -> Bool { !isSOCKS && url.scheme == "http" }

    var authorization: String? { credentials.map { "Basic " + Base64.encode(Array($0.utf8)) } }
}

/// The hosts that are asked directly although there is a proxy: this machine, and those of `http.noProxy`.
struct ProxyExceptions: Sendable {
    private let hosts: [HostPattern]
    private let blocks: [AddressBlock]

    init(_ texts: [String]) throws(JobError) {
        blocks =
            try AccessPolicy.parsed(PolicySettings.loopback, "http.noProxy", "network", AddressBlock.init)
            + texts.compactMap { AddressBlock($0) }
        hosts = try AccessPolicy.parsed(
            ["localhost", "*.localhost"] + texts.filter { AddressBlock($0) == nil }, "http.noProxy",
            "host; write a name, *.name, an address, or a network such as 10.0.0.0/8"
        ) { IPAddress($0) == nil ? HostPattern($0) : nil }
    }

    func include(_ host: RequestURL.Host) -> Bool {
        if case .address(let address) = host,
            address.aliases.contains(where: { alias in blocks.contains { $0.contains(alias) } })
        {
            return true
        }
        return hosts.contains { $0.matches(host) }
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

    /// What a SOCKS proxy answers next.
    private enum SocksStep {
        case greeting, password, request
    }

    static let limit = 16 << 10

    private let proxy: ProxyAddress
    private let host: RequestURL.Host
    private let port: Int
    private var step = SocksStep.greeting
    private var received: [UInt8] = []

    init(to url: RequestURL, by proxy: ProxyAddress) {
        self.proxy = proxy
        host = url.host
        port = url.port
    }

    var greeting: [UInt8] {
        if proxy.isSOCKS { return proxy.credentials == nil ? [5, 1, 0] : [5, 2, 0, 2] }
        let authority = "\(RequestURL.text(of: host)):\(port)"
        var lines = ["CONNECT \(authority) HTTP/1.1", "Host: \(authority)"]
        if let authorization = proxy.authorization { lines.append("Proxy-Authorization: \(authorization)") }
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    mutating func receive(_ bytes: some Sequence<UInt8>) -> Action {
        received += bytes
        let action = proxy.isSOCKS ? receiveSOCKS() : receiveHTTP()
        return action == .wait && received.count > Self.limit ? .failed("its answer has no end") : action
    }

    private func receiveHTTP() -> Action {
        guard let end = received.firstRange(of: Array("\r\n\r\n".utf8)) else { return .wait }
        let line = String(decoding: received.prefix { $0 != 0x0D }, as: UTF8.self)
        let words = line.split(separator: " ", maxSplits: 2)
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), words[1].utf8.count == 3,
            let status = Decimal.number(words[1])
        else { return .failed("its answer is not HTTP") }
        guard (200..<300).contains(status) else {
            return .failed(status == 407 ? ProxyAddress.unauthorized : "it answered with \(status)")
        }
        return .done(rest: Array(received[end.upperBound...]))
    }

    private mutating func receiveSOCKS() -> Action {
        guard received.count >= 2 else { return .wait }
        let (version, answer) = (received[0], received[1])
        switch step {
        case .greeting:
            guard version == 5, answer == 0 || answer == 2 && proxy.credentials != nil else {
                return .failed(version == 5 ? ProxyAddress.unauthorized : "its answer is not SOCKS")
            }
            received.removeFirst(2)
            step = answer == 2 ? .password : .request
            return .send(answer == 2 ? socksPassword : socksRequest)
        case .password:
            guard answer == 0 else { return .failed(ProxyAddress.unauthorized) }
            received.removeFirst(2)
            step = .request
            return .send(socksRequest)
        case .request: break
        }
        guard version == 5, answer == 0 else { return .failed("it answered with \(answer)") }
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

    /// User and password as RFC 1929 sends them.
    private var socksPassword: [UInt8] {
        let parts = (proxy.credentials ?? "").split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        return [1] + parts.flatMap { [UInt8(clamping: $0.utf8.count)] + Array($0.utf8) }
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

/// Talks to a proxy until it forwards bytes; only then, the handlers behind it learn that the channel is active.
final class ProxyHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private var handshake: ProxyHandshake

    init(_ handshake: ProxyHandshake) { self.handshake = handshake }

    func channelActive(context: ChannelHandlerContext) { send(handshake.greeting, context) }

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
                context.fireErrorCaught(TransferError.proxy(reason))
                return context.close(promise: nil)
            case .done(let rest):
                context.fireChannelActive()
                if !rest.isEmpty { context.fireChannelRead(wrapInboundOut(ByteBuffer(bytes: rest))) }
                return context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
            }
        }
    }
}
