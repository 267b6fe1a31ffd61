import DeferredKit
import JobModel
import NIOCore
import Synchronization

/// A file that requests send, from its first byte on, each time again.
///
/// The last byte is given out only once the file was checked, where it is to be.
final class OutgoingFile: Sendable {
    private struct State {
        /// Of the request that is under way; one before it may still have something to say.
        var reader: Reader?
        var sent: Int64 = 0
    }

    let size: Int64
    private let queue: FileQueue
    private let report: @Sendable (ProgressUpdate) -> Void
    private let read: @Sendable (_ offset: Int64, UnsafeMutableRawBufferPointer) throws(JobError) -> Void
    private let check: (@Sendable (_ digest: String) throws(JobError) -> Void)?
    private let state = Mutex(State())

    /// `read` fills a buffer from an offset on; `check` throws where the file with that digest must not be sent. Both block.
    init(
        size: Int64, queue: FileQueue, report: @escaping @Sendable (ProgressUpdate) -> Void = { _ in },
        read: @escaping @Sendable (_ offset: Int64, UnsafeMutableRawBufferPointer) throws(JobError) -> Void,
        check: (@Sendable (_ digest: String) throws(JobError) -> Void)? = nil
    ) {
        self.size = size
        self.queue = queue
        self.report = report
        self.read = read
        self.check = check
    }

    /// Whether it is what the job is about, and no mere body of a request.
    var isUpload: Bool { check != nil }

    /// The digest of all that was sent; nil until all was.
    var digest: String? {
        size == 0 ? SHA256Digest().hexadecimal : state.withLock { $0.sent == size ? $0.reader?.digest : nil }
    }

    /// Begins from the first byte, for one request.
    func reader() -> Reader {
        let reader = Reader(self)
        state.withLock { $0 = State(reader: reader) }
        report(ProgressUpdate(completed: 0, total: size))
        return reader
    }

    /// Reads the file for one request on the threads for files, a block ahead of what is being sent.
    ///
    /// So two blocks are in memory at most. Called on one event loop, each time after the block before was given.
    final class Reader: Sendable {
        /// Small enough for each to show that the server is not idle, large enough for the change of threads not to matter.
        static let block = 64 << 10

        private struct State {
            var offset: Int64 = 0
            var hash = SHA256Digest()
            /// Of the file; nil until all of it was read and is known to be right.
            var digest: String?
            var ahead: EventLoopFuture<ByteBuffer?>?
        }

        private let file: OutgoingFile
        private let state = Mutex(State())

        fileprivate init(_ file: OutgoingFile) {
            self.file = file
        }

        fileprivate var digest: String? { state.withLock(\.digest) }

        /// The next block; nil at the end.
        func next(on loop: any EventLoop) -> EventLoopFuture<ByteBuffer?> {
            state.withLock { state in
                defer { state.ahead = nil }
                return state.ahead
            } ?? read(on: loop)
        }

        /// Reads what ``next(on:)`` will give, as the block before it is about to be sent.
        func readAhead(on loop: any EventLoop) {
            let ahead = read(on: loop)
            state.withLock { $0.ahead = ahead }
        }

        /// The network has taken so many more bytes.
        func sent(_ count: Int) {
            let sent = file.state.withLock { state -> Int64? in
                guard state.reader === self else { return nil }
                state.sent = state.sent.saturatingAdding(Int64(count))
                return state.sent
            }
            if let sent { file.report(ProgressUpdate(completed: sent, total: file.size)) }
        }

        private func read(on loop: any EventLoop) -> EventLoopFuture<ByteBuffer?> {
            let promise = loop.makePromise(of: ByteBuffer?.self)
            file.queue.start { promise.completeWith(Result { try self.read() }) }
            return promise.futureResult
        }

        /// Blocks. One block after the other is read, so nothing else changes the state meanwhile.
        private func read() throws(JobError) -> ByteBuffer? {
            var (offset, hash) = state.withLock { ($0.offset, $0.hash) }
            let count = Int(min(Int64(Self.block), file.size - offset))
            guard count > 0 else { return nil }
            var buffer = ByteBuffer()
            var failure: JobError?
            buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { room in
                let block = UnsafeMutableRawBufferPointer(rebasing: room[..<count])
                do throws(JobError) {
                    try file.read(offset, block)
                } catch {
                    failure = error
                    return 0
                }
                if file.isUpload { hash.update(UnsafeRawBufferPointer(block)) }
                return count
            }
            if let failure { throw failure }
            offset += Int64(count)
            let digest = offset == file.size ? hash.hexadecimal : nil
            if let digest { try file.check?(digest) }
            state.withLock { ($0.offset, $0.hash, $0.digest) = (offset, hash, digest) }
            return buffer
        }
    }
}
