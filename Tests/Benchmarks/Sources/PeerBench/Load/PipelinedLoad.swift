import Glibc

/// Keeps this many requests in flight on each of several connections, from one thread.
final class PipelinedLoad {
    /// The results.
    struct Outcome {
        let answers: Int
        let seconds: Double
        /// CPU seconds of the load itself.
        let cpu: Double
        var rate: Double { Double(answers) / seconds }
    }

    private struct Client {
        let socket: LocalSocket
        var scanner: AnswerScanner
        var sent = 0
        var answered = 0
    }

    private var clients: [Client]
    private let requests: RequestBuffer
    private let depth: Int
    /// The next request, where all connections together send each once.
    private var next: Int?
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 64)

    /// Each connection sends all requests, one after another, or all together do where these `areShared`.
    init(
        connections: [LocalSocket], depth: Int, requests: RequestBuffer, areShared: Bool = false,
        scanner: AnswerScanner
    ) {
        next = areShared ? 0 : nil
        clients = connections.map { Client(socket: $0, scanner: scanner) }
        self.requests = requests
        self.depth = depth
    }

    deinit { buffer.deallocate() }

    /// Sends for this many seconds; answers within that time count, and the rest are awaited.
    func run(seconds: Double) throws -> Outcome {
        let (wall, cpu) = (Stopwatch(), Stopwatch.thread)
        var answers = 0
        try start()
        while wall.seconds < seconds { answers += try step(refill: .max) }
        let outcome = Outcome(answers: answers, seconds: wall.seconds, cpu: cpu.seconds)
        try drain()
        return outcome
    }

    /// Sends this many requests and awaits all answers.
    func run(count: Int) throws -> Outcome {
        let (wall, cpu) = (Stopwatch(), Stopwatch.thread)
        var answers = 0
        var left = count
        for index in clients.indices where left > 0 {
            let first = min(depth, left)
            left -= first
            try send(first, on: index)
        }
        while answers < count {
            let answered = try step(refill: left)
            left -= min(answered, left)
            answers += answered
        }
        return Outcome(answers: answers, seconds: wall.seconds, cpu: cpu.seconds)
    }

    private func start() throws {
        for index in clients.indices { try send(depth, on: index) }
    }

    private func drain() throws {
        while clients.contains(where: { $0.answered < $0.sent }) { _ = try step(refill: 0) }
    }

    private func send(_ count: Int, on index: Int) throws {
        guard count > 0 else { return }
        let first = next ?? clients[index].sent
        if next != nil { next = first + count }
        clients[index].sent += count
        try requests.bytes.withUnsafeBytes { bytes in
            try clients[index].socket.send(requests.slice(from: first, count: count, in: bytes))
        }
    }

    /// Waits for answers; for each a new request follows, as long as `refill` allows.
    private func step(refill: Int) throws -> Int {
        var answers = 0
        if clients.count == 1 { return try receive(0, refill: refill) }
        var polled = clients.map { pollfd(fd: $0.socket.descriptor, events: Int16(POLLIN), revents: 0) }
        guard poll(&polled, nfds_t(polled.count), 10_000) > 0 else {
            throw BenchError("The server has not answered for ten seconds.")
        }
        for index in polled.indices where polled[index].revents != 0 {
            answers += try receive(index, refill: max(refill - answers, 0))
        }
        return answers
    }

    private func receive(_ index: Int, refill: Int) throws -> Int {
        let count = try clients[index].socket.receive(into: buffer)
        let answers = try clients[index].scanner.lines(in: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        clients[index].answered += answers
        try send(min(answers, refill), on: index)
        return answers
    }
}
