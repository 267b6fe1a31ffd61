import Glibc
import JobModel
import Synchronization
import Testing

@testable import JobServer

@Suite struct RefusalsTests {
    private final class Told: Sendable {
        let users = Mutex<[UInt32]>([])
    }

    /// More than may wait: whoever refuses the last ones waits for the first.
    @Test func refused_areToldWhy_andClosed_inOrder() throws {
        let told = Told()
        let refusals = Refusals { user, _ in told.users.withLock { $0.append(user) } }
        var clients: [Int32] = []
        defer { for client in clients { close(client) } }
        for user in 0..<300 {
            var ends: [Int32] = [-1, -1]
            try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
            clients.append(ends[0])
            // One that is not closed is a failure, and nothing to wait for.
            var patience = timeval(tv_sec: 60, tv_usec: 0)
            setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
            refusals.refuse(ends[1], of: UInt32(user), .tooManyOfUser(user))
        }
        for (user, client) in clients.enumerated() {
            var line: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4096)
            while case let count = read(client, &buffer, buffer.count), count > 0 { line += buffer[..<count] }
            let error = try JSON(parsing: String(decoding: line, as: UTF8.self))["error"]
            #expect(line.last == UInt8(ascii: "\n") && error?["code"] == -32003)
            #expect(error?["message"]?.string?.contains("You have \(user) connections") == true)
        }
        // The last one is told of after its descriptor is closed.
        while told.users.withLock({ $0.count }) < 300 { usleep(1000) }
        #expect(told.users.withLock { $0 } == (0..<300).map { UInt32($0) })
    }

    @Test func refused_whoIsGone_keepsNobodyWaiting() throws {
        let told = Told()
        let refusals = Refusals { user, _ in told.users.withLock { $0.append(user) } }
        for user in [1, 2] as [UInt32] {
            var ends: [Int32] = [-1, -1]
            try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0)
            close(ends[0])
            refusals.refuse(ends[1], of: user, .tooMany(9))
        }
        while told.users.withLock({ $0.count }) < 2 { usleep(1000) }
        #expect(told.users.withLock { $0 } == [1, 2])
    }
}
