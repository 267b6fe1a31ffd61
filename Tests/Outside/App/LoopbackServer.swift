import Foundation
import Glibc

/// A server on loopback that sends one body, whatever it is asked for: enough for a program that shows the sources.
final class LoopbackServer: Sendable {
    let url: String
    private let descriptor: Int32

    /// Serves `body` until the process ends.
    init(_ body: String) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(descriptor, pointer, size) + listen(descriptor, 8) + getsockname(descriptor, pointer, &size)
            }
        }
        guard descriptor >= 0, result == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        url = "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))/"
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)"
        Thread.detachNewThread {
            while true {
                let connection = accept(descriptor, nil, nil)
                guard connection >= 0 else { return }
                var request = [UInt8](repeating: 0, count: 4096)
                _ = recv(connection, &request, request.count, 0)
                _ = send(connection, answer, answer.utf8.count, Int32(MSG_NOSIGNAL))
                close(connection)
            }
        }
    }
}
