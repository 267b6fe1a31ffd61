import JobProtocol
import NIOCore

/// The lines of one read.
final class ReadLines: Sendable {
    let frames: [LineFramer.Frame]
    private let charge: MemoryCharge

    init(_ frames: [LineFramer.Frame], _ charge: MemoryCharge) {
        self.frames = frames
        self.charge = charge
    }
}

/// What is to be sent at once.
struct OutgoingBytes: Sendable {
    let bytes: ByteBuffer
    let sending: SendingBytes
}

/// Cuts what a client sends into lines, one array for each read, and counts what they take, and what is being sent.
final class FrameHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ReadLines
    typealias OutboundIn = OutgoingBytes
    typealias OutboundOut = ByteBuffer

    private var framer: LineFramer
    private let account: MemoryAccount

    /// The length of the longest line may change between reads.
    private let limit: @Sendable () -> Int

    init(limit: @escaping @Sendable () -> Int, account: MemoryAccount) {
        framer = LineFramer(limit: limit()) { account.admits(unfinished: $0) }
        self.limit = limit
        self.account = account
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        var frames: [LineFramer.Frame] = []
        framer.limit = limit()
        let kept = framer.kept
        buffer.withUnsafeReadableBytes { framer.feed($0, into: &frames) }
        guard !frames.isEmpty else { return }
        // The bytes that were kept are now part of the first line, as only one line can be without its end.
        account.complete(unfinished: kept, isDropped: true)
        let size = frames.reduce(0) { $0 + $1.size }
        account.charge(size)
        context.fireChannelRead(wrapInboundOut(ReadLines(frames, MemoryCharge(of: size, in: account))))
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        account.complete(unfinished: framer.kept, isDropped: true)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let outgoing = unwrapOutboundIn(data)
        let promise = promise ?? context.eventLoop.makePromise()
        // It counts until the socket has it, or never will.
        promise.futureResult.whenComplete { _ in withExtendedLifetime(outgoing.sending) {} }
        context.write(wrapOutboundOut(outgoing.bytes), promise: promise)
    }
}

extension LineFramer.Frame {
    fileprivate var size: Int {
        if case .line(let line) = self { line.count } else { 0 }
    }
}
