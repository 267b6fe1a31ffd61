import SystemPackage
import Glibc
import JobModel
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

extension JobError {
    /// The error for what went wrong between here and the server of `url`.
    init(transport error: any Error, to url: RequestURL) {
        let name = SourceMessage.quoted(url)
        switch error {
        case let error as JobError: self = error
        case is CancellationError, TransferError.cancelled:
            self.init(.cancelled, "The transfer of \(name) was cancelled; start it again if it is needed.")
        case TransferError.closed, NIOSSLError.uncleanShutdown, HTTPParserError.invalidEOFState,
            ChannelError.ioOnClosedChannel, ChannelError.alreadyClosed, ChannelError.eof:
            self.init(
                .network, "\(url.hostAndPort) closed the connection before \(name) was complete; try again.",
                retryable: true)
        case TransferError.idle:
            self.init(
                .timeout, "\(name) moved nothing for too long; try again, or raise http.idleTimeout.", retryable: true)
        case TransferError.slow(let bytes, let seconds):
            self.init(
                .timeout,
                "\(name) moved fewer than \(bytes) bytes in \(SourceMessage.seconds(seconds)); try again, or change http.lowSpeed.",
                retryable: true)
        case TransferError.proxy(let reason):
            self.init(
                .connect, "The proxy did not connect to \(url.hostAndPort), as \(reason); check http.proxy.",
                retryable: true)
        case ChannelError.connectTimeout: self.init(connectTimeout: url)
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError: self.init(tls: error, url)
        case HTTPParserError.headerOverflow: self.init(headerOf: url, largerThan: nil)
        case HTTPParserError.invalidHeaderToken:
            self.init(
                .network, "\(name) could not be asked for, or its answer has header fields that are none; check them.",
                retryable: true)
        case let error as HTTPParserError:
            self.init(
                .network, "The answer of \(name) is no valid HTTP (\(error)); try again or tell its administrator.",
                retryable: true)
        case Inflater.Failure.tooLarge: self.init(bodyOf: url, largerThan: nil)
        case let error as Inflater.Failure:
            self.init(
                .network, "The compressed body of \(name) is damaged (\(error)); try again.", retryable: true)
        case let error as IOError where Self.isRefusal(error.errnoCode):
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

    /// The same where it was the first of the server's addresses that could not be connected to.
    init(connecting error: any Error, to url: RequestURL) {
        self.init(transport: (error as? NIOConnectionError)?.connectionErrors.first?.error ?? error, to: url)
    }

    private init(tls error: any Error, _ url: RequestURL) {
        let message: String
        if (error as? NIOSSLExtraError) == .failedToValidateHostname {
            message = "The certificate of \(url.hostAndPort) is for another name; check the URL."
        } else if "\(error)".contains("CERTIFICATE_VERIFY_FAILED") {
            message =
                "The certificate of \(url.hostAndPort) cannot be trusted: it is self-signed, has expired, or is of an "
                + "authority that is unknown here; check it."
        } else {
            message = "\(url.hostAndPort) did not speak TLS as it should (\(error)); check the port."
        }
        self.init(.tls, message)
    }

    /// Whether `error` says that the other end has closed the connection.
    static func isClosed(_ error: any Error) -> Bool {
        switch error {
        case TransferError.closed, NIOSSLError.uncleanShutdown, ChannelError.ioOnClosedChannel,
            ChannelError.alreadyClosed:
            true
        case let error as IOError: [ECONNRESET, EPIPE].contains(error.errnoCode)
        default: false
        }
    }

    private static func isRefusal(_ code: Int32) -> Bool {
        [ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EADDRNOTAVAIL, EACCES, EPERM, ETIMEDOUT, EMFILE, ENFILE].contains(
            code)
    }

    /// Connecting took longer than `http.connectTimeout`.
    init(connectTimeout url: RequestURL) {
        self.init(
            .connect, "Connecting to \(url.hostAndPort) took too long; try again later, or raise http.connectTimeout.",
            retryable: true)
    }

    /// The same for TLS.
    init(tlsTimeout url: RequestURL) {
        self.init(.tls, "\(url.hostAndPort) did not finish its TLS handshake in time; check the port.")
    }

    /// The header of the response is larger than `limit`, or than the HTTP parser takes.
    init(headerOf url: RequestURL, largerThan limit: Int?) {
        let size = limit.map { "\($0) bytes" } ?? "allowed"
        self.init(
            .tooLarge,
            "The header of \(SourceMessage.quoted(url)) is larger than \(size); raise limits.header to take it.")
    }

    /// The body of the response is larger than `limit`.
    init(bodyOf url: RequestURL, largerThan limit: Int?) {
        let size = limit.map { "\($0) bytes" } ?? "limits.body"
        self.init(
            .tooLarge,
            "The body of \(SourceMessage.quoted(url)) is larger than \(size); use a download, or raise limits.body.")
    }
}

extension IncomingResponse {
    /// Status and reason as an error carries them.
    var httpStatus: JobError.HTTPStatus {
        // The HTTP parser keeps no reasons and knows them all but this one.
        JobError.HTTPStatus(status: status, reason: status == 425 ? "Too Early" : head.status.reasonPhrase)
    }

    /// The failure that a status other than success is.
    var statusError: JobError {
        let advice =
            switch status {
            case 401, 403, 407: "check the credentials"
            case 404, 410: "check the URL"
            case 408, 425, 429, 500...599: "try again later"
            case 301, 302, 303: "check the URL"
            case 304: "ask with ifNoneMatch or ifModifiedSince"
            default: "check the request"
            }
        let reason = httpStatus.reason
        var error = JobError(
            .http,
            "\(SourceMessage.quoted(url)) was answered with \(status)\(reason.isEmpty ? "" : " " + reason); \(advice).",
            retryable: [408, 425, 429, 500, 502, 503, 504].contains(status), http: httpStatus)
        error.retryAfter = retryAfter
        error.retryAfterHost = url.hostAndPort
        return error
    }
}

/// How a transfer ends that is neither the network's nor the parser's error.
enum TransferError: Error, Equatable {
    /// It was broken off from here.
    case cancelled
    /// The server closed the connection.
    case closed
    /// The server was silent for too long.
    case idle
    /// The server moved fewer bytes than it must in that many seconds.
    case slow(bytes: Int, seconds: Double)
    /// The proxy did not connect, for a reason that is a clause.
    case proxy(String)
}
