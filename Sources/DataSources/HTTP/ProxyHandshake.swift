import JobModel

/// The conversation with a proxy before it forwards bytes: HTTP's CONNECT, or SOCKS version 5.
///
/// It has begun, then (with SOCKS) greeted the proxy, and is over. Bytes in, action out.
struct ProxyHandshake {
    enum Action: Equatable {
        case send([UInt8])
        case wait
        /// The proxy forwards; `rest` are the bytes behind its answer.
        case done(rest: [UInt8])
        /// The reason, as a clause.
        case failed(String)
    }

    private enum State {
        case begun
        case greeted
        case over
    }

    /// The longest answer of a proxy.
    static let limit = 16 << 10

    private let proxy: ProxyAddress
    private let host: RequestURL.Host
    private let port: Int
    private var state = State.begun
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
        switch action {
        case .wait where received.count > Self.limit:
            state = .over
            return .failed("its answer has no end")
        case .done, .failed: state = .over
        case .send, .wait: break
        }
        return action
    }

    private func receiveHTTP() -> Action {
        guard case .begun = state else { return .failed("it answered twice") }
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
        switch state {
        case .begun:
            guard received.count >= 2 else { return .wait }
            guard received[0] == 5, received[1] == 0 else { return .failed("it takes no client without a password") }
            received.removeFirst(2)
            state = .greeted
            return .send(socksRequest)
        case .greeted:
            guard received.count >= 2 else { return .wait }
            guard received[0] == 5, received[1] == 0 else { return .failed("it answered with \(received[1])") }
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
        case .over: return .failed("it answered twice")
        }
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
