import JobModel
import NIOCore

/// One request to one server; ``following(_:to:)`` makes the next one after a redirect.
struct OutgoingRequest: Sendable {
    /// Whether a compressed response is decoded.
    enum Coding: Sendable {
        case decoded, asSent
    }

    enum Body: Sendable {
        case bytes([UInt8])
        case file(OutgoingFile)

        var size: Int64 {
            switch self {
            case .bytes(let bytes): Int64(bytes.count)
            case .file(let file): file.size
            }
        }
    }

    private(set) var url: RequestURL
    private(set) var method: String
    private(set) var headers: HTTPFields
    private(set) var body: Body?
    let coding: Coding
    /// Whether the job itself asked for codings of the response.
    let hasOwnCodings: Bool
    /// Whether this is one of several requests that fetch one file, so that its own speed does not matter.
    var isPart = false
    var cookies: String?
    /// The proxy that is asked for the URL, unless it only forwards bytes.
    var proxy: ProxyAddress?
    /// Seconds without a byte after which the transfer fails; nil for those of the configuration.
    let idleTimeout: Double?
    /// Whether a client certificate may be shown: not after a redirect from another origin, whose server could use the account.
    private(set) var showsCertificate = true
    /// The fields that the configuration adds for the origin of the first request.
    private var credentials: [HostCredential] = []

    /// `headers` take precedence over the defaults.
    init(
        _ url: RequestURL, method: String = "GET", headers: [HeaderField], body: Body? = nil, coding: Coding,
        accept: String = "*/*", idleTimeout: Double? = nil
    ) {
        self.url = url
        self.method = method
        self.body = body
        self.coding = coding
        self.headers = HTTPFields(headers.map { ($0.name, $0.value) })
        hasOwnCodings = self.headers.contains(name: "Accept-Encoding")
        self.idleTimeout = idleTimeout
        fill("Accept", accept)
        switch coding {
        case .decoded: fill("Accept-Encoding", "gzip, deflate")
        // Only the file's own bytes can be resumed and uploaded.
        case .asSent: set("Accept-Encoding", "identity")
        }
        fillCredentials()
    }

    /// Sets a field that the request does not have.
    mutating func fill(_ name: String, _ value: String) {
        if !headers.contains(name: name) { headers.add(name: name, value: value) }
    }

    mutating func set(_ name: String, _ value: String) { headers.replaceOrAdd(name: name, value: value) }

    /// Adds the configured fields for the request's origin and user, unless the job has its own.
    ///
    /// Only for the URL of the job, so that another server's redirect cannot use the account; and not for TRACE, which
    /// echoes the request.
    mutating func authorize(by all: [HostCredential], for owner: UInt32) {
        guard !all.isEmpty, method != "TRACE" else { return }
        credentials = all.filter { $0.applies(to: url, of: owner) && !headers.contains(name: $0.header) }
    }

    /// Removes the credentials in fields unless the request goes to `origin`; those of its URL stay.
    mutating func removeCredentials(unlessFor origin: RequestURL.Origin?) {
        if url.origin != origin {
            for name in ["Authorization", "Cookie", "Proxy-Authorization"] { headers.remove(name: name) }
            credentials = []
        }
        fillCredentials()
    }

    private mutating func fillCredentials() {
        guard let credentials = url.credentials else { return }
        fill("Authorization", "Basic " + Base64.encode(Array(credentials.utf8)))
    }

    private var fields: HTTPFields {
        var fields = HTTPFields([("Host", url.authority)])
        fields.add(headers)
        for credential in credentials { fields.add(name: credential.header, value: credential.secret.value) }
        if let cookies {
            let own = fields.first(name: "Cookie").map { $0 + "; " } ?? ""
            fields.replaceOrAdd(name: "Cookie", value: own + cookies)
        }
        if let authorization = proxy?.authorization {
            fields.replaceOrAdd(name: "Proxy-Authorization", value: authorization)
        }
        if let length = body?.size ?? (["POST", "PUT", "PATCH"].contains(method) ? 0 : nil) {
            fields.add(name: "Content-Length", value: String(length))
        }
        return fields
    }

    /// Whether sending the request twice has the same effect as once (RFC 9110, section 9.2.2).
    var canBeSentTwice: Bool { ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"].contains(method) }

    /// The head of the request, as it is sent; throws if the method or a field would change what the request means.
    func head() throws(JobError) -> ByteBuffer {
        guard method != "CONNECT", method != "TRACE" || body == nil else {
            throw JobError(
                .invalid, "\(SourceMessage.quoted(url)) cannot be asked for with \(method); correct the request.")
        }
        let fields = fields
        let isValid = fields.allSatisfy { HeaderField.isToken($0.name) && HeaderField.flaw(ofValue: $0.value) == nil }
        guard HeaderField.isToken(method), isValid else {
            throw JobError(
                .invalid, "The request for \(SourceMessage.quoted(url)) has invalid header fields; correct them.")
        }
        var head = ByteBuffer(string: "\(method) \(proxy == nil ? url.target : url.description) HTTP/1.1\r\n")
        fields.write(to: &head)
        head.writeString("\r\n")
        return head
    }

    /// Whether a redirect with `status` ends the request: only 307 and 308 make an upload repeat its file.
    func ends(at status: Int) -> Bool {
        guard case .file(let file) = body, file.isUpload else { return false }
        return status != 307 && status != 308
    }

    /// The request that a redirect asks for; another origin gets no credentials.
    func following(_ status: UInt, to location: RequestURL) -> OutgoingRequest {
        var next = self
        next.url = location
        next.removeCredentials(unlessFor: url.origin)
        if location.origin != url.origin { next.showsCertificate = false }
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
