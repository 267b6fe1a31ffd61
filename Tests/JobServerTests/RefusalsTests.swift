import Glibc
import JobModel
import Testing

@testable import JobServer

@Suite struct RefusalsTests {
    private let users: AsyncStream<UInt32>
    private let refusals: Refusals

    init() {
        let (users, told) = AsyncStream.makeStream(of: UInt32.self)
        self.users = users
        refusals = Refusals { user, _ in told.yield(user) }
    }

    /// The next users who were told.
    private func told(_ count: Int) async -> [UInt32] {
        var iterator = users.makeAsyncIterator()
        var told: [UInt32] = []
        while told.count < count, let user = await iterator.next() { told.append(user) }
        return told
    }

    /// The client's end of a connection, which does not block, and the daemon's.
    private func connection() throws -> (client: Int32, server: Int32) {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        try #require(socketpair(AF_UNIX, kind, 0, &ends) == 0)
        return (ends[0], ends[1])
    }

    /// More than may wait.
    @Test func refused_areToldWhy_andClosed_inOrder() async throws {
        var clients: [Int32] = []
        defer { for client in clients { close(client) } }
        for user in 0..<300 {
            let (client, server) = try connection()
            clients.append(client)
            refusals.refuse(server, of: UInt32(user), .tooManyOfUser(user))
        }
        #expect(await told(300) == (0..<300).map { UInt32($0) })
        for (user, client) in clients.enumerated() {
            var line: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 4096)
            var count = read(client, &buffer, buffer.count)
            while count > 0 {
                line += buffer[..<count]
                count = read(client, &buffer, buffer.count)
            }
            #expect(count == 0, "it is closed")
            let error = try JSON(parsing: String(decoding: line, as: UTF8.self))["error"]
            #expect(line.last == UInt8(ascii: "\n") && error?["code"] == -32003)
            #expect(error?["message"]?.string?.contains("You have \(user) connections") == true)
        }
    }

    @Test func refused_whoIsGone_keepsNobodyWaiting() async throws {
        for user in [1, 2] as [UInt32] {
            let (client, server) = try connection()
            close(client)
            refusals.refuse(server, of: user, .tooMany(9))
        }
        #expect(await told(2) == [1, 2])
    }
}
