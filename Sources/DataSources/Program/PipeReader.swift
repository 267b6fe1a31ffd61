import DeferredKit
import Glibc
import JobModel
import NIOCore
import NIOPosix
import Synchronization

/// Reads what a program writes to a pipe, on an event loop.
final class PipeReader: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer

    private struct State {
        var channel: (any Channel)?
        var pending = ByteBuffer()
        var isEnded = false
        var waiter: Promise<ByteBuffer?, JobError>?
    }

    private let descriptor: Int32
    /// The number of last bytes to keep, without a reader; nil to keep everything for a reader.
    private let tail: Int?
    private let state = Mutex(State())

    /// Reads from `descriptor` and owns it.
    static func open(_ descriptor: Int32, on loop: any EventLoop, keeping tail: Int? = nil) async -> PipeReader {
        let reader = PipeReader(descriptor, tail)
        do {
            let channel = try await NIOPipeBootstrap(group: loop)
                .channelOption(.autoRead, value: tail != nil)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(reader) }
                }
                .takingOwnershipOfDescriptor(input: descriptor).get()
            reader.state.withLock { if !$0.isEnded { $0.channel = channel } }
        } catch {
            Glibc.close(descriptor)
            reader.end()
        }
        return reader
    }

    private init(_ descriptor: Int32, _ tail: Int?) {
        self.descriptor = descriptor
        self.tail = tail
    }

    /// Resolves `promise` with new bytes as soon as there are some; nil at the end.
    func next(_ promise: Promise<ByteBuffer?, JobError>) {
        let channel = state.withLock { state in
            state.waiter = promise
            return state.channel
        }
        if !deliver() { channel?.read() }
    }

    /// Gives the reader that waits what there is; false if it waits for more.
    @discardableResult
    private func deliver() -> Bool {
        let delivery = state.withLock { state -> (reader: Promise<ByteBuffer?, JobError>, bytes: ByteBuffer?)? in
            let isEmpty = state.pending.readableBytes == 0
            guard let reader = state.waiter, !isEmpty || state.isEnded else { return nil }
            defer { (state.waiter, state.pending) = (nil, ByteBuffer()) }
            return (reader, isEmpty ? nil : state.pending)
        }
        guard let delivery else { return false }
        delivery.reader.succeed(delivery.bytes)
        return true
    }

    /// Returns new bytes as soon as there are some; nil at the end.
    func next() async -> ByteBuffer? {
        let promise = Promise<ByteBuffer?, JobError>()
        next(promise)
        return try? await promise.deferred.get()
    }

    /// The kept bytes.
    var kept: [UInt8] { state.withLock { Array($0.pending.readableBytesView) } }

    /// Reads what is in the pipe now and ignores later output. Called on the event loop.
    func cut() {
        guard let channel = state.withLock({ $0.isEnded ? nil : $0.channel }) else { return }
        var left: Int32 = 0
        if ioctl(descriptor, UInt(FIONREAD), &left) == 0, left > 0 {
            let bytes = [UInt8](unsafeUninitializedCapacity: Int(left)) { buffer, count in
                count = max(0, read(descriptor, buffer.baseAddress, buffer.count))
            }
            append(ByteBuffer(bytes: bytes))
        }
        end()
        channel.close(promise: nil)
    }

    /// Stops reading.
    func close() {
        let channel = state.withLock { $0.channel }
        end()
        channel?.close(promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { append(unwrapInboundIn(data)) }

    func channelReadComplete(context: ChannelHandlerContext) { deliver() }

    func channelInactive(context: ChannelHandlerContext) { end() }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // An unreadable pipe counts as ended.
        context.close(promise: nil)
    }

    private func append(_ bytes: ByteBuffer) {
        state.withLock { state in
            guard !state.isEnded else { return }
            state.pending.writeImmutableBuffer(bytes)
            guard let tail, state.pending.readableBytes > tail else { return }
            state.pending.moveReaderIndex(forwardBy: state.pending.readableBytes - tail)
            state.pending.discardReadBytes()
        }
    }

    private func end() {
        state.withLock { $0.isEnded = true }
        deliver()
    }
}
