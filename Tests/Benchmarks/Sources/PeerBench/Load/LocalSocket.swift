import Glibc

/// A client's end of a connection to a server on this machine.
final class LocalSocket {
    private let descriptor: Int32
    /// Holds the longest line, the answer to a watch of many jobs.
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4 << 20, alignment: 64)
    /// Bytes of a line whose end has not come.
    private var filled = 0

    /// Connects; if no process listens yet, it tries again for `patience` seconds.
    init(path: String, patience: Double = 0) throws {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
        let watch = Stopwatch()
        while true {
            let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            let result = withUnsafePointer(to: address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            if result == 0 {
                self.descriptor = descriptor
                return
            }
            let error = BenchError.system("connect to \(path)")
            close(descriptor)
            guard watch.seconds < patience else { throw error }
            usleep(200)
        }
    }

    deinit {
        close(descriptor)
        buffer.deallocate()
    }

    func send(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes
        while !rest.isEmpty {
            let count = write(descriptor, rest.baseAddress, rest.count)
            guard count >= 0 else { throw BenchError.system("write to the server") }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }

    func send(_ text: String) throws { try Array(text.utf8).withUnsafeBytes { try send($0) } }

    /// Waits for bytes, and passes on each line that is whole by then; returns the number of bytes.
    @discardableResult
    func receive(_ line: (UnsafeRawBufferPointer) throws -> Void) throws -> Int {
        guard let base = buffer.baseAddress, filled < buffer.count else { throw BenchError("A line has no end.") }
        let count = read(descriptor, base + filled, buffer.count - filled)
        guard count > 0 else { throw BenchError("The server has closed the connection.") }
        let end = filled + count
        var start = 0
        while let newline = memchr(base + start, 10, end - start) {
            let length = (base + start).distance(to: UnsafeMutableRawPointer(newline))
            try line(UnsafeRawBufferPointer(start: base + start, count: length))
            start += length + 1
        }
        filled = end - start
        if start > 0 { memmove(base, base + start, filled) }
        return count
    }

    /// Sends a line and waits for its answer, the first line that comes then; no other call may be in flight.
    func ask(_ line: String) throws -> String {
        try send(line)
        var answer: String?
        while true {
            try receive { answer = answer ?? String(decoding: $0, as: UTF8.self) }
            if let answer { return answer }
        }
    }

    /// Those from which something can be read.
    static func readable(of sockets: [LocalSocket]) throws -> [LocalSocket] {
        if sockets.count == 1 { return sockets }
        var polled = sockets.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
        guard poll(&polled, nfds_t(polled.count), 10_000) > 0 else {
            throw BenchError("The server has said nothing for ten seconds.")
        }
        return zip(sockets, polled).compactMap { $1.revents == 0 ? nil : $0 }
    }
}
