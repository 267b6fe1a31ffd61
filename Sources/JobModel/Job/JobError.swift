/// Why a job, or a link of one, failed: the `error` of the wire contract.
@dynamicMemberLookup
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
        package static let interrupted = Kind(rawValue: "interrupted")
        package static let program = Kind(rawValue: "program")
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
            self.reason = reason.echoed
        }
    }

    /// How a program ended that did not succeed.
    package struct ProgramEnd: Sendable, Hashable {
        package enum Reason: Sendable, Hashable {
            case exit(Int)
            case signal(Int)
            /// It could not be started.
            case none
        }

        package let reason: Reason
        /// The end of what it wrote to its standard error.
        package let standardError: String

        package init(_ reason: Reason, standardError: String) {
            self.reason = reason
            self.standardError = standardError
        }

        var json: JSON {
            var object = JSONObject()
            switch reason {
            case .exit(let status): object.append("exit", JSON(status))
            case .signal(let number): object.append("signal", JSON(number))
            case .none: break
            }
            object.append("stderr", .string(standardError))
            return .object(object)
        }

        init?(json: JSON) {
            guard let standardError = json["stderr"]?.string else { return nil }
            self.standardError = standardError
            reason = json["exit"]?.int.map(Reason.exit) ?? json["signal"]?.int.map(Reason.signal) ?? .none
        }
    }

    /// What an error tells; each is a member of the error itself.
    package struct Particulars: Sendable, Hashable {
        package var kind: Kind
        /// One sentence that names the object and what to do next.
        package var message: String
        /// Whether trying again without a change may help.
        package var isRetryable: Bool
        /// The link that failed; 0 is the source.
        package var link = 0
        /// How often that link was tried.
        package var attempts = 1
        package var http: HTTPStatus?
        package var program: ProgramEnd?
        /// The errors of a race in which all failed, in order.
        package var failures: [JobError]?
        /// How many more there were than those.
        package var failuresOmitted: Int?
        /// The error of the child that failed a list.
        package var cause: JobError?
        /// The child that this is the error of, in `cause` and `failures`.
        package var job: Int64?
        /// That child's index among its siblings, from 0.
        package var index: Int?
        /// How long the server asked to be left alone, in seconds; steers the retry and is not shown.
        package var retryAfter: Double?
        /// Who asked for it, as `host:port`: after a redirect, or of a mirror, not the host that the job is counted under.
        package var retryAfterHost: String?
        /// The attempt could not begin, for a reason that passes by itself: it is tried again after so many seconds and
        /// does not count as an attempt. Not shown.
        package var postponed: Double?
    }

    /// Behind a pointer, so that jobs, and all else that may have an error, need room for a pointer only.
    private indirect enum Storage: Sendable, Hashable {
        case particulars(Particulars)
    }

    /// The longest message, in bytes as JSON: errors go wherever the job that they are of is shown.
    package static let mostMessage = 4 << 10
    /// How many failures an error lists, and how many bytes of JSON they take.
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

    package init(_ kind: Kind, _ message: String, retryable: Bool = false, http: HTTPStatus? = nil) {
        storage = .particulars(
            Particulars(
                kind: kind, message: message.shortened(to: Self.mostMessage), isRetryable: retryable, http: http))
    }
}

extension JobError {
    /// The error as clients and the store see it.
    package var json: JSON {
        let told = particulars
        var object = JSONObject()
        object.append("kind", .string(told.kind.rawValue))
        object.append("message", .string(told.message))
        object.append("retryable", .bool(told.isRetryable))
        object.append("link", JSON(told.link))
        object.append("attempts", JSON(told.attempts))
        if let http = told.http {
            object.append("http", ["status": JSON(http.status), "reason": .string(http.reason)])
        }
        object.append("program", ifPresent: told.program?.json)
        object.append("job", ifPresent: told.job.map { JSON(Int($0)) })
        object.append("index", ifPresent: told.index.map { JSON($0) })
        object.append("failures", ifPresent: told.failures.map { .array($0.map(\.json)) })
        object.append("failuresOmitted", ifPresent: told.failuresOmitted.map { JSON($0) })
        object.append("cause", ifPresent: told.cause?.json)
        return .object(object)
    }

    /// The error that `json` writes down, with defaults for what an older daemon did not write.
    package init(json: JSON) {
        var told = Particulars(
            kind: Kind(rawValue: json["kind"]?.string ?? Kind.internal.rawValue),
            message: (json["message"]?.string ?? "The stored error has no message.").shortened(to: Self.mostMessage),
            isRetryable: json["retryable"]?.bool ?? false)
        if let link = json["link"]?.int { told.link = link }
        if let attempts = json["attempts"]?.int { told.attempts = attempts }
        if let http = json["http"], let status = http["status"]?.int {
            told.http = HTTPStatus(status: status, reason: http["reason"]?.string ?? "")
        }
        told.program = json["program"].flatMap(ProgramEnd.init(json:))
        told.job = json["job"]?.int.map(Int64.init)
        told.index = json["index"]?.int
        told.failures = json["failures"]?.array?.map(JobError.init(json:))
        told.failuresOmitted = json["failuresOmitted"]?.int
        told.cause = json["cause"].map(JobError.init(json:))
        storage = .particulars(told)
    }
}

extension JobError {
    /// Adds one of the errors that this one is made of; of many the first are listed, and the others counted. `size` is the
    /// bytes of those that are listed, 0 to begin with: there may be very many, and none is measured twice.
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

    /// The same without the errors that it is made of.
    var withoutCauses: JobError {
        var error = self
        if let failures = self.failures { error.failuresOmitted = (self.failuresOmitted ?? 0) + failures.count }
        error.failures = nil
        error.cause = nil
        return error
    }
}
