import JobProtocol
import NIOCore

/// The lines of one read.
final class ReadLines: Sendable {
    private enum Lines: Sendable {
        case frames([LineFramer.Frame])
        /// Lines side by side, each of which ends where `ends` says: an array of its own would take several times the bytes of
        /// a very short line.
        case packed([UInt8], ends: [Int])
    }

    private let lines: Lines
    private let charge: MemoryCharge

    /// Lines that are shorter than this on average are packed; no request is.
    private static let shortLine = 40

    /// What a line takes beside its bytes: an array's head, and its element among the lines.
    private static let lineOverhead = 64

    init(_ frames: [LineFramer.Frame], _ account: MemoryAccount) {
        let bytes = frames.reduce(0) { $0 + $1.size }
        let size: Int
        if bytes < frames.count * Self.shortLine, frames.allSatisfy(\.isLine) {
            var packed: [UInt8] = []
            packed.reserveCapacity(bytes)
            var ends: [Int] = []
            ends.reserveCapacity(frames.count)
            for case .line(let line) in frames {
                packed += line
                ends.append(packed.count)
            }
            lines = .packed(packed, ends: ends)
            size = bytes + ends.count * MemoryLayout<Int>.size
        } else {
            lines = .frames(frames)
            size = bytes + frames.count * Self.lineOverhead
        }
        account.charge(size)
        charge = MemoryCharge(of: size, in: account)
    }

    var count: Int {
        switch lines {
        case .frames(let frames): frames.count
        case .packed(_, let ends): ends.count
        }
    }

    /// The bytes of a line.
    func size(at index: Int) -> Int {
        switch lines {
        case .frames(let frames): frames[index].size
        case .packed(_, let ends): ends[index] - (index > 0 ? ends[index - 1] : 0)
        }
    }

    subscript(index: Int) -> LineFramer.Frame {
        switch lines {
        case .frames(let frames): frames[index]
        case .packed(let bytes, let ends): .line(Array(bytes[(index > 0 ? ends[index - 1] : 0)..<ends[index]]))
        }
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
        context.fireChannelRead(wrapInboundOut(ReadLines(frames, account)))
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

    fileprivate var isLine: Bool {
        if case .line = self { true } else { false }
    }
}
