import JobModel
import LoopTasks

/// Requests over connections that all transfers of a user share.
extension Transfer {
    /// Sends `request`, follows redirects, and returns the response, which the caller closes.
    func open(_ request: OutgoingRequest) async throws(JobError) -> IncomingResponse {
        var request = request
        request.fill("User-Agent", settings.http.userAgent)
        request.authorize(by: settings.http.credentials, for: owner)
        var cookies = CookieJar()
        var followed = 0
        while true {
            try rules.access.check(request.url)
            request.proxy = rules.proxy(for: request.url).flatMap { $0.forwards(request.url) ? $0 : nil }
            let response = try await exchange(request)
            guard [301, 302, 303, 307, 308].contains(response.status), !request.ends(at: response.status),
                let location = response.location
            else { return response }
            await response.discard()
            func failure(_ what: String) -> JobError {
                let message = "\(SourceMessage.quoted(response.url)) redirects \(what); check the URL."
                return JobError(
                    .http, message, http: JobError.response(status: response.status, reason: response.head.reason))
            }
            let most = settings.http.redirects
            guard followed < most else { throw failure("again after \(most) redirects") }
            guard let url = try rules.access.url(location, on: request.url) else {
                throw failure("to \(SourceMessage.quoted(noURL: location)), which is not a URL")
            }
            cookies.store(response.head.headers["Set-Cookie"], from: request.url)
            request = request.following(UInt(response.status), to: url)
            request.cookies = cookies.header(for: url)
            followed += 1
        }
    }

    private func exchange(_ request: OutgoingRequest) async throws(JobError) -> IncomingResponse {
        let head = try request.head()
        // A stopped transfer sends nothing more.
        try control.check()
        let key = ConnectionPool.Key(
            loop: ObjectIdentifier(loop), origin: request.url.origin, owner: owner,
            certificate: request.showsCertificate
                ? settings.http.clientCertificates.firstIndex { $0.applies(to: request.url, of: owner) } : nil)
        var idle = rules.pool.connection(key, mayBeStale: request.canBeSentTwice)
        while true {
            let connection = if let idle { idle } else { try await connect(to: request.url, key) }
            let (http, limits) = (settings.http, settings.limits)
            let exchange = Exchange(
                of: request, control, loop: loop,
                idleTimeout: .seconds(saturating: request.idleTimeout ?? http.idleTimeout),
                http.lowSpeed.seconds > 0 && !request.isPart ? Pace(http.lowSpeed) : nil, longestHeader: limits.header)
            exchange.begin(on: connection, head)
            do {
                let head = try await exchange.open()
                if request.proxy != nil, head.status == 407 { throw TransferError.proxy(ProxyAddress.unauthorized) }
                return try IncomingResponse(
                    head, of: exchange, self, decodingUpTo: request.coding == .decoded ? limits.body : nil)
            } catch {
                exchange.close()
                // A server may close an idle connection at the moment of its reuse.
                guard idle != nil, exchange.isUntouched, request.canBeSentTwice, JobError.isClosed(error) else {
                    throw JobError(transport: error, to: request.url)
                }
                idle = nil
            }
        }
    }
}
