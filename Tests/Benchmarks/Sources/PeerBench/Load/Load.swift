import Glibc

/// Keeps this many requests under way on each of several connections, from one thread.
final class Load {
    struct Outcome {
        let answers: Int
        let seconds: Double
        /// Bytes that came.
        let bytes: Int
        var rate: Double { Double(answers) / seconds }
    }

    private let sockets: [LocalSocket]
    private let depth: Int
    /// How an answer begins that is no refusal.
    private let answer: [UInt8]
    /// Whether jobs are watched, and their ends are awaited too.
    private let isWatching: Bool
    /// All requests in one piece, so that sending some of them takes one write, and where each begins.
    private var requests: [UInt8] = []
    private var starts = [0]
    private var next = 0
    private var (answers, ends) = (0, 0)

    /// `requests` are sent one after another, and from the first on again, by whichever connection has room.
    init(
        _ sockets: [LocalSocket], depth: Int, requests: some Sequence<String>, answer: String, isWatching: Bool = false
    ) {
        self.sockets = sockets
        self.depth = depth
        self.answer = Array(answer.utf8)
        self.isWatching = isWatching
        for request in requests {
            self.requests += request.utf8
            starts.append(self.requests.count)
        }
    }

    /// Sends each request once, and awaits all answers, and the ends of all jobs if they are watched.
    func run() throws -> Outcome { try run(count: starts.count - 1) }

    /// Sends for this many seconds, or this many requests; only answers within that time count.
    func run(count: Int = .max, seconds: Double = .infinity) throws -> Outcome {
        let watch = Stopwatch()
        (answers, ends) = (0, 0)
        var (sent, bytes) = (0, 0)
        var last = count
        var outcome: Outcome?
        for socket in sockets { sent += try send(min(depth, last - sent), over: socket) }
        while answers < sent || isWatching && ends < sent {
            if outcome == nil, watch.seconds >= seconds {
                outcome = Outcome(answers: answers, seconds: watch.seconds, bytes: bytes)
                last = sent
            }
            for socket in try LocalSocket.readable(of: sockets) {
                bytes += try socket.receive(take)
                let room = min(answers + depth * sockets.count, last) - sent
                // Beside notifications, answers come a few at a time.
                if room >= depth / 2 || !isWatching || sent + room == last {
                    sent += try send(room, over: socket)
                }
            }
        }
        return outcome ?? Outcome(answers: answers, seconds: watch.seconds, bytes: bytes)
    }

    private func send(_ count: Int, over socket: LocalSocket) throws -> Int {
        var rest = count
        while rest > 0 {
            let part = min(rest, starts.count - 1 - next)
            try requests.withUnsafeBytes { bytes in
                try socket.send(UnsafeRawBufferPointer(rebasing: bytes[starts[next]..<starts[next + part]]))
            }
            next = (next + part) % (starts.count - 1)
            rest -= part
        }
        return count
    }

    private func take(_ line: UnsafeRawBufferPointer) throws {
        if line.starts(with: answer) {
            answers += 1
            guard !line.has(Self.error, within: 48) else { throw Self.refused(line) }
        } else if isWatching, line.has(Self.succeeded, within: 160) {
            ends += 1
        } else if !isWatching || line.has(Self.failed, within: 160) {
            throw Self.refused(line)
        }
    }

    private static let error = Array(#""error":"#.utf8)
    private static let succeeded = Array(#""state":"succeeded","snapshot""#.utf8)
    private static let failed = Array(#""state":"failed","snapshot""#.utf8)

    private static func refused(_ line: UnsafeRawBufferPointer) -> BenchError {
        BenchError("The server said: \(String(decoding: line.prefix(600), as: UTF8.self))")
    }
}

extension UnsafeRawBufferPointer {
    /// Whether these bytes stand somewhere in its beginning.
    fileprivate func has(_ needle: [UInt8], within length: Int) -> Bool {
        var rest = prefix(length)
        while let first = rest.firstIndex(of: needle[0]) {
            rest = rest[first...]
            if rest.starts(with: needle) { return true }
            rest = rest.dropFirst()
        }
        return false
    }
}
