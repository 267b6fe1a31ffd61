import AsyncHTTPClient
import JobModel
import Logging
import LoopTasks
import NIOCore
import NIOHTTP1
import NIOHTTPCompression
import NIOPosix

/// Sends requests and follows redirects, over connections that all sources share.
///
/// There are two sorts of clients, as decoding is a property of a connection and downloads are stored as they were sent.
///
/// An object, as each step that waits for it would keep a copy of a value.
final class HTTPTransport: Sendable {
    private let decoding: LoopClients
    private let verbatim: LoopClients
    private let policy: AccessPolicy
    private let settings: HTTPSettings
    private let headerLimit: Int
    private let logger: Logger
    private let silent = Logger(label: "silent", factory: { _ in SwiftLogNoOpLogHandler() })

    init(
        _ settings: HTTPSettings, limits: JobLimits, policy: AccessPolicy, group: any EventLoopGroup, logger: Logger
    ) throws(JobError) {
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        configuration.httpVersion = .http1Only
        // The journal and the events of a job tell of it; a span for each request would be made for nobody.
        configuration.tracing.tracer = nil
        configuration.timeout.connect = .seconds(saturating: settings.connectTimeout)
        // How many at a time is decided above, and a failed connection is tried again by the job's own policy.
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 1 << 16
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.connectionPool.idleTimeout = .seconds(30)
        if let proxy = settings.proxy { configuration.proxy = try ProxyAddress(proxy).configuration }
        let isDirect = settings.proxy == nil
        configuration.http1_1ConnectionDebugInitializer = { channel in
            Self.admit(channel, policy: isDirect ? policy : nil)
        }
        verbatim = LoopClients(group, configuration)
        configuration.decompression = .enabled(limit: .size(limits.body))
        decoding = LoopClients(group, configuration)
        self.policy = policy
        self.settings = settings
        headerLimit = limits.header
        self.logger = logger
    }

    /// The HTTP client logs at low levels only, but gathers the particulars of every request for its logger.
    private var clientLogger: Logger { logger.logLevel <= .debug ? logger : silent }

    /// Checks the address that a new connection has really reached, before any request goes out on it.
    private static func admit(_ channel: any Channel, policy: AccessPolicy?) -> EventLoopFuture<Void> {
        do {
            if let policy, let address = channel.remoteAddress?.ipAddress.flatMap({ IPAddress($0) }) {
                try policy.check(address)
            }
            try ReceiveBuffers.use(on: channel)
            try StatusGuard.use(on: channel)
            return channel.eventLoop.makeSucceededVoidFuture()
        } catch {
            // The client forgets a refused connection without closing it, and must do so before it sees it closed.
            channel.eventLoop.execute { channel.close(promise: nil) }
            return channel.eventLoop.makeFailedFuture(error)
        }
    }

    /// Sends `request`, follows its redirects, and returns what answers it; the caller closes that.
    func open(_ request: OutgoingRequest, _ handle: TransferHandle) async throws(JobError) -> IncomingResponse {
        var request = request
        for followed in 0... {
            try policy.check(request.url)
            let response = try await exchange(request, handle)
            guard [301, 302, 303, 307, 308].contains(response.status), let location = response.field("Location") else {
                return response
            }
            await response.discard()
            guard followed < settings.redirects else {
                throw JobError(
                    .http,
                    "\(SourceMessage.quoted(request.url)) redirects again after \(settings.redirects) redirects; check the URL.",
                    http: response.httpStatus)
            }
            guard let url = try policy.url(location, on: request.url) else {
                throw JobError(
                    .http,
                    "\(SourceMessage.quoted(request.url)) redirects to \(SourceMessage.quoted(location)), which is no URL; check the URL.",
                    http: response.httpStatus)
            }
            request = request.following(UInt(response.status), to: url)
        }
        preconditionFailure("The loop ends by returning or throwing.")
    }

    private func exchange(
        _ request: OutgoingRequest, _ handle: TransferHandle
    ) async throws(JobError) -> IncomingResponse {
        let loop = handle.loop
        let stream = ResponseStream(loop: loop, idleTimeout: .seconds(saturating: settings.idleTimeout))
        do {
            try handle.control.attach(stream)
            let outgoing = try request.clientRequest()
            let client =
                switch request.coding {
                case .decoded: decoding[loop]
                case .asSent: verbatim[loop]
                }
            let task = client.execute(
                request: outgoing, delegate: stream, eventLoop: .delegate(on: loop), logger: clientLogger)
            let head = try await stream.open(task)
            let response = IncomingResponse(url: request.url, head: head, stream: stream, loop: loop)
            let size = head.headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
            guard size <= headerLimit else { throw JobError(headerOf: request.url, largerThan: headerLimit) }
            return response
        } catch {
            stream.close()
            throw JobError(transport: error, to: request.url)
        }
    }

    func shutdown() async {
        await decoding.shutdown(logger)
        await verbatim.shutdown(logger)
    }
}
