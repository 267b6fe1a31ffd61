import Foundation
import Glibc

/// The socket on which a daemon says that it is ready, as it would tell systemd.
final class ReadySocket {
    let path: String
    private let descriptor: Int32

    init(path: String) throws {
        self.path = path
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let address = try LocalSocket.Address(path: path)
        guard descriptor >= 0, address.with({ bind(descriptor, $0, $1) }) == 0 else {
            throw BenchError.system("listen at \(path)")
        }
    }

    deinit {
        shutdown(descriptor, Int32(SHUT_RDWR))
        unlink(path)
    }

    /// Returns when READY=1 has come; `process` must not take longer than half a minute.
    func wait(for process: ChildProcess) throws {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while process.age < 30 {
            var readable = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&readable, 1, 30_000) > 0 else { break }
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { break }
            if String(decoding: buffer[..<count], as: UTF8.self).contains("READY=1") {
                discardRest()
                return
            }
        }
        throw BenchError("The daemon did not become ready.")
    }

    /// Receives later notifications of the daemon, like systemd, so that it never waits for space.
    private func discardRest() {
        let descriptor = descriptor
        Thread.detachNewThread {
            var buffer = [UInt8](repeating: 0, count: 4096)
            while recv(descriptor, &buffer, buffer.count, 0) > 0 {}
            close(descriptor)
        }
    }
}
