import JobModel
import LoopTasks
import NIOCore
import NIOHTTP1

/// Sends requests and follows redirects, over connections that all sources share.
///
/// An object, so that the asynchronous steps that use it share it instead of copying it.
final class HTTPTransport: Sendable {
    private let connector: ServerConnector
    private let pool: ConnectionPool
    private let generation: Int
    private let policy: AccessPolicy
    private let settings: HTTPSettings
    private let headerLimit: Int
    private let bodyLimit: Int
    private let patience: ResponseStream.Patience

    init(_ settings: SourceSettings, _ policy: AccessPolicy, _ shared: SharedServices) throws(JobError) {
        pool = shared.pool
        generation = pool.beginGeneration()
        connector = try ServerConnector(settings.http, policy, shared)
        self.policy = policy
        self.settings = settings.http
        headerLimit = settings.limits.header
        bodyLimit = settings.limits.body
        patience = ResponseStream.Patience(
            idle: .seconds(saturating: settings.http.idleTimeout), lowSpeed: settings.http.lowSpeed)
    }

    /// How many bytes must be moved in how many seconds.
    var lowSpeed: HTTPSettings.LowSpeed { settings.lowSpeed }

    /// Sends `request`, follows its redirects, and returns what answers it; the caller closes that.
    func open(_ request: OutgoingRequest, _ handle: TransferHandle) async throws(JobError) -> IncomingResponse {
        var request = request
        request.authorize(by: settings.credentials, for: handle.owner)
        for followed in 0... {
            try policy.check(request.url)
            let response = try await exchange(request, handle)
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
                    "\(SourceMessage.quoted(request.url)) redirects to \(SourceMessage.quoted(noURL: location)), which is no URL; check the URL.",
                    http: response.httpStatus)
            }
            request = request.following(UInt(response.status), to: url)
        }
        preconditionFailure("The loop ends by returning or throwing.")
    }

    private func exchange(
        _ request: OutgoingRequest, _ handle: TransferHandle
    ) async throws(JobError) -> IncomingResponse {
        try request.check()
        let key = ConnectionPool.Key(
            loop: ObjectIdentifier(handle.loop), origin: request.url.origin, owner: handle.owner,
            generation: generation)
        if let connection = pool.connection(key) {
            // A server may close what is idle at the very moment that it is used again.
            if let response = try await exchange(request, on: connection, isReused: true, handle) { return response }
        }
        let connection = try await connector.connect(to: request.url, key, handle)
        guard let response = try await exchange(request, on: connection, isReused: false, handle) else {
            preconditionFailure("Only a connection that was used before can turn out to be closed.")
        }
        return response
    }

    /// Nil where the connection was used before and turned out to be closed, and the request can be sent once more.
    private func exchange(
        _ request: OutgoingRequest, on connection: ServerConnection, isReused: Bool, _ handle: TransferHandle
    ) async throws(JobError) -> IncomingResponse? {
        let stream = ResponseStream(
            loop: handle.loop, clock: handle.clock, request.isPart ? patience.withoutLowSpeed : patience)
        do throws(JobError) {
            try handle.control.attach(stream)
        } catch {
            connection.channel.close(promise: nil)
            throw error
        }
        connection.begin(request, stream)
        do {
            let head = try await stream.open()
            let size = head.headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
            guard size <= headerLimit else { throw JobError(headerOf: request.url, largerThan: headerLimit) }
            return try IncomingResponse(
                url: request.url, head: head, stream: stream, clock: handle.clock,
                longestPause: settings.retryAfter, decodingUpTo: request.coding == .decoded ? bodyLimit : nil)
        } catch {
            stream.close()
            if isReused, stream.isUntouched, request.canBeSentTwice, JobError.isClosed(error) { return nil }
            throw JobError(transport: error, to: request.url)
        }
    }
}
