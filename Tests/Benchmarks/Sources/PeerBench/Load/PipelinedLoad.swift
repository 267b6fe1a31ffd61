import Glibc

/// Keeps so many requests under way on each of several connections, from one thread.
final class PipelinedLoad {
    /// What came of it.
    struct Outcome {
        let answers: Int
        let seconds: Double
        /// CPU seconds of the load itself.
        let cpu: Double
        var rate: Double { Double(answers) / seconds }
    }

    private struct Lane {
        let socket: LocalSocket
        var scanner: AnswerScanner
        var sent = 0
        var answered = 0
    }

    private var lanes: [Lane]
    private let ring: RequestRing
    private let depth: Int
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 64)

    init(connections: [LocalSocket], depth: Int, ring: RequestRing, scanner: AnswerScanner) {
        lanes = connections.map { Lane(socket: $0, scanner: scanner) }
        self.ring = ring
        self.depth = depth
    }

    deinit { buffer.deallocate() }

    /// Sends for so many seconds; what is answered within them counts, what is under way then is awaited.
    func run(seconds: Double) throws -> Outcome {
        let (wall, cpu) = (Stopwatch(), Stopwatch.thread)
        var answers = 0
        try start()
        while wall.seconds < seconds { answers += try step(refill: .max) }
        let outcome = Outcome(answers: answers, seconds: wall.seconds, cpu: cpu.seconds)
        try drain()
        return outcome
    }

    /// Sends so many requests and awaits all answers.
    func run(count: Int) throws -> Outcome {
        let (wall, cpu) = (Stopwatch(), Stopwatch.thread)
        var answers = 0
        var left = count
        for index in lanes.indices where left > 0 {
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
        for index in lanes.indices { try send(depth, on: index) }
    }

    private func drain() throws {
        while lanes.contains(where: { $0.answered < $0.sent }) { _ = try step(refill: 0) }
    }

    private func send(_ count: Int, on index: Int) throws {
        guard count > 0 else { return }
        let first = lanes[index].sent
        lanes[index].sent += count
        try ring.bytes.withUnsafeBytes { bytes in
            try lanes[index].socket.send(ring.slice(from: first, count: count, in: bytes))
        }
    }

    /// Waits for answers; for each a new request follows, as long as `refill` allows.
    private func step(refill: Int) throws -> Int {
        var answers = 0
        if lanes.count == 1 { return try take(0, refill: refill) }
        var polled = lanes.map { pollfd(fd: $0.socket.descriptor, events: Int16(POLLIN), revents: 0) }
        guard poll(&polled, nfds_t(polled.count), 10_000) > 0 else {
            throw BenchError("The server has not answered for ten seconds.")
        }
        for index in polled.indices where polled[index].revents != 0 {
            answers += try take(index, refill: max(refill - answers, 0))
        }
        return answers
    }

    private func take(_ index: Int, refill: Int) throws -> Int {
        let count = try lanes[index].socket.receive(into: buffer)
        let answers = try lanes[index].scanner.lines(in: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        lanes[index].answered += answers
        try send(min(answers, refill), on: index)
        return answers
    }
}
