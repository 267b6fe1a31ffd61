import Foundation
import Glibc
import JobModel
import Synchronization
import Testing

/// An HTTP server on loopback that a test leads by the hand: each request is answered by a rule, or waits for the test.
final class GuidedOrigin: Sendable {
    /// One request.
    struct Request: Sendable, CustomStringConvertible {
        let method: String
        /// Path and query, unchanged.
        let target: String
        /// By lower-case name.
        let headers: [String: String]
        let body: [UInt8]

        var path: String { String(target.prefix { $0 != "?" }) }
        /// The start of the requested open range; nil without one.
        var rangeStart: Int? {
            guard let range = headers["range"], range.hasPrefix("bytes="), range.hasSuffix("-") else { return nil }
            return Int(range.dropFirst("bytes=".count).dropLast())
        }
        var description: String { "\(method) \(target)" }
    }

    /// A request that waits for its answer.
    final class Exchange: Sendable, CustomStringConvertible {
        let request: Request
        private let socket: FileDescriptor
        private let end: PipeEnds
        private let mayGoOn = Atomic(true)

        fileprivate init(_ request: Request, _ socket: FileDescriptor) throws {
            self.request = request
            self.socket = socket
            end = try PipeEnds()
        }

        deinit {
            end.reading.close()
            end.writing.close()
        }

        /// `POLLRDHUP`, which the headers show to GNU sources only.
        private static let hangUp: Int16 = 0x2000

        /// Returns once the exchange is over, or the client has left.
        fileprivate func wait() -> (clientLeft: Bool, mayGoOn: Bool) {
            var polled = [
                pollfd(fd: socket.number, events: Self.hangUp, revents: 0),
                pollfd(fd: end.reading.number, events: Int16(POLLIN), revents: 0),
            ]
            while Glibc.poll(&polled, 2, -1) < 0, errno == EINTR {}
            if polled[1].revents == 0 { return (true, false) }
            return (false, mayGoOn.load(ordering: .acquiring))
        }

        var description: String { request.description }

        /// Sends bytes as they are; the exchange stays open.
        func send(_ bytes: [UInt8]) { socket.write(bytes) }

        /// Sends status line and header fields; the exchange stays open.
        func sendHead(_ status: String = "200 OK", _ fields: [(String, String)]) {
            send(Array(GuidedOrigin.head(status, fields).utf8))
        }

        /// Answers, and takes the next request of the connection.
        func answer(_ reply: Reply) {
            send(reply.bytes)
            finish()
        }

        /// Ends an exchange whose answer has been sent piece by piece.
        func finish() { end.writing.write([0]) }

        /// Ends the connection.
        func close() {
            mayGoOn.store(false, ordering: .releasing)
            finish()
        }
    }

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

    private struct State {
        var requests: [Request] = []
        var connections: [Int32: FileDescriptor] = [:]
        var isOpen = true
    }

    let port: Int
    private let listener: FileDescriptor
    private let rule: Rule
    private let exchanges = Mailbox<Exchange>()
    private let arrivals = Mailbox<Request>()
    private let departures = Mailbox<String>()
    private let state = Mutex(State())

    /// Without a rule every request waits for the test. `address` is one of loopback.
    init(at address: String = "127.0.0.1", _ rule: @escaping Rule = { _, _ in nil }) throws {
        self.rule = rule
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        listener = FileDescriptor(number: number)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = inet_addr(address)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                fcntl(number, F_SETFL, O_NONBLOCK) == 0 && bind(number, pointer, length) == 0
                    && listen(number, 1024) == 0
                    && getsockname(number, pointer, &length) == 0
            }
        }
        try #require(isListening, "no port on loopback: \(String(cString: strerror(errno)))")
        port = Int(UInt16(bigEndian: name.sin_port))
        Thread.detachNewThread { [weak self, listener] in
            while true {
                var polled = pollfd(fd: listener.number, events: Int16(POLLIN), revents: 0)
                guard poll(&polled, 1, -1) == 1, polled.revents == Int16(POLLIN) else {
                    if errno == EINTR, polled.revents == 0 { continue }
                    break
                }
                let accepted = Inheritance.none { () -> [Int32]? in
                    let connection = accept(listener.number, nil, nil)
                    return connection >= 0 ? [connection] : nil
                }
                guard let connection = accepted.first else { continue }
                let socket = FileDescriptor(number: connection)
                guard let self, self.enter(socket) else {
                    socket.close()
                    break
                }
                Thread.detachNewThread { [self] in self.serve(socket) }
            }
            listener.close()
        }
    }

    /// Runs `body` with an origin that is closed afterwards.
    static func run<Value>(
        _ rule: @escaping Rule = { _, _ in nil },
        _ body: (GuidedOrigin) async throws -> Value
    ) async throws -> Value {
        let origin = try GuidedOrigin(rule)
        defer { origin.close() }
        return try await body(origin)
    }

    /// Runs `body` with an origin, a daemon and a connection to that.
    static func withDaemon<Value>(
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
    static func withHousehold<Value>(
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

    /// All requests so far.
    var requests: [Request] { state.withLock(\.requests) }

    /// How often `path` was asked for.
    func count(_ path: String) -> Int { requests.count { $0.path == path } }

    /// Waits for a request that no rule answers, and takes it.
    func exchange(_ path: String? = nil) async throws -> Exchange {
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

    func close() {
        let connections = state.withLock { state in
            state.isOpen = false
            return state.connections.values
        }
        listener.shutDown()
        for connection in connections { connection.shutDown() }
        for exchange in exchanges.waiting { exchange.close() }
        exchanges.close()
        arrivals.close()
        departures.close()
    }

    private func enter(_ connection: FileDescriptor) -> Bool {
        state.withLock { state in
            if state.isOpen { state.connections[connection.number] = connection }
            return state.isOpen
        }
    }

    private func serve(_ socket: FileDescriptor) {
        var received: [UInt8] = []
        while let request = next(socket, &received) {
            let count = state.withLock { state in
                defer { state.requests.append(request) }
                return state.requests.count { $0.path == request.path }
            }
            let reply = rule(request, count)
            arrivals.put(request)
            if let reply {
                socket.write(reply.bytes)
                continue
            }
            guard let exchange = try? Exchange(request, socket) else { break }
            exchanges.put(exchange)
            let (clientLeft, mayGoOn) = exchange.wait()
            if clientLeft { departures.put(request.path) }
            guard mayGoOn else { break }
        }
        state.withLock { $0.connections[socket.number] = nil }
        socket.close()
    }

    private func next(_ socket: FileDescriptor, _ received: inout [UInt8]) -> Request? {
        while true {
            if let request = Self.parse(&received) { return request }
            guard let bytes = socket.read() else { return nil }
            received += bytes
        }
    }

    private static func parse(_ received: inout [UInt8]) -> Request? {
        guard let end = received.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let lines = String(decoding: received[..<end.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
        let words = lines[0].split(separator: " ").map(String.init)
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers[line[..<colon].lowercased()] = line[colon...].dropFirst().trimmingCharacters(in: .whitespaces)
        }
        let length = headers["content-length"].flatMap(Int.init) ?? 0
        guard received.count >= end.upperBound + length, words.count > 1 else { return nil }
        let body = Array(received[end.upperBound..<(end.upperBound + length)])
        received.removeFirst(end.upperBound + length)
        return Request(method: words[0], target: words[1], headers: headers, body: body)
    }

    fileprivate static func head(_ status: String, _ fields: [(String, String)]) -> String {
        "HTTP/1.1 \(status)\r\n" + fields.map { "\($0.0): \($0.1)\r\n" }.joined() + "\r\n"
    }
}
