public import DeferredKit
import JobModel

/// Makes one HTTP request.
///
/// ```swift
/// let page = try await URLSource(url).start().get()
/// ```
public struct URLSource: DataSource {
    /// The response to a request, after redirects.
    public struct Response: Sendable, Hashable {
        /// The URL after redirects.
        public let url: String
        /// The status, such as 200.
        public let status: Int
        /// The fields of the header by lower-case names; the values of a repeated field are joined with ", ".
        public let headers: [String: String]
        /// The media type without parameters, in lower case.
        public let mediaType: String?
        /// The body, decoded if it was compressed.
        public let body: [UInt8]

        /// The body as text; invalid UTF-8 is replaced.
        public var text: String { String(decoding: body, as: UTF8.self) }
    }

    /// The URL to request: `http` or `https`.
    public var url: String
    /// The method; `GET` by default.
    public var method = "GET"
    /// Fields to send, except for those of the connection itself, such as `Host`.
    public var headers: [String: String] = [:]
    /// A body to send.
    public var body: [UInt8]?
    /// Whether every status is a success; by default, only 200 to 299 are, and 304 after a conditional request.
    public var acceptsAnyStatus = false
    /// The longest time that the request may take; nil, the default, for only the session's limits.
    public var timeout: Duration?
    /// The session whose connections are used.
    public var session: SourceSession

    /// Describes a request with the method `GET`.
    public init(_ url: String, session: SourceSession = .shared) {
        self.url = url
        self.session = session
    }

    /// Sends the request.
    ///
    /// Progress counts bytes of the body. Callbacks run on an event loop by default.
    ///
    /// - Returns: The response. Fails with a ``SourceError`` or `CancellationError`; cancelling closes the connection.
    public func start() -> Deferred<Response, any Error> {
        do throws(SourceError) {
            let spec = try HTTPRequestSpec(
                url, method: method, headers: headers, body: body, acceptsAnyStatus: acceptsAnyStatus)
            return session.library.document(spec, session.context(timeout: timeout)) {
                document async throws(JobError) in Response(try await document.response())
            }
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
        // A session keeps all bodies in memory.
        body = document.body.memory
    }
}

extension HTTPRequestSpec {
    /// Describes a request, checked like those of jobs.
    init(
        _ url: String, method: String, headers: [String: String], body: [UInt8]?, acceptsAnyStatus: Bool = false
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
    /// Reads a source; throws a ``SourceError`` that says what is wrong.
    init(_ json: JSON) throws(SourceError) {
        do throws(SpecError) {
            try self.init(json, mode: .literal, limits: JobLimits())
        } catch {
            throw SourceError(.invalid, error.reason)
        }
    }
}

extension JSON {
    init(fields: [String: String]) {
        self = .object(
            JSONObject(
                fields.sorted { $0.key < $1.key }.map { JSONObject.Member(name: $0.key, value: .string($0.value)) }))
    }
}
