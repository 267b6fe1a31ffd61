import NIOCore

/// Sizes the buffers for the reads of a connection by the reads before.
///
/// NIO keeps some buffers of each connection and uses them again. That is good for a fast transfer; but of a thousand that
/// trickle, each would keep the largest ones it ever needed. So as long as buffers are small, a connection keeps the first
/// one only, which is tiny, and gets a new one for each read; once they are large, it keeps them.
struct ReceiveBuffers: RecvByteBufferAllocator {
    /// The size of the first buffer.
    static let first = 1 << 10
    /// The size from which on buffers are kept.
    static let large = 64 << 10

    private var sizes = AdaptiveRecvByteBufferAllocator(
        minimum: 2 << 10, initial: 8 << 10, maximum: ResponseStream.limit)
    private var isFirst = true
    private var size: Int { sizes.nextBufferSize() ?? sizes.initial }

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer {
        isFirst ? allocator.buffer(capacity: Self.first) : sizes.buffer(allocator: allocator)
    }

    /// NIO uses again the buffers of an allocator that says the size of the next one.
    func nextBufferSize() -> Int? { size >= Self.large ? size : nil }

    /// Without such a size it uses the first one again, unless the next may be larger.
    mutating func record(actualReadBytes: Int) -> Bool {
        if isFirst { isFirst = false } else { _ = sizes.record(actualReadBytes: actualReadBytes) }
        return true
    }

    /// Sets a connection up for these buffers; it tells when it keeps large ones.
    static func use(on channel: any Channel, whenLarge: @escaping () -> Void) throws {
        let options = channel.syncOptions
        try options?.setOption(.recvAllocator, value: ReceiveBuffers())
        // As many buffers are kept.
        try options?.setOption(.maxMessagesPerRead, value: 1)
        try channel.pipeline.syncOperations.addHandler(LargeReads(whenLarge), position: .first)
    }

    /// Waits for a large read, and lets the connection keep more buffers from then on.
    private final class LargeReads: ChannelInboundHandler, RemovableChannelHandler {
        typealias InboundIn = ByteBuffer

        private let whenLarge: () -> Void

        init(_ whenLarge: @escaping () -> Void) {
            self.whenLarge = whenLarge
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let isLarge = unwrapInboundIn(data).readableBytes >= ReceiveBuffers.large
            // First, as a handler that was removed passes nothing on.
            context.fireChannelRead(data)
            guard isLarge else { return }
            whenLarge()
            // Where it cannot be set nothing is lost but some speed.
            try? context.channel.syncOptions?.setOption(.maxMessagesPerRead, value: 4)
            context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        }
    }
}
