import Glibc

/// A client's end of a connection to a server on this machine.
final class LocalSocket {
    /// A path as the kernel wants it.
    struct Address {
        private var address = sockaddr_un()

        init(path: String) throws {
            address.sun_family = sa_family_t(AF_UNIX)
            let room = MemoryLayout.size(ofValue: address.sun_path) - 1
            guard path.utf8.count <= room else { throw BenchError("The socket path \(path) is too long.") }
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        }

        func with<Value>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Value) -> Value {
            withUnsafePointer(to: address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
        }
    }

    let descriptor: Int32

    /// Connects; if no process listens yet, it tries again for `patience` seconds.
    init(path: String, patience: Double = 0) throws {
        let address = try Address(path: path)
        let watch = Stopwatch()
        while true {
            let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
            if address.with({ connect(descriptor, $0, $1) }) == 0 {
                self.descriptor = descriptor
                return
            }
            let error = BenchError.system("connect to \(path)")
            close(descriptor)
            guard watch.seconds < patience else { throw error }
            usleep(200)
        }
    }

    deinit { close(descriptor) }

    func send(_ bytes: UnsafeRawBufferPointer) throws {
        var rest = bytes
        while !rest.isEmpty {
            let count = write(descriptor, rest.baseAddress, rest.count)
            if count < 0 {
                guard errno == EINTR else { throw BenchError.system("write to the server") }
            } else {
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
        }
    }

    func send(_ text: String) throws {
        try Array(text.utf8).withUnsafeBytes { try send($0) }
    }

    /// Waits for some bytes.
    func receive(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
        while true {
            let count = read(descriptor, buffer.baseAddress, buffer.count)
            if count > 0 { return count }
            guard count < 0 else { throw BenchError("The server has closed the connection.") }
            guard errno == EINTR else { throw BenchError.system("read from the server") }
        }
    }

    /// Sends a line and waits for its answer; no other call may be in flight.
    func ask(_ line: String) throws -> String {
        try send(line)
        return try receiveLine()
    }

    /// Waits for one line; nothing may follow it yet.
    func receiveLine() throws -> String {
        var answer: [UInt8] = []
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
        defer { buffer.deallocate() }
        while answer.last != UInt8(ascii: "\n") {
            answer += buffer.prefix(try receive(into: buffer))
        }
        return String(decoding: answer, as: UTF8.self)
    }
}
