import Foundation
import JobModel
import TestOrigin
import Testing

/// An HTTP server on loopback that a test leads by the hand: each request is answered by a rule, or waits for the test.
final class GuidedOrigin: Sendable {
    typealias Request = OriginLog.Entry
    typealias Exchange = OriginExchange

    /// A whole answer.
    struct Reply: Sendable {
        var status = "200 OK"
        var fields: [(String, String)] = []
        var body: [UInt8] = []

        static func text(_ text: String) -> Reply {
            Reply(fields: [("Content-Type", "text/plain")], body: Array(text.utf8))
        }

        static func json(_ text: String) -> Reply {
            Reply(fields: [("Content-Type", "application/json")], body: Array(text.utf8))
        }

        /// All of a file.
        static func whole(_ content: [UInt8], etag: String) -> Reply {
            Reply(fields: [("ETag", etag), ("Accept-Ranges", "bytes")], body: content)
        }

        /// The rest of a file.
        static func partial(_ content: [UInt8], from start: Int, etag: String) -> Reply {
            let range = "bytes \(start)-\(content.count - 1)/\(content.count)"
            return Reply(
                status: "206 Partial Content", fields: [("ETag", etag), ("Content-Range", range)],
                body: Array(content[start...]))
        }

        static func status(_ status: String, _ fields: [(String, String)] = []) -> Reply {
            Reply(status: status, fields: fields)
        }

        fileprivate var bytes: [UInt8] {
            Array(GuidedOrigin.head(status, [("Content-Length", "\(body.count)")] + fields).utf8) + body
        }
    }

    /// The reply to a request; `count` is how often that path was asked before. Without one the request waits for the
    /// test.
    typealias Rule = @Sendable (_ request: Request, _ count: Int) -> Reply?

    private let origin: ScriptedOrigin
    private let exchanges: Mailbox<OriginExchange>
    private let arrivals: Mailbox<Request>
    private let departures: Mailbox<String>

    private init(
        _ origin: ScriptedOrigin, _ exchanges: Mailbox<OriginExchange>, _ arrivals: Mailbox<Request>,
        _ departures: Mailbox<String>
    ) {
        (self.origin, self.exchanges, self.arrivals, self.departures) = (origin, exchanges, arrivals, departures)
    }

    /// Runs `body` with an origin that is closed afterwards. Without a rule every request waits for the test.
    static func run<Value: Sendable>(
        _ rule: @escaping Rule = { _, _ in nil },
        _ body: (GuidedOrigin) async throws -> Value
    ) async throws -> Value {
        let (exchanges, arrivals, departures) = (Mailbox<OriginExchange>(), Mailbox<Request>(), Mailbox<String>())
        return try await ScriptedOrigin.run({ request, count in
            let reply = rule(request, count)
            arrivals.put(request)
            if let reply { return [.send(reply.bytes)] }
            return [
                .lead { exchange in
                    exchange.whenClientLeaves { departures.put(request.path) }
                    exchanges.put(exchange)
                }
            ]
        }) { origin in
            defer {
                exchanges.close()
                arrivals.close()
                departures.close()
            }
            return try await body(GuidedOrigin(origin, exchanges, arrivals, departures))
        }
    }

    /// Runs `body` with an origin, a daemon and a connection to that.
    static func withDaemon<Value: Sendable>(
        _ rule: @escaping Rule = { _, _ in nil }, configuration: String = "",
        environment: [String: String] = [:], sourceLocation: SourceLocation = #_sourceLocation,
        _ body: (GuidedOrigin, Daemon, Wire) async throws -> Value
    ) async throws -> Value {
        try await run(rule) { origin in
            try await Daemon.run(
                configuration: configuration, environment: environment, sourceLocation: sourceLocation
            ) { daemon, wire in try await body(origin, daemon, wire) }
        }
    }

    /// Runs `body` with an origin and a directory for daemons.
    static func withHousehold<Value: Sendable>(
        _ rule: @escaping Rule = { _, _ in nil },
        _ body: (GuidedOrigin, Household) async throws -> Value
    ) async throws -> Value {
        try await run(rule) { origin in
            try await Household.with { household in try await body(origin, household) }
        }
    }

    /// Submits a download of 4,000,000 bytes to "file", and returns its job once 3,000,000 have come.
    func beginDownload(at wire: Wire) async throws -> Int {
        let job = try await wire.submit(.download(url("/file"), to: "file"))
        _ = try await wire.call("job.watch", ["job": JSON(job), "interval": 0.01])
        let exchange = try await exchange("/file")
        exchange.sendHead("200 OK", [("Content-Length", "4000000"), ("ETag", "\"v1\""), ("Accept-Ranges", "bytes")])
        exchange.send(Array(Sample.large[..<3_000_000]))
        _ = try await wire.next("3,000,000 bytes") {
            $0.json["params"]?["progress"]?["completed"]?.int == 3_000_000
        }
        return job
    }

    /// The URL of `path`; `host` is another name of its address.
    func url(_ path: String, host: String? = nil) -> JSON { .string("http://\(host ?? "127.0.0.1"):\(port)\(path)") }

    var port: Int { origin.port }

    /// All requests so far.
    var requests: [Request] { origin.log.entries }

    /// How often `path` was asked for.
    func count(_ path: String) -> Int { origin.log.count(path) }

    /// Waits for a request that no rule answers, and takes it.
    func exchange(_ path: String? = nil) async throws -> OriginExchange {
        let exchange = try await exchanges.next("request for \(path ?? "anything")") {
            path == nil || $0.request.path == path
        }
        return try #require(exchange, "the origin was closed")
    }

    /// Waits for a request, answered or not, and takes note of it, so that the next call waits for the next one.
    @discardableResult
    func arrival(of path: String) async throws -> Request {
        try #require(try await arrivals.next("request for \(path)") { $0.path == path }, "the origin was closed")
    }

    /// Waits until the client of an exchange for `path` has gone away.
    func departure(from path: String) async throws {
        _ = try await departures.next("end of the connection for \(path)") { $0 == path }
    }

    fileprivate static func head(_ status: String, _ fields: [(String, String)]) -> String {
        "HTTP/1.1 \(status)\r\n" + fields.map { "\($0.0): \($0.1)\r\n" }.joined() + "\r\n"
    }
}

extension OriginExchange {
    /// Sends status line and header fields; the exchange stays open.
    func sendHead(_ status: String = "200 OK", _ fields: [(String, String)]) {
        send(Array(GuidedOrigin.head(status, fields).utf8))
    }

    /// Answers, and takes the next request of the connection.
    func answer(_ reply: GuidedOrigin.Reply) {
        send(reply.bytes)
        finish()
    }
}
