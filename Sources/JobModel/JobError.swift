/// Why a job, or a link of one, failed: the `error` of the wire contract.
package struct JobError: Error, Sendable, Hashable {
    /// A word that clients and `on` of a `fail` link tell failures apart by. A `throw` may name words of its own.
    package struct Kind: Sendable, Hashable, RawRepresentable {
        package let rawValue: String

        package init(rawValue: String) {
            self.rawValue = rawValue
        }

        package static let dns = Kind(rawValue: "dns")
        package static let connect = Kind(rawValue: "connect")
        package static let tls = Kind(rawValue: "tls")
        package static let network = Kind(rawValue: "network")
        package static let timeout = Kind(rawValue: "timeout")
        package static let deadline = Kind(rawValue: "deadline")
        package static let http = Kind(rawValue: "http")
        package static let policy = Kind(rawValue: "policy")
        package static let exists = Kind(rawValue: "exists")
        package static let storage = Kind(rawValue: "storage")
        package static let checksum = Kind(rawValue: "checksum")
        package static let parse = Kind(rawValue: "parse")
        package static let select = Kind(rawValue: "select")
        package static let tooLarge = Kind(rawValue: "too-large")
        package static let template = Kind(rawValue: "template")
        package static let list = Kind(rawValue: "list")
        package static let cancelled = Kind(rawValue: "cancelled")
        package static let invalid = Kind(rawValue: "invalid")
        package static let `internal` = Kind(rawValue: "internal")

        /// Whether the word has the form that kinds have: lower-case letters joined by hyphens, at most 32 characters.
        package var isWellFormed: Bool {
            rawValue.utf8.count <= 32
                && rawValue.split(separator: "-", omittingEmptySubsequences: false).allSatisfy { part in
                    !part.isEmpty && part.utf8.allSatisfy { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }
                }
        }
    }

    /// The answer that an HTTP server gave instead of success.
    package struct HTTPStatus: Sendable, Hashable {
        package let status: Int
        package let reason: String

        package init(status: Int, reason: String) {
            self.status = status
            self.reason = reason
        }
    }

    package var kind: Kind
    /// One sentence that names the object and what to do next.
    package var message: String
    /// Whether trying again without a change may help.
    package var isRetryable: Bool
    /// The link that failed; 0 is the source.
    package var link: Int
    /// How often that link was tried.
    package var attempts: Int
    package var http: HTTPStatus?
    /// The errors of a race in which all failed, in order.
    package var failures: [JobError]?
    /// The error of the child that failed a list; an array of at most one, since a struct cannot hold itself.
    private var causes: [JobError] = []
    /// The child that this is the error of, in `cause` and `failures`.
    package var job: Int64?
    /// That child's place among its siblings, from 0.
    package var index: Int?
    /// How long the server asked to be left alone, in seconds; steers the retry and is not shown.
    package var retryAfter: Double?

    package var cause: JobError? {
        get { causes.first }
        set { causes = newValue.map { [$0] } ?? [] }
    }

    package init(_ kind: Kind, _ message: String, retryable: Bool = false, http: HTTPStatus? = nil) {
        self.kind = kind
        self.message = message
        isRetryable = retryable
        link = 0
        attempts = 1
        self.http = http
    }
}

extension JobError {
    /// The error as clients and the store see it.
    package var json: JSON {
        var object = JSONObject()
        object.append("kind", .string(kind.rawValue))
        object.append("message", .string(message))
        object.append("retryable", .bool(isRetryable))
        object.append("link", JSON(link))
        object.append("attempts", JSON(attempts))
        if let http { object.append("http", ["status": JSON(http.status), "reason": .string(http.reason)]) }
        object.append("job", ifPresent: job.map { JSON(Int($0)) })
        object.append("index", ifPresent: index.map { JSON($0) })
        object.append("failures", ifPresent: failures.map { .array($0.map(\.json)) })
        object.append("cause", ifPresent: cause?.json)
        return .object(object)
    }

    /// The error that `json` writes down, with defaults for what an older daemon did not write.
    package init(json: JSON) {
        self.init(
            Kind(rawValue: json["kind"]?.string ?? Kind.internal.rawValue),
            json["message"]?.string ?? "The stored error has no message.",
            retryable: json["retryable"]?.bool ?? false)
        link = json["link"]?.int ?? 0
        attempts = json["attempts"]?.int ?? 1
        if let http = json["http"], let status = http["status"]?.int {
            self.http = HTTPStatus(status: status, reason: http["reason"]?.string ?? "")
        }
        job = json["job"]?.int.map(Int64.init)
        index = json["index"]?.int
        failures = json["failures"]?.array?.map(JobError.init(json:))
        cause = json["cause"].map(JobError.init(json:))
    }
}
