public import DeferredKit
public import Foundation
import JobModel

/// Makes one HTTP request for JSON and decodes a value in it.
///
/// ```swift
/// let name = try await JSONSource(url, as: String.self, at: "/assets/0/name").start().get()
/// ```
public struct JSONSource<Value: Decodable & Sendable>: DataSource {
    /// The URL to ask for: `http` or `https`.
    public var url: String
    /// Where in the document the value is, as a JSON pointer (RFC 6901); the whole document by default.
    public var pointer: String
    /// The method; `GET`.
    public var method = "GET"
    /// Fields to send; those of the connection itself, such as `Host`, may not be among them.
    public var headers: [String: String] = [:]
    /// A body to send.
    public var body: [UInt8]?
    /// How long it may take; nil, the default, for no limit beside those of the session.
    public var timeout: Duration?
    /// Makes what decodes the value; called on a background thread.
    public var decoder: @Sendable () -> JSONDecoder = { JSONDecoder() }
    /// The session whose connections are used.
    public var session: SourceSession

    /// A request with the method `GET` for the value at `pointer`.
    public init(
        _ url: String, as type: Value.Type = Value.self, at pointer: String = "", session: SourceSession = .shared
    ) {
        self.url = url
        self.pointer = pointer
        self.session = session
    }

    /// Sends the request.
    ///
    /// Progress is in bytes of the body. The value is decoded on a background thread, where callbacks run unless told
    /// otherwise.
    ///
    /// - Returns: The value. It fails with a ``SourceError``, or `CancellationError`; cancelling it closes the connection.
    public func start() -> Deferred<Value, any Error> {
        guard let pointer = JSONPointer(text: pointer) else {
            return .failed(SourceError(.invalid, "\"\(pointer)\" is no JSON pointer; write one as /assets/0/url."))
        }
        do throws(SourceError) {
            let spec = try HTTPRequestSpec(
                url, method: method, headers: headers, body: body, acceptsAnyStatus: false)
            let context = session.context(timeout: timeout)
            return session.library.value(spec, at: pointer, context)
                .then(on: .background) { [url, decoder] json in
                    // Until then it counts against the session's limit for documents.
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
                .parse, "The JSON of \(SourceMessage.quoted(url)) is no \(Value.self); check the pointer and the type.",
                underlying: error)
        }
    }
}
