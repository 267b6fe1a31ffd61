/// The failure of a job or link: the `error` of the wire contract.
@dynamicMemberLookup
package struct JobError: Error, Sendable, Hashable {
    /// A word by which clients and `on` of a `fail` link distinguish failures; a `throw` may name its own.
    package struct Kind: Sendable, Hashable, RawRepresentable {
        package let rawValue: String

        package init(rawValue: String) { self.rawValue = rawValue }

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
        package static let interrupted = Kind(rawValue: "interrupted")
        package static let program = Kind(rawValue: "program")
        package static let `internal` = Kind(rawValue: "internal")

        init?(wellFormed word: String) {
            rawValue = word
            if !isWellFormed { return nil }
        }

        /// Whether the word is well-formed: lower-case letters joined by hyphens, at most 32 characters.
        package var isWellFormed: Bool {
            rawValue.utf8.count <= 32
                && rawValue.split(separator: "-", omittingEmptySubsequences: false).allSatisfy { part in
                    !part.isEmpty && part.utf8.allSatisfy { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) }
                }
        }
    }

    /// The properties of an error, which are also members of the error itself.
    package struct Particulars: Sendable, Hashable {
        package var kind: Kind
        /// One sentence that names the object and the next step.
        package var message: String
        /// Whether a retry without a change may help.
        package var isRetryable: Bool
        /// The failed link; 0 is the source.
        package var link = 0
        package var attempts = 1
        /// The response of ``JobError/response(status:reason:body:)``.
        package var http: JSON?
        /// The `exit` or `signal` of a program that did not succeed, and the end of its `output`, of both streams.
        package var program: JSON?
        /// The errors of a race in which all failed, in order.
        package var failures: [JobError]?
        /// Failures that are not listed.
        package var failuresOmitted: Int?
        /// The error of the child that failed a list.
        package var cause: JobError?
        /// The child that failed, in `cause` and `failures`.
        package var job: Int64?
        /// That child's index among its siblings, from 0.
        package var index: Int?
        /// The server's requested pause in seconds; delays the retry and is not shown.
        package var retryAfter: Double?
        /// The `host:port` that asked for it: after a redirect or from a mirror, not the host that counts the job.
        package var retryAfterHost: String?
        /// The delay in seconds if the attempt could not begin for a passing reason.
        /// It does not count as an attempt. Not shown.
        package var postponed: Double?
    }

    /// Behind a pointer, so that jobs and other types with an error need room for a pointer only.
    private indirect enum Storage: Sendable, Hashable {
        case particulars(Particulars)
    }

    /// The maximum size of a message, in bytes of JSON: errors appear wherever their job does.
    package static let mostMessage = 4 << 10
    /// The maximum number of failures that an error lists, and their size in bytes of JSON.
    private static let mostFailures = (count: 100, size: 256 << 10)

    private var storage: Storage

    private var particulars: Particulars {
        get {
            switch storage {
            case .particulars(let particulars): particulars
            }
        }
        set { storage = .particulars(newValue) }
    }

    package subscript<Value>(dynamicMember member: WritableKeyPath<Particulars, Value>) -> Value {
        get { particulars[keyPath: member] }
        set { particulars[keyPath: member] = newValue }
    }

    package init(_ kind: Kind, _ message: String, retryable: Bool = false, http: JSON? = nil) {
        storage = .particulars(
            Particulars(
                kind: kind, message: message.shortened(to: Self.mostMessage), isRetryable: retryable, http: http))
    }
}

extension JobError {
    /// The error as clients and the store see it.
    package var json: JSON {
        let told = particulars
        return .object([
            "kind": told.kind.rawValue.json, "message": told.message.json, "retryable": told.isRetryable.json,
            "link": told.link.json, "attempts": told.attempts.json,
            "http": told.http, "program": told.program, "job": told.job?.json, "index": told.index?.json,
            "failures": told.failures.map { .array($0.map(\.json)) }, "failuresOmitted": told.failuresOmitted?.json,
            "cause": told.cause?.json,
        ])
    }

    /// Restores an error; members that an older daemon did not write get defaults.
    package init(json: JSON) {
        var told = Particulars(
            kind: Kind(rawValue: json["kind"]?.string ?? Kind.internal.rawValue),
            message: (json["message"]?.string ?? "The stored error has no message.").shortened(to: Self.mostMessage),
            isRetryable: json["retryable"]?.bool ?? false)
        if let link = json["link"]?.int { told.link = link }
        if let attempts = json["attempts"]?.int { told.attempts = attempts }
        (told.http, told.program) = (json["http"], json["program"])
        told.job = json["job"]?.int.map(Int64.init)
        told.index = json["index"]?.int
        told.failures = json["failures"]?.array?.map(JobError.init(json:))
        told.failuresOmitted = json["failuresOmitted"]?.int
        told.cause = json["cause"].map(JobError.init(json:))
        storage = .particulars(told)
    }
}

extension JobError {
    /// The most bytes of a response's body in an error.
    package static let longestBody = 4 << 10

    /// An HTTP response other than success, with the beginning of its body, in base64 unless it is UTF-8.
    package static func response(status: Int, reason: String, body: [UInt8] = []) -> JSON {
        // The last character may be cut.
        let lengths = body.count > longestBody ? (0...3).map { longestBody - $0 } : [body.count]
        let text = lengths.lazy.compactMap { String(validating: body.prefix($0), as: UTF8.self) }.first
        let shown = text?.shortened(to: longestBody) ?? Base64.encode(Array(body.prefix(longestBody / 4 * 3)))
        return .object([
            "status": status.json, "reason": reason.echoed.json, "body": body.isEmpty ? JSON?.none : shown.json,
            "encoding": text == nil ? "base64" : JSON?.none,
        ])
    }

    /// Adds a failure; of many, the first are listed and the others counted.
    /// `size` is the size of the listed ones in bytes, initially 0, so that none of very many is measured twice.
    package mutating func add(failure: JobError, listed size: inout Int) {
        if let omitted = self.failuresOmitted { return self.failuresOmitted = omitted + 1 }
        let room = Self.mostFailures.size - size
        var (failure, own) = (failure, failure.json.size)
        if own > room {
            failure = failure.withoutCauses
            own = failure.json.size
        }
        guard (self.failures?.count ?? 0) < Self.mostFailures.count, own <= room else {
            return self.failuresOmitted = 1
        }
        size += own
        self.failures = (self.failures ?? []) + [failure]
    }

    /// Returns the error of a job that waits for the one with this error. A chain of such jobs does not lengthen it.
    package func passedOn(by job: JobID) -> JobError {
        var cause = withoutCauses
        cause.cause = self.cause?.withoutCauses
        cause.job = job
        var error = JobError(self.kind, self.message)
        error.cause = cause
        return error
    }

    var withoutCauses: JobError {
        var error = self
        if let failures = self.failures { error.failuresOmitted = (self.failuresOmitted ?? 0) + failures.count }
        error.failures = nil
        error.cause = nil
        return error
    }
}

/// The outcome of a source, a link or a job.
package typealias Outcome = Result<JSON, JobError>
