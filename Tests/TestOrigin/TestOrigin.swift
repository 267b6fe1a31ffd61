import Synchronization

/// A well-behaved HTTP server on loopback, for as long as a closure runs.
package final class TestOrigin: Sendable {
    private final class Resources: Sendable {
        let byPath = Mutex<[String: OriginResource]>([:])
    }

    private let server: ScriptedOrigin
    private let resources: Resources

    private init(_ server: ScriptedOrigin, _ resources: Resources) {
        (self.server, self.resources) = (server, resources)
    }

    /// The received requests.
    package var log: OriginLog { server.log }

    /// The port that the system chose.
    package var port: Int { server.port }

    /// The URL of `path`; `host` is another name or spelling of loopback.
    package func url(_ path: String, host: String = "127.0.0.1") -> String { server.url(path, host: host) }

    /// Serves `resource` under `path` from now on.
    package subscript(path: String) -> OriginResource? {
        get { resources.byPath.withLock { $0[path] } }
        set { resources.byPath.withLock { $0[path] = newValue } }
    }

    /// Runs an origin on 127.0.0.1 while `body` runs.
    package static func run<Value: Sendable>(_ body: (TestOrigin) async throws -> Value) async throws -> Value {
        let resources = Resources()
        var missing = OriginResource(text: "Nothing here.")
        missing.status = 404
        return try await ScriptedOrigin.run { [missing] request, _ in
            (resources.byPath.withLock { $0[request.path] } ?? missing).answer(to: request)
        } _: { server in
            try await body(TestOrigin(server, resources))
        }
    }
}
