public import DeferredKit
public import FoundationEssentials
import JobModel

/// Makes one HTTP request for JSON and decodes a value in it.
///
/// ```swift
/// let name = try await JSONSource(url, as: String.self, at: "/assets/0/name").start().get()
/// ```
public struct JSONSource<Value: Decodable & Sendable>: DataSource {
    /// The URL to request: `http` or `https`.
    public var url: String
    /// The value's JSON pointer (RFC 6901); by default, the whole document.
    public var pointer: String
    /// The method; `GET` by default.
    public var method = "GET"
    /// Fields to send, except for those of the connection itself, such as `Host`.
    public var headers: [String: String] = [:]
    /// A body to send.
    public var body: [UInt8]?
    /// The longest time that the request may take; nil, the default, for only the session's limits.
    public var timeout: Duration?
    /// Makes the decoder of the value; called on a background thread.
    public var decoder: @Sendable () -> JSONDecoder = { JSONDecoder() }
    /// The session whose connections are used.
    public var session: SourceSession

    /// Describes a request with the method `GET` for the value at `pointer`.
    public init(
        _ url: String, as type: Value.Type = Value.self, at pointer: String = "", session: SourceSession = .shared
    ) {
        self.url = url
        self.pointer = pointer
        self.session = session
    }

    /// Sends the request.
    ///
    /// Progress counts bytes of the body. The value is decoded on a background thread, where callbacks run by default.
    ///
    /// - Returns: The value. Fails with a ``SourceError`` or `CancellationError`; cancelling closes the connection.
    public func start() -> Deferred<Value, any Error> {
        guard let pointer = JSONPointer(text: pointer) else {
            return .failed(
                SourceError(.invalid, "\"\(pointer)\" is not a JSON pointer; write one such as /assets/0/url."))
        }
        do throws(SourceError) {
            let spec = try HTTPRequestSpec(url, method: method, headers: headers, body: body)
            let context = session.context(timeout: timeout)
            return session.library
                .document(spec, context) { document async throws(JobError) in try await document.value(at: pointer) }
                .then(on: .background) { [url, decoder] json in
                    // Until then, the JSON counts towards the session's limit for documents.
                    defer { withExtendedLifetime(context.memory) {} }
                    return try Self.decoded(json, from: url, decoder())
                }
                .translated(keeping: session)
        } catch {
            return .failed(error)
        }
    }

    private static func decoded(_ json: JSON, from url: String, _ decoder: JSONDecoder) throws(SourceError) -> Value {
        var writer = JSONWriter(reservingCapacity: json.size)
        writer.write(json)
        do {
            return try decoder.decode(Value.self, from: Data(writer.bytes))
        } catch {
            throw SourceError(
                .parse,
                "The JSON of \(SourceMessage.quoted(url)) cannot be read as \(Value.self); check the pointer and the type.",
                underlying: error)
        }
    }
}
