import JobModel
import LoopTasks
import NIOCore
import NIOHTTP1

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
        request.authorize(by: settings.credentials, for: transfer.owner)
        for followed in 0... {
            try policy.check(request.url)
            let response = try await exchange(request, transfer)
            guard [301, 302, 303, 307, 308].contains(response.status), !request.ends(at: response.status),
                let location = response.field("Location")
            else { return response }
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
                    "\(SourceMessage.quoted(request.url)) redirects to \(SourceMessage.quoted(noURL: location)), which is not a URL; check the URL.",
                    http: response.httpStatus)
            }
            request = request.following(UInt(response.status), to: url)
        }
        preconditionFailure("The loop ends by returning or throwing.")
    }

    private func exchange(_ request: OutgoingRequest, _ transfer: Transfer) async throws(JobError) -> IncomingResponse {
        try request.check()
        let key = ConnectionPool.Key(
            loop: ObjectIdentifier(transfer.loop), origin: request.url.origin, owner: transfer.owner)
        if let connection = pool.connection(key) {
            // A server may close an idle connection at the moment of its reuse.
            if let response = try await exchange(request, on: connection, isReused: true, transfer) { return response }
        }
        let connection = try await connector.connect(to: request.url, key, transfer)
        guard let response = try await exchange(request, on: connection, isReused: false, transfer) else {
            preconditionFailure("Only a reused connection can turn out to be closed.")
        }
        return response
    }

    /// Nil if a reused connection turned out to be closed, and the request can be sent again.
    private func exchange(
        _ request: OutgoingRequest, on connection: ServerConnection, isReused: Bool, _ transfer: Transfer
    ) async throws(JobError) -> IncomingResponse? {
        let stream = ResponseStream(loop: transfer.loop, clock: transfer.clock, paces(of: request))
        do throws(JobError) {
            try transfer.control.attach(stream)
        } catch {
            connection.channel.close(promise: nil)
            throw error
        }
        connection.begin(request, stream)
        do {
            let head = try await stream.open()
            let size = head.headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
            guard size <= limits.header else { throw JobError(headerOf: request.url, largerThan: limits.header) }
            return try IncomingResponse(
                url: request.url, head: head, stream: stream, clock: transfer.clock,
                longestPause: settings.retryAfter, decodingUpTo: request.coding == .decoded ? limits.body : nil)
        } catch {
            stream.close()
            if isReused, stream.isUntouched, request.canBeSentTwice, JobError.isClosed(error) { return nil }
            throw JobError(transport: error, to: request.url)
        }
    }

    private func paces(of request: OutgoingRequest) -> [Pace] {
        let idle = Pace(1, in: .seconds(saturating: settings.idleTimeout), or: .idle)
        let lowSpeed = settings.lowSpeed
        guard lowSpeed.seconds > 0, !request.isPart else { return [idle] }
        return [idle, Pace(lowSpeed.bytes, in: .seconds(saturating: lowSpeed.seconds), or: .slow(lowSpeed))]
    }
}
