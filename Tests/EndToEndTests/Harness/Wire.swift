import Dispatch
import Foundation
import Glibc
import JobModel
import Synchronization
import Testing

/// A raw client: it sends bytes unchanged and does not sort the input.
final class Wire: Sendable {
    /// A line from the daemon.
    struct Line: Sendable, CustomStringConvertible {
        let text: String
        let json: JSON

        var description: String { text }
        var id: JSON? { json["method"] == nil ? json["id"] : nil }
        var method: String? { json["method"]?.string }
        var watch: String? { json["params"]?["watch"]?.string }
        var job: Int? { json["params"]?["job"]?.int }
        /// The state that a `job.state` tells.
        var state: String? { method == "job.state" ? json["params"]?["state"]?.string : nil }
    }

    /// The `error` of an answer.
    struct Refusal: Error, CustomStringConvertible {
        let code: Int
        let message: String
        let data: JSON

        var description: String { "\(code) \(message) \(data)" }
        var kind: String? { data["kind"]?.string }
        var pointer: String? { data["pointer"]?.string }
        var reason: String? { data["reason"]?.string }
    }

    /// The connection ended where more was expected.
    struct Ended: Error {
        let awaited: String
    }

    private let lines = Mailbox<Line>()
    private let descriptor: FileDescriptor
    private let writer = DispatchQueue(label: "wire.writer")
    private let lastID = Atomic(0)
    private let isStarted = Atomic(false)

    /// Connects to the socket at `path`. With `reads` false nothing is read before ``startReading()``.
    init(_ path: String, reads: Bool = true) throws {
        descriptor = try Self.descriptor(path)
        if reads { startReading() }
    }

    /// A bare connection to the socket at `path`.
    static func descriptor(_ path: String) throws -> FileDescriptor {
        let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        try #require(number >= 0)
        let connected = try UnixAddress(path).with { connect(number, $0, $1) }
        guard connected == 0 else {
            let reason = String(cString: strerror(errno))
            Glibc.close(number)
            throw Ended(awaited: "connection to \(path): \(reason)")
        }
        return FileDescriptor(number: number)
    }

    /// Talks through the socket `descriptor`, which it owns from now on.
    init(through descriptor: FileDescriptor) {
        self.descriptor = descriptor
        startReading()
    }

    deinit {
        // Pending writes retain the queue, not this object.
        close()
        let (descriptor, isStarted) = (descriptor, isStarted.load(ordering: .acquiring))
        // If a thread reads, that thread closes the descriptor at the end.
        if !isStarted { writer.async { descriptor.close() } }
    }

    /// Begins to read.
    func startReading() {
        guard isStarted.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
        else { return }
        // Another thread splits lines: if one thread parsed long lines between its reads, the daemon would see a client
        // that does not read.
        let parser = DispatchQueue(label: "wire.parser")
        Thread.detachNewThread { [descriptor, lines, writer] in
            let partial = Partial()
            while let bytes = descriptor.read() {
                parser.async { partial.take(bytes, into: lines) }
            }
            parser.async {
                partial.end(into: lines)
                lines.close()
            }
            writer.async { descriptor.close() }
        }
    }

    /// The beginning of a line, used on one queue.
    private final class Partial: @unchecked Sendable {
        private var bytes: [UInt8] = []

        func take(_ more: [UInt8], into lines: Mailbox<Line>) {
            var more = more[...]
            while let end = more.firstIndex(of: UInt8(ascii: "\n")) {
                bytes += more[..<end]
                more = more[(end + 1)...]
                let json = (try? JSON(parsing: bytes, maximumDepth: 512)) ?? .null
                lines.put(Line(text: String(decoding: bytes, as: UTF8.self), json: json))
                bytes = []
            }
            bytes += more
        }

        func end(into lines: Mailbox<Line>) {
            guard !bytes.isEmpty else { return }
            lines.put(Line(text: "unfinished: " + String(decoding: bytes, as: UTF8.self), json: .null))
        }
    }

    // MARK: - Sending

    /// Sends bytes as they are. It never waits; they go out in order.
    func send(raw bytes: [UInt8]) {
        writer.async { [descriptor] in descriptor.write(bytes) }
    }

    func send(raw text: String) { send(raw: Array(text.utf8)) }

    /// Sends one line.
    func sendLine(_ line: String) { send(raw: line + "\n") }

    /// Sends a request and gives its id.
    @discardableResult
    func send(_ method: String, _ params: JSON = [:]) -> Int {
        let id = lastID.add(1, ordering: .relaxed).newValue
        sendLine(Self.request(id, method, params))
        return id
    }

