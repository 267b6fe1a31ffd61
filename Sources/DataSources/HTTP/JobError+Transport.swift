import Glibc
import JobModel
import NIOCore
import NIOPosix
import NIOSSL
import SystemPackage

/// How a transfer fails, apart from errors of the network and the parser.
enum TransferError: Error, Equatable {
    case closed
    case idle
    case slow(HTTPSettings.LowSpeed)
    /// The proxy did not connect, for a reason given as a clause.
    case proxy(String)
}

extension JobError {
    /// The error for a failure between here and the server of `url`.
    init(transport error: any Error, to url: RequestURL) {
        let name = SourceMessage.quoted(url)
        // Of several addresses, the first one counts.
        let error = (error as? NIOConnectionError)?.connectionErrors.first?.error ?? error
        switch error {
        case let error as JobError: self = error
        case _ where Self.isClosed(error):
            self.init(
                .network, "\(url.hostAndPort) closed the connection before \(name) was complete; try again.",
                retryable: true)
        case TransferError.idle:
            self.init(
                .timeout, "\(name) moved nothing for too long; try again, or raise http.idleTimeout.", retryable: true)
        case TransferError.slow(let limit):
            self.init(
                .timeout,
                "\(name) moved fewer than \(limit.bytes) bytes in \(SourceMessage.seconds(limit.seconds)); try again, or change http.lowSpeed.",
                retryable: true)
        case TransferError.proxy(let reason):
            self.init(
                .connect, "The proxy did not connect to \(url.hostAndPort), because \(reason); check http.proxy.",
                retryable: reason != ProxyAddress.unauthorized)
        case ChannelError.connectTimeout: self.init(connectTimeout: url)
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError: self.init(tls: error, url)
        case AnswerParser.Failure.longHeader:
            self.init(.tooLarge, "The header of \(name) is larger than allowed; raise limits.header.")
        case AnswerParser.Failure.notHTTP(let line):
            self.init(
                .network,
                "The answer of \(name) is not HTTP: it begins with \(SourceMessage.quoted(noURL: line)); check the URL and its port."
            )
        case AnswerParser.Failure.unsupported(let flaw):
            self.init(.network, "The answer of \(name) cannot be read: \(flaw); tell the server's administrator.")
        case AnswerParser.Failure.malformed(let flaw):
            self.init(
                .network, "The answer of \(name) is not valid HTTP: \(flaw); try again or tell its administrator.",
                retryable: true)
        case Inflater.Failure.tooLarge: self.init(longBodyOf: url)
        case let error as Inflater.Failure:
            self.init(
                .network, "The compressed body of \(name) is damaged (\(error)); try again.", retryable: true)
        case let error as IOError:
            self.init(
                .connect,
                "\(url.hostAndPort) could not be connected to (\(Errno(rawValue: error.errnoCode))); try again later.",
                retryable: true)
        default:
            self.init(
                .network,
                "The connection to \(url.hostAndPort) broke while \(name) was transferred (\(error)); try again.",
                retryable: true)
        }
    }

    private init(tls error: any Error, _ url: RequestURL) {
        let message: String
        if (error as? NIOSSLExtraError) == .failedToValidateHostname {
            message = "The certificate of \(url.hostAndPort) is for another name; check the URL."
        } else if "\(error)".contains("ALERT_CERTIFICATE_REQUIRED") {
            message = "\(url.hostAndPort) asks for a client certificate; configure http.clientCertificates."
        } else if "\(error)".contains("CERTIFICATE_VERIFY_FAILED") {
            message =
                "The certificate of \(url.hostAndPort) is not trusted: it is self-signed, has expired, or comes from an "
                + "unknown authority; check it."
        } else {
            message = "\(url.hostAndPort) failed to speak TLS (\(Self.reason(ofTLS: error))); check the port."
        }
        self.init(.tls, message)
    }

    /// The reason as a clause: that which BoringSSL names, as in `... OPENSSL_internal:WRONG_VERSION_NUMBER at ...`, where it
    /// also names its source files.
    static func reason(ofTLS error: any Error) -> String {
        switch error {
        case let error as IOError: return "\(Errno(rawValue: error.errnoCode))"
        case NIOSSLError.noSuchFilesystemObject: return "there is no such file"
        case NIOSSLError.failedToLoadCertificate: return "it has no valid certificate"
        case NIOSSLError.failedToLoadPrivateKey: return "it has no valid key"
        default: break
        }
        let text = "\(error)"
        guard let mark = text.firstRange(of: "OPENSSL_internal:") else { return "the reason is unknown" }
        let reason = text[mark.upperBound...].prefix { $0.isLetter || $0.isNumber || $0 == "_" }
        return reason.lowercased().replacing("_", with: " ")
    }

    /// Whether `error` says that the other end has closed the connection.
    static func isClosed(_ error: any Error) -> Bool {
        switch error {
        case TransferError.closed, NIOSSLError.uncleanShutdown, ChannelError.ioOnClosedChannel,
            ChannelError.alreadyClosed, ChannelError.eof,
            NIOSSLError.handshakeFailed(.sslError([.eofDuringHandshake])):
            true
        case let error as IOError: [ECONNRESET, EPIPE].contains(error.errnoCode)
        default: false
        }
    }

    init(connectTimeout url: RequestURL, through proxy: ProxyAddress? = nil) {
        let way = proxy.map { " through the proxy \(RequestURL.text(of: $0.host)):\($0.port)" } ?? ""
        self.init(
            .connect,
            "Connecting to \(url.hostAndPort)\(way) took too long; try again later, or raise http.connectTimeout.",
            retryable: true)
    }

    init(longBodyOf url: RequestURL) {
        self.init(
            .tooLarge,
            "The body of \(SourceMessage.quoted(url)) is larger than limits.body; use a download, or raise that limit.")
    }
}
