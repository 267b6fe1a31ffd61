public import DeferredKit
import JobModel

/// Makes one HTTP request and gives its answer.
///
/// ```swift
/// let page = try await URLSource(url).start().get()
/// ```
public struct URLSource: DataSource {
    /// The answer to a request, after redirects.
    public struct Response: Sendable, Hashable {
        /// Where it came from, after redirects.
        public let url: String
        /// The status, such as 200.
        public let status: Int
        /// The header's fields by their names in lower case; of a repeated one the values are joined with ", ".
        public let headers: [String: String]
        /// The content's type without parameters, in lower case.
        public let mediaType: String?
        /// The body, decoded where it was compressed.
        public let body: [UInt8]

        /// The body as text; what is no UTF-8 is replaced.
        public var text: String { String(decoding: body, as: UTF8.self) }
    }

    /// The URL to ask for: `http` or `https`.
    public var url: String
    /// The method; `GET`.
    public var method = "GET"
    /// Fields to send; those of the connection itself, such as `Host`, may not be among them.
    public var headers: [String: String] = [:]
    /// A body to send.
    public var body: [UInt8]?
    /// Whether every status is a success; otherwise those from 200 to 299 are, and 304 in answer to a conditional
    /// request.
    public var acceptsAnyStatus = false
    /// How long it may take; nil, the default, for no limit beside those of the session.
    public var timeout: Duration?
    /// The session whose connections are used.
    public var session: SourceSession

    /// A request with the method `GET`; the properties make others of it.
    public init(_ url: String, session: SourceSession = .shared) {
        self.url = url
        self.session = session
    }

    /// Sends the request.
    ///
    /// Progress is in bytes of the body. Callbacks run on an event loop unless told otherwise.
    ///
    /// - Returns: The answer. It fails with a ``SourceError``, or `CancellationError`; cancelling it closes the connection.
    public func start() -> Deferred<Response, any Error> {
        do throws(SourceError) {
            let spec = try HTTPRequestSpec(
                url, method: method, headers: headers, body: body, acceptsAnyStatus: acceptsAnyStatus)
            return session.library.response(spec, session.context(timeout: timeout), Response.init)
                .translated(keeping: session)
        } catch {
            return .failed(error)
        }
    }
}

extension URLSource.Response {
    fileprivate init(_ document: DocumentResponse) {
        url = document.response.url.description
        status = document.response.status
        headers = Dictionary(
            document.response.fields.members.map { ($0.name, $0.value.string ?? "") }, uniquingKeysWith: { $1 })
        mediaType = document.mediaType
        switch document.body {
        case .whole(let bytes): body = bytes
        case .spilled: preconditionFailure("A session puts no body aside.")
        }
    }
}

extension HTTPRequestSpec {
    /// A request, checked as those of jobs are.
    init(
        _ url: String, method: String, headers: [String: String], body: [UInt8]?, acceptsAnyStatus: Bool
    ) throws(SourceError) {
        let parameters = try SourceParameters([
            "type": "url", "url": .string(url), "method": .string(method), "headers": JSON(fields: headers),
            "accept": acceptsAnyStatus ? "any" : "success",
        ])
        guard case .url(var spec) = parameters else { preconditionFailure("A source of the type url is one.") }
        spec.body = body
        self = spec
    }
}

extension SourceParameters {
    /// What `json` describes, or a ``SourceError`` that says what is wrong with it.
    init(_ json: JSON) throws(SourceError) {
        do throws(SpecError) {
            try self.init(json, mode: .literal, limits: JobLimits())
        } catch {
            throw SourceError(.invalid, error.reason)
        }
    }
}

extension JSON {
    /// An object of these fields.
    init(fields: [String: String]) {
        self = .object(
            JSONObject(
                fields.sorted { $0.key < $1.key }.map { JSONObject.Member(name: $0.key, value: .string($0.value)) }))
    }
}
