import Dispatch
import Glibc
package import JobModel
import Synchronization

/// A server at a Unix socket of its own that does to one client what a test tells it to.
///
/// It does what no real daemon would: answer wrongly, in another order, too much, or not at all.
package enum FakeDaemon {
    /// Runs `body` with the path of a socket whose first connection is given to `serve`, on a thread of its own.
    package static func with<Value>(
        _ serve: @escaping @Sendable (FakeConnection) -> Void, _ body: (String) async throws -> Value
    ) async throws -> Value {
        try await with([serve], body)
    }

    /// The same with one function for each connection in turn.
    package static func with<Value>(
        _ connections: [@Sendable (FakeConnection) -> Void], _ body: (String) async throws -> Value
    ) async throws -> Value {
        var template = Array("/tmp/deferd-client-XXXXXX".utf8CString)
        guard let directory = template.withUnsafeMutableBufferPointer({ $0.baseAddress.flatMap(mkdtemp) }) else {
            throw FakeDaemonError(call: "mkdtemp", number: errno)
        }
        let path = String(cString: directory) + "/s"
        defer {
            unlink(path)
            rmdir(String(cString: directory))
        }
        let listener = try listen(at: path)
        defer { close(listener) }
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        // A queue of its own gets a thread of its own; the shared ones have few, and these calls block.
        DispatchQueue(label: "fake-daemon").async {
            for serve in connections {
                let descriptor = accept(listener, nil, nil)
                guard descriptor >= 0 else { break }
                serve(FakeConnection(descriptor: descriptor))
                close(descriptor)
            }
            end.finish()
        }
        let outcome: Result<Value, any Error>
        do { outcome = .success(try await body(path)) } catch { outcome = .failure(error) }
        // Wakes an accept without a client.
        shutdown(listener, Int32(SHUT_RDWR))
        for await _ in ends {}
        return try outcome.get()
    }

    private static func listen(at path: String) throws -> Int32 {
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard listener >= 0 else { throw FakeDaemonError(call: "socket", number: errno) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let bound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard bound == 0, Glibc.listen(listener, 16) == 0 else { throw FakeDaemonError(call: "bind", number: errno) }
        return listener
    }
}

package struct FakeDaemonError: Error {
    let call: String
    let number: Int32
}

/// The daemon's end of a connection, read and written by blocking calls.
package final class FakeConnection: Sendable {
    private let descriptor: Int32
    private let buffer = Mutex<[UInt8]>([])

    init(descriptor: Int32) {
        self.descriptor = descriptor
    }

    /// The next call, or nil at the end of the connection.
    package func call() -> JSON? {
        while true {
            let line = buffer.withLock { buffer -> [UInt8]? in
                guard let end = buffer.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
                defer { buffer.removeSubrange(...end) }
                return Array(buffer[..<end])
            }
            if let line { return try? JSON(parsing: line) }
            var piece = [UInt8](repeating: 0, count: 65536)
            let count = read(descriptor, &piece, piece.count)
            guard count > 0 else { return nil }
            buffer.withLock { $0 += piece[..<count] }
        }
    }

    /// The next calls, so many of them.
    package func calls(_ count: Int) -> [JSON] { (0..<count).compactMap { _ in call() } }

    /// Sends bytes as they are; it does not matter here whether they arrive.
    package func send(_ text: String) {
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { raw in
                Glibc.send(
                    descriptor, raw.baseAddress.map { $0 + sent }, raw.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return }
            sent += count
        }
    }

    /// Answers `call` with a result.
    package func answer(_ call: JSON, _ result: JSON) {
        send(#"{"jsonrpc":"2.0","id":\#(call["id"] ?? .null),"result":\#(result)}"# + "\n")
    }

    /// Waits until the client has gone.
    package func waitForEnd() {
        while call() != nil {}
    }
}
