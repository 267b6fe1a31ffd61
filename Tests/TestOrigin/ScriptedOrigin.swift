import NIOCore
import NIOPosix
import Synchronization

/// A server on loopback that follows a script exactly, even a wrong one, for as long as a closure runs.
package final class ScriptedOrigin: Sendable {
    /// The steps for a request; `count` is the number of earlier requests for that path.
    package typealias Script = @Sendable (_ request: OriginLog.Entry, _ count: Int) -> [OriginStep]

    package let log = OriginLog()
    package let port: Int
    /// Connections that clients ended while they were held.
    private let departures = AsyncStream.makeStream(of: Void.self)
    private let accepted = Atomic<Int>(0)
    fileprivate let script: Script
    /// Whether a request's body is waited for; else the script runs once the head is there, and the body is dropped as
    /// it comes.
    fileprivate let readsBodies: Bool

    private init(port: Int, readsBodies: Bool, script: @escaping Script) {
        self.port = port
        self.readsBodies = readsBodies
        self.script = script
    }

    /// The URL of `path`; `host` is another name or spelling of loopback.
    package func url(_ path: String, host: String = "127.0.0.1") -> String { "http://\(host):\(port)\(path)" }

    /// Connections that came so far.
    package var connectionCount: Int { accepted.load(ordering: .relaxed) }

    /// Waits until a client has gone away.
    package func clientLeaves() async {
        for await _ in departures.stream { return }
    }

    fileprivate func clientLeft() { departures.continuation.yield() }

    /// Runs an origin on 127.0.0.1 while `body` runs.
    package static func run<Value: Sendable>(
        readsBodies: Bool = true, _ script: @escaping Script, _ body: (ScriptedOrigin) async throws -> Value
    ) async throws -> Value {
        let origins = Mutex<ScriptedOrigin?>(nil)
        let connections = Mutex<[ObjectIdentifier: any Channel]>([:])
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                guard let origin = origins.withLock({ $0 }) else { return channel.close() }
                origin.accepted.add(1, ordering: .relaxed)
                connections.withLock { $0[ObjectIdentifier(channel)] = channel }
                channel.closeFuture.whenComplete { _ in
                    connections.withLock { $0[ObjectIdentifier(channel)] = nil }
                }
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(ScriptHandler(origin))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let origin = ScriptedOrigin(port: listener.localAddress?.port ?? 0, readsBodies: readsBodies, script: script)
        origins.withLock { $0 = origin }
        let outcome: Result<Value, any Error>
        do {
            outcome = .success(try await body(origin))
        } catch {
            outcome = .failure(error)
        }
        try await listener.close()
        for channel in connections.withLock({ Array($0.values) }) { try? await channel.close() }
        return try outcome.get()
    }
}

/// Collects one request after the other and carries out the script's steps for each.
private final class ScriptHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let origin: ScriptedOrigin
    private var received = ByteBuffer()
    /// The request whose script is carried out.
    private var request: OriginLog.Entry?
    /// Bytes of a request's body that are still to come and are dropped.
    private var dropped = 0

    init(_ origin: ScriptedOrigin) {
        self.origin = origin
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        received.writeImmutableBuffer(Self.unwrapInboundIn(data))
        let surplus = min(dropped, received.readableBytes)
        received.moveReaderIndex(forwardBy: surplus)
        dropped -= surplus
        received.discardReadBytes()
        if dropped == 0 { serveNext(context) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        origin.clientLeft()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    private func serveNext(_ context: ChannelHandlerContext) {
        guard request == nil, let entry = takeRequest() else { return }
        request = entry
        let count = origin.log.count(entry.path)
        origin.log.append(entry)
        perform(origin.script(entry, count)[...], context)
    }

    private func takeRequest() -> OriginLog.Entry? {
        let bytes = received.readableBytesView
        // The client speaks TLS.
        if bytes.first == 0x16 {
            received.clear()
            return OriginLog.Entry(method: "", target: "/", headers: [:], body: [])
        }
        guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n")
        let words = lines[0].split(separator: " ")
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            headers[parts[0].lowercased()] = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
        }
        let length = headers["content-length"].flatMap { Int($0) } ?? 0
        guard origin.readsBodies else {
            let present = min(length, bytes.endIndex - end.upperBound)
            received.moveReaderIndex(forwardBy: end.upperBound + present - bytes.startIndex)
            dropped = length - present
            return OriginLog.Entry(method: String(words[0]), target: String(words[1]), headers: headers, body: [])
        }
        guard bytes.endIndex - end.upperBound >= length else { return nil }
        let body = Array(bytes[end.upperBound..<end.upperBound + length])
        received.moveReaderIndex(forwardBy: end.upperBound + length - bytes.startIndex)
        return OriginLog.Entry(method: String(words[0]), target: String(words[1]), headers: headers, body: body)
    }

    private func perform(_ steps: ArraySlice<OriginStep>, _ context: ChannelHandlerContext) {
        guard let step = steps.first else {
            request = nil
            return serveNext(context)
        }
        let rest = steps.dropFirst()
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        let goOn: @Sendable () -> Void = {
            let (handler, context) = bound.value
            handler.perform(rest, context)
        }
        switch step {
        case .send(let bytes):
            context.writeAndFlush(Self.wrapOutboundOut(ByteBuffer(bytes: bytes))).whenSuccess(goOn)
        case .stream(let count):
            let piece = min(count, Self.pattern.readableBytes)
            guard piece > 0, let block = Self.pattern.getSlice(at: 0, length: piece) else { return goOn() }
            let following = [.stream(count - piece)] + rest
            context.writeAndFlush(Self.wrapOutboundOut(block)).whenSuccess {
                let (handler, context) = bound.value
                handler.perform(following[...], context)
            }
        case .wait(let gate):
            let loop = context.eventLoop
            gate.whenOpen { loop.execute(goOn) }
        case .lead(let body):
            if let request { body(OriginExchange(request, context.channel, goOn)) }
        case .tell(let listener):
            listener.yield()
            goOn()
        case .hold: break
        case .stopReading:
            context.channel.setOption(.autoRead, value: false).whenSuccess(goOn)
        case .close: context.close(promise: nil)
        case .reset:
            // Lingering for no time at all makes the close a reset.
            guard let socket = context.channel as? any SocketOptionProvider else { return }
            socket.setSoLinger(linger(l_onoff: 1, l_linger: 0)).whenComplete { _ in
                bound.value.1.close(promise: nil)
            }
        }
    }

    private static let pattern = ByteBuffer(bytes: (0..<(256 << 10)).map { UInt8(truncatingIfNeeded: $0 &* 31) })
}
