import JobModel
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import DataSources

@Suite struct ServerConnectionTests {
    /// A connection whose reads are seen, with exchanges.
    private struct Bench {
        let channel = NIOAsyncTestingChannel()
        let reads = ReadCounter()
        let pool = ConnectionPool()
        let connection: ServerConnection
        let request: OutgoingRequest

        init() async throws {
            let url = try #require(RequestURL("http://127.0.0.1:1/"))
            request = OutgoingRequest(url, headers: [], coding: .asSent)
            let loop = ObjectIdentifier(channel.testingEventLoop)
            connection = ServerConnection(
                on: channel, ConnectionPool.Key(loop: loop, origin: url.origin, owner: 1000), pool)
            try await channel.pipeline.addHandlers([reads, connection]).get()
            try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
        }

        func begin() async throws -> Exchange {
            let loop = channel.testingEventLoop
            let exchange = Exchange(
                of: request, TransferControl(loop), loop: loop, idleTimeout: .hours(1), longestHeader: 1000)
            let head = try request.head()
            try await loop.submit { exchange.begin(on: connection, head) }.get()
            return exchange
        }
    }

    /// Counts the reads that reach the socket.
    private final class ReadCounter: ChannelOutboundHandler, Sendable {
        typealias OutboundIn = Never
        let count = Mutex(0)

        func read(context: ChannelHandlerContext) {
            count.withLock { $0 += 1 }
            context.read()
        }
    }

    /// A server could take what comes next on it for the other user's.
    @Test func idleConnection_isOfOneUser() async throws {
        let bench = try await Bench()
        try await bench.channel.testingEventLoop.submit { bench.pool.add(bench.connection) }.get()
        let key = bench.connection.key
        let others = ConnectionPool.Key(loop: key.loop, origin: key.origin, owner: 1001)
        try await bench.channel.testingEventLoop.submit {
            #expect(bench.pool.connection(others, mayBeStale: true) == nil)
            #expect(bench.pool.connection(key, mayBeStale: true) === bench.connection)
        }.get()
    }

    @Test(arguments: [true, false])
    func idleConnection_isReadFrom_whenTheLastBodyFilledItsBuffer(isReadBeforeTheEnd: Bool) async throws {
        let bench = try await Bench()
        let exchange = try await bench.begin()
        let before = bench.reads.count.withLock(\.self)
        // A socket asks for its next read while the reader has not come yet.
        try await bench.channel.testingEventLoop.submit {
            let pipeline = bench.channel.pipeline
            pipeline.fireChannelRead(
                ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: \(Exchange.limit + 1)\r\n\r\n"))
            pipeline.fireChannelRead(ByteBuffer(repeating: 0, count: Exchange.limit))
            if isReadBeforeTheEnd { pipeline.read() }
        }.get()
        #expect(bench.reads.count.withLock(\.self) == before, "A full buffer holds the connection back.")
        try await bench.channel.testingEventLoop.submit {
            bench.channel.pipeline.fireChannelRead(ByteBuffer(bytes: [0]))
            if !isReadBeforeTheEnd { bench.channel.pipeline.read() }
        }.get()
        #expect(bench.reads.count.withLock(\.self) == before + 1)
        try await bench.channel.testingEventLoop.submit {
            #expect(bench.pool.connection(bench.connection.key, mayBeStale: true) === bench.connection)
        }.get()
        exchange.close()
        try await bench.channel.close().get()
    }

    @Test func partOfABody_keepsNoMoreThanItself_ofAReadWithMuchBesideIt() async throws {
        let bench = try await Bench()
        let exchange = try await bench.begin()
        // The extension of the chunk is long.
        let (extensions, part) = (String(repeating: "x", count: 500), ByteBuffer(repeating: 7, count: 5000))
        var read = ByteBuffer(string: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1388;\(extensions)\r\n")
        read.reserveCapacity(1 << 20)
        read.writeImmutableBuffer(part)
        let bytes = read
        try await bench.channel.testingEventLoop.submit { bench.channel.pipeline.fireChannelRead(bytes) }.get()
        let blocks = try #require(try await exchange.next())
        #expect(blocks == [part] && blocks.allSatisfy { $0.storageCapacity < 64 << 10 })
        exchange.close()
        _ = try? await bench.channel.close().get()
    }
}
