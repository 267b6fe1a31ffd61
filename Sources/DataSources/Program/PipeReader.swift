import DeferredKit
import Glibc
import JobModel
import NIOCore
import NIOPosix
import Synchronization

/// Reads what a program writes to its pipes, in the order in which it arrives, on an event loop.
final class PipeReader: Sendable {
    struct Chunk: Sendable {
        let pipe: Int
        var bytes: ByteBuffer
    }

    private struct State {
        var open: [Int: any Channel] = [:]
        var pending: [Chunk] = []
        var waiter: Promise<[Chunk]?, JobError>?
    }

    private let descriptors: [Int32]
    private let state = Mutex(State())

    /// Reads from `descriptors`, and owns them. Nothing is read before it is asked for.
    static func open(_ descriptors: [Int32], on loop: any EventLoop) async -> PipeReader {
        let reader = PipeReader(descriptors)
        for (pipe, descriptor) in descriptors.enumerated() {
            do {
                let handler = Handler(pipe: pipe, reader: reader)
                _ = try await NIOPipeBootstrap(group: loop)
                    .channelOption(.autoRead, value: false)
                    .channelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture {
                            try channel.pipeline.syncOperations.addHandler(handler)
                            // A pipe that ends at once is read before this function goes on.
                            reader.state.withLock { $0.open[pipe] = channel }
                        }
                    }
                    .takingOwnershipOfDescriptor(input: descriptor).get()
            } catch {
                // It counts as ended.
                Glibc.close(descriptor)
            }
        }
        return reader
    }

    private init(_ descriptors: [Int32]) { self.descriptors = descriptors }

    /// Returns new bytes as soon as there are some; nil once all pipes have ended.
    func next() async -> [Chunk]? {
        let promise = Promise<[Chunk]?, JobError>()
        let channels = state.withLock { state in
            state.waiter = promise
            return Array(state.open.values)
        }
        if !deliver() { for channel in channels { channel.read() } }
        return try? await promise.deferred.get()
    }

    /// Gives the reader that waits the bytes that there are; false if it waits for more.
    @discardableResult
    private func deliver() -> Bool {
        let delivery = state.withLock { state -> (reader: Promise<[Chunk]?, JobError>, chunks: [Chunk]?)? in
            guard let reader = state.waiter, !state.pending.isEmpty || state.open.isEmpty else { return nil }
            defer { (state.waiter, state.pending) = (nil, []) }
            return (reader, state.pending.isEmpty ? nil : state.pending)
        }
        guard let delivery else { return false }
        delivery.reader.succeed(delivery.chunks)
        return true
    }

    /// Reads what is in the pipes now and ignores later output. Called on the event loop.
    func cut() {
        for (pipe, channel) in state.withLock(\.open) {
            var left: Int32 = 0
            if ioctl(descriptors[pipe], UInt(FIONREAD), &left) == 0, left > 0 {
                let bytes = [UInt8](unsafeUninitializedCapacity: Int(left)) { buffer, count in
                    count = max(0, read(descriptors[pipe], buffer.baseAddress, buffer.count))
                }
                append(ByteBuffer(bytes: bytes), from: pipe)
            }
            end(pipe)
            channel.close(promise: nil)
        }
    }

    private func append(_ bytes: ByteBuffer, from pipe: Int) {
        state.withLock { state in
            guard state.open[pipe] != nil else { return }
            if state.pending.last?.pipe == pipe {
                state.pending[state.pending.count - 1].bytes.writeImmutableBuffer(bytes)
            } else {
                state.pending.append(Chunk(pipe: pipe, bytes: bytes))
            }
        }
    }

    private func end(_ pipe: Int) {
        state.withLock { $0.open[pipe] = nil }
        deliver()
    }

    private final class Handler: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer

        private let pipe: Int
        private let reader: PipeReader

        init(pipe: Int, reader: PipeReader) { (self.pipe, self.reader) = (pipe, reader) }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            reader.append(unwrapInboundIn(data), from: pipe)
        }

        func channelReadComplete(context: ChannelHandlerContext) { reader.deliver() }

        func channelInactive(context: ChannelHandlerContext) { reader.end(pipe) }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            // An unreadable pipe counts as ended.
            context.close(promise: nil)
        }
    }
}
