import Glibc

/// Clients that watch every job, all read from one thread.
final class Watchers {
    struct Outcome {
        let lines: Int
        let seconds: Double
        /// CPU seconds of the reading itself.
        let cpu: Double
    }

    private let sockets: [LocalSocket]
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 64)

    init(_ daemon: Deferd, count: Int) throws {
        sockets = try (0..<count).map { _ in try daemon.connect() }
        for socket in sockets {
            try socket.send(#"{"jsonrpc":"2.0","id":0,"method":"job.watch","params":{"all":true}}"# + "\n")
        }
    }

    deinit { buffer.deallocate() }

    /// Reads for this many seconds.
    func read(seconds: Double) throws -> Outcome {
        let (wall, cpu) = (Stopwatch(), Stopwatch.thread)
        var lines = 0
        var polled = sockets.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
        while wall.seconds < seconds {
            guard poll(&polled, nfds_t(polled.count), 1000) > 0 else { continue }
            for index in polled.indices where polled[index].revents != 0 {
                let count = try sockets[index].receive(into: buffer)
                lines += Self.newlines(in: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            }
        }
        return Outcome(lines: lines, seconds: wall.seconds, cpu: cpu.seconds)
    }

    private static func newlines(in bytes: UnsafeRawBufferPointer) -> Int {
        var lines = 0
        for byte in bytes where byte == 10 { lines += 1 }
        return lines
    }
}
