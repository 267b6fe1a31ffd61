import Hummingbird
import Logging
import NIOCore
import Synchronization

/// A well-behaved HTTP server on loopback, for as long as a closure runs.
package final class TestOrigin: Sendable {
    /// The received requests.
    package let log = OriginLog()
    private let resources = Mutex<[String: OriginResource]>([:])
    private let bound = Mutex(0)

    /// The port that the system chose.
    package var port: Int { bound.withLock { $0 } }

    /// The URL of `path`; `host` is another name or spelling of loopback.
    package func url(_ path: String, host: String = "127.0.0.1") -> String { "http://\(host):\(port)\(path)" }

    /// Serves `resource` under `path` from now on.
    package subscript(path: String) -> OriginResource? {
        get { resources.withLock { $0[path] } }
        set { resources.withLock { $0[path] = newValue } }
    }

    /// Runs an origin on 127.0.0.1 while `body` runs.
    package static func run<Value: Sendable>(
        _ body: @escaping @Sendable (TestOrigin) async throws -> Value
    ) async throws -> Value {
        let origin = TestOrigin()
        var logger = Logger(label: "origin")
        logger.logLevel = .critical
        let (ports, announce) = AsyncStream.makeStream(of: Int.self)
        let application = Application(
            responder: CallbackResponder { (request: Request, _: BasicRequestContext) in
                try await origin.respond(to: request)
            },
            configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { announce.yield($0.localAddress?.port ?? 0) },
            logger: logger)
        return try await withThrowingTaskGroup(of: Value?.self) { group in
            group.addTask {
                try await application.run()
                return nil
            }
            for await port in ports {
                origin.bound.withLock { $0 = port }
                break
            }
            defer { group.cancelAll() }
            return try await body(origin)
        }
    }

    private func respond(to request: Request) async throws -> Response {
        let body = try await request.body.collect(upTo: 64 << 20)
        var headers: [String: String] = [:]
        for field in request.headers { headers[field.name.canonicalName] = field.value }
        if let authority = request.head.authority { headers["host"] = authority }
        let entry = OriginLog.Entry(
            method: request.method.rawValue, target: request.uri.string, headers: headers,
            body: Array(body.readableBytesView))
        log.append(entry)
        guard let resource = self[entry.path] else {
            return Response(status: .notFound, body: ResponseBody(byteBuffer: ByteBuffer(string: "Nothing here.")))
        }
        return try OriginAnswer(resource, to: entry).response()
    }
}