    /// A request as a line without its end.
    static func request(_ id: Int, _ method: String, _ params: JSON) -> String {
        let request: JSON = ["jsonrpc": "2.0", "id": JSON(id), "method": .string(method), "params": params]
        return String(decoding: request.utf8, as: UTF8.self)
    }

    /// Shuts the writing side, as `printf … | socat` does.
    func finishWriting() {
        writer.async { [descriptor] in descriptor.shutDown(SHUT_WR) }
    }

    /// Goes away.
    func close() { descriptor.shutDown() }

    /// Goes away once all was sent, which waits for a daemon that does not read.
    func closeAfterSending() {
        writer.sync {}
        close()
    }

    // MARK: - Receiving

    /// The lines that have arrived and were not removed yet.
    var waiting: [Line] { lines.waiting }

    /// The next line, whatever it is; nil at the end.
    func next(_ awaited: String = "line") async throws -> Line? {
        try await lines.next(awaited)
    }

    /// The next line that is wanted; others stay.
    func next(_ awaited: String, where isWanted: @escaping @Sendable (Line) -> Bool) async throws -> Line {
        guard let line = try await lines.next(awaited, where: isWanted) else { throw Ended(awaited: awaited) }
        return line
    }

    /// The answer to the request `id`.
    func answer(_ id: JSON) async throws -> JSON {
        try await next("answer to \(id)") { $0.id == id }.json
    }

    /// The result of the request `id`, or the refusal is thrown.
    func result(_ id: Int) async throws -> JSON {
        let answer = try await answer(JSON(id))
        if let error = answer["error"] { throw Self.refusal(error) }
        return try #require(answer["result"], "neither result nor error: \(answer)")
    }

    static func refusal(_ error: JSON) -> Refusal {
        Refusal(
            code: error["code"]?.int ?? 0, message: error["message"]?.string ?? "", data: error["data"] ?? .null)
    }

    /// All lines until the daemon closes the connection.
    func rest() async throws -> [Line] {
        var rest: [Line] = []
        while let line = try await next("end of the connection") { rest.append(line) }
        return rest
    }

    // MARK: - Calling

    /// Calls a method and gives its result.
    func call(_ method: String, _ params: JSON = [:]) async throws -> JSON {
        try await result(send(method, params))
    }

    /// Calls a method that must be refused.
    func refusal(
        _ method: String, _ params: JSON = [:], sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> Refusal {
        let answer = try await answer(JSON(send(method, params)))
        return Self.refusal(
            try #require(answer["error"], "\(method) was not refused: \(answer)", sourceLocation: sourceLocation))
    }

    /// Submits a spec and gives the job's id.
    func submit(_ spec: JSON) async throws -> Int {
        try #require(try await call("job.submit", spec)["job"]?.int)
    }

    /// Waits until a job is over and gives its object.
    func wait(_ job: Int) async throws -> JSON {
        try await call("job.wait", ["job": JSON(job)])
    }

    /// Submits a spec and gives the job object it ends as.
    func run(_ spec: JSON) async throws -> JSON {
        try await wait(submit(spec))
    }

    /// Submits a spec whose job must succeed, and gives the result.
    func succeed(_ spec: JSON, sourceLocation: SourceLocation = #_sourceLocation) async throws -> JSON {
        let job = try await run(spec)
        #expect(job["state"] == "succeeded", "\(job)", sourceLocation: sourceLocation)
        return try #require(job["result"], "no result: \(job)", sourceLocation: sourceLocation)
    }

    /// Submits a spec whose job must fail, and gives the error.
    func fail(_ spec: JSON, sourceLocation: SourceLocation = #_sourceLocation) async throws -> JSON {
        let job = try await run(spec)
        #expect(job["state"] == "failed", "\(job)", sourceLocation: sourceLocation)
        return try #require(job["error"], "no error: \(job)", sourceLocation: sourceLocation)
    }

    /// The next notification of `job` in `state`.
    @discardableResult
    func state(_ state: String, of job: Int) async throws -> Line {
        try await next("\(state) of job \(job)") { $0.job == job && $0.state == state }
    }

    /// Calls `server.stats` until its results are as expected: the daemon's work after a client's end has no other
    /// sign. Each answer follows more of the daemon's work, so this waits for that and not for a clock.
    func eventually(
        sourceLocation: SourceLocation = #_sourceLocation, _ isExpected: (JSON) -> Bool
    ) async throws {
        let deadline = ContinuousClock.now + .seconds(Patience.seconds)
        var stats = JSON.null
        while ContinuousClock.now < deadline {
            stats = try await call("server.stats")
            if isExpected(stats) { return }
            try await Task.sleep(for: .milliseconds(5))
        }
        Issue.record("The daemon came to nothing else than \(stats)", sourceLocation: sourceLocation)
    }
}
