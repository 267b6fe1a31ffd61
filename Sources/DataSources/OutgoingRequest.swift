import AsyncHTTPClient
import JobModel
import NIOCore
import NIOHTTP1

/// One request as it goes to one server; ``following(_:to:)`` makes the next one of a redirect.
struct OutgoingRequest: Sendable {
    /// Whether a compressed body is decoded on the way.
    enum Coding: Sendable {
        case decoded
        case asSent
    }

    private(set) var url: RequestURL
    private(set) var method: String
    private(set) var headers: HTTPHeaders
    private(set) var body: [UInt8]?
    let coding: Coding

    /// `headers` win over what is filled in here.
    init(
        _ url: RequestURL, method: String = "GET", headers: [HeaderField], body: [UInt8]? = nil, coding: Coding,
        accept: String = "*/*", userAgent: String
    ) {
        self.url = url
        self.method = method
        self.body = body
        self.coding = coding
        self.headers = HTTPHeaders(headers.map { ($0.name, $0.value) })
        fill("User-Agent", userAgent)
        fill("Accept", accept)
        switch coding {
        case .decoded: fill("Accept-Encoding", "gzip, deflate")
        // A transfer is resumed byte by byte, which only the file's own bytes allow.
        case .asSent: set("Accept-Encoding", "identity")
        }
        fillCredentials()
    }

    private mutating func fill(_ name: String, _ value: String) {
        if !headers.contains(name: name) { headers.add(name: name, value: value) }
    }

    /// Sets a field, whatever it was before.
    mutating func set(_ name: String, _ value: String) {
        headers.replaceOrAdd(name: name, value: value)
    }

    private mutating func fillCredentials() {
        guard let credentials = url.credentials else { return }
        fill("Authorization", "Basic " + Base64.encode(Array(credentials.utf8)))
    }

    /// The request for the HTTP client.
    func clientRequest() throws -> HTTPClient.Request {
        try HTTPClient.Request(
            url: url.description, method: HTTPMethod(rawValue: method), headers: headers,
            body: body.map { body in
                .stream(contentLength: Int64(body.count)) { Self.send(ByteBuffer(bytes: body), to: $0) }
            })
    }

    /// Sends in pieces, as each that the network has taken shows that the server is not idle.
    private static func send(
        _ body: ByteBuffer, to writer: HTTPClient.Body.StreamWriter
    ) -> EventLoopFuture<Void> {
        var rest = body
        let piece = rest.readSlice(length: min(rest.readableBytes, 64 << 10)) ?? ByteBuffer()
        let sent = writer.write(.byteBuffer(piece))
        guard rest.readableBytes > 0 else { return sent }
        return sent.flatMap { [rest] in send(rest, to: writer) }
    }

    /// The request that a redirect with `status` to `location` asks for.
    ///
    /// Credentials stay behind where the origin changes, for good.
    func following(_ status: UInt, to location: RequestURL) -> OutgoingRequest {
        var next = self
        next.url = location
        if location.origin != url.origin {
            for name in ["Authorization", "Cookie", "Proxy-Authorization"] { next.headers.remove(name: name) }
        }
        next.fillCredentials()
        let becomesGet = status == 303 ? method != "HEAD" : (status == 301 || status == 302) && method == "POST"
        if becomesGet {
            next.method = "GET"
            next.body = nil
            for name in ["Content-Type", "Content-Encoding", "Content-Language", "Content-Location"] {
                next.headers.remove(name: name)
            }
        }
        return next
    }
}
