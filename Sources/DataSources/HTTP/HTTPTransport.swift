import JobModel
import LoopTasks
import NIOCore

/// Sends requests and follows redirects, over connections that all sources share.
final class HTTPTransport: Sendable {
    let pool: ConnectionPool
    private let connector: ServerConnector
    private let policy: AccessPolicy
    private let settings: HTTPSettings
    private let limits: JobLimits

    init(_ settings: SourceSettings, _ policy: AccessPolicy, _ shared: SharedServices) throws(JobError) {
        pool = ConnectionPool(timers: shared.timers)
        connector = try ServerConnector(settings.http, policy, pool, shared)
        self.policy = policy
        self.settings = settings.http
        limits = settings.limits
    }

    /// Sends `request`, follows redirects, and returns the response, which the caller closes.
    func open(_ request: OutgoingRequest, _ transfer: Transfer) async throws(JobError) -> IncomingResponse {
        var request = request
        request.fill("User-Agent", settings.userAgent)
        request.authorize(by: settings.credentials, for: transfer.owner)
        var cookies = CookieJar()
        var followed = 0
        while true {
            try policy.check(request.url)
            request.proxy = connector.proxy(for: request.url).flatMap { $0.forwards(request.url) ? $0 : nil }
            let response = try await exchange(request, transfer)
            guard [301, 302, 303, 307, 308].contains(response.status), !request.ends(at: response.status),
                let location = response.location
            else { return response }
            await response.discard()
            func failure(_ what: String) -> JobError {
                let message = "\(SourceMessage.quoted(response.url)) redirects \(what); check the URL."
                return JobError(.http, message, http: response.httpStatus)
            }
            guard followed < settings.redirects else { throw failure("again after \(settings.redirects) redirects") }
            guard let url = try policy.url(location, on: request.url) else {
                throw failure("to \(SourceMessage.quoted(noURL: location)), which is not a URL")
            }
            cookies.store(response.head.headers["Set-Cookie"], from: request.url)
            request = request.following(UInt(response.status), to: url)
            request.cookies = cookies.header(for: url)
            followed += 1
        }
    }

    private func exchange(_ request: OutgoingRequest, _ transfer: Transfer) async throws(JobError) -> IncomingResponse {
        let head = try request.head()
        // A stopped transfer sends nothing more.
        try transfer.control.check()
        let key = ConnectionPool.Key(
            loop: ObjectIdentifier(transfer.loop), origin: request.url.origin, owner: transfer.owner)
        var idle = pool.connection(key, mayBeStale: request.canBeSentTwice)
        while true {
            let connection = if let idle { idle } else { try await connector.connect(to: request.url, key, transfer) }
            let stream = ResponseStream(
                request.url, transfer.control, loop: transfer.loop,
                idleTimeout: .seconds(saturating: request.idleTimeout ?? settings.idleTimeout),
                settings.lowSpeed.seconds > 0 && !request.isPart ? Pace(settings.lowSpeed) : nil)
            connection.begin(request, head, stream, longestHeader: limits.header)
            do {
                let head = try await stream.open()
                if request.proxy != nil, head.status == 407 { throw TransferError.proxy(ProxyAddress.unauthorized) }
                return try IncomingResponse(
                    head: head, stream: stream, transfer,
                    decodingUpTo: request.coding == .decoded ? limits.body : nil, hasOwnCodings: request.hasOwnCodings)
            } catch {
                stream.close()
                // A server may close an idle connection at the moment of its reuse.
                guard idle != nil, stream.isUntouched, request.canBeSentTwice, JobError.isClosed(error) else {
                    throw JobError(transport: error, to: request.url)
                }
                idle = nil
            }
        }
    }
}
