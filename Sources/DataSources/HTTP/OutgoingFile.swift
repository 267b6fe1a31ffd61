import DeferredKit
import JobModel
import NIOCore
import Synchronization

/// A file that requests send, each time from its first byte.
///
/// If the file must be checked, the last block is held back until then. A form surrounds it with a frame.
final class OutgoingFile: Sendable {
    /// Small enough to show that the server is not idle, large enough to be worth the change of threads.
    static let block = 64 << 10

    private struct State {
        /// The number of the current request; an earlier one may still read and report.
        var request = 0
        var offset: Int64 = 0
        var sent: Int64 = 0
        var hash: FileDigest
    }

    /// The size of the body: of the file and its frame.
    let size: Int64
    private let fileSize: Int64
    private let frame: MultipartFrame?
    private let queue: FileQueue
    private let limiter: RateLimiter?
    private let checksum: Checksum?
    private let report: @Sendable (ProgressUpdate) -> Void
    private let read: @Sendable (_ offset: Int64, UnsafeMutableRawBufferPointer) throws(JobError) -> Void
    private let check: (@Sendable (_ digest: FileDigest) throws(JobError) -> Void)?
    private let state: Mutex<State>

    /// `read` fills a buffer from an offset on; `check` throws if the file with this digest must not be sent. Both
    /// block.
    init(
        size: Int64, in frame: MultipartFrame? = nil, queue: FileQueue, limiter: RateLimiter?,
        checksum: Checksum? = nil,
        report: @escaping @Sendable (ProgressUpdate) -> Void = { _ in },
        read: @escaping @Sendable (_ offset: Int64, UnsafeMutableRawBufferPointer) throws(JobError) -> Void,
        check: (@Sendable (_ digest: FileDigest) throws(JobError) -> Void)? = nil
    ) {
        self.size = size + Int64((frame?.before.count ?? 0) + (frame?.after.count ?? 0))
        fileSize = size
        self.frame = frame
        self.queue = queue
        self.limiter = limiter
        self.checksum = checksum
        self.report = report
        self.read = read
        self.check = check
        state = Mutex(State(hash: FileDigest(for: checksum)))
    }

    /// Whether this is the file of an upload, and not only the body of a request.
    var isUpload: Bool { check != nil }

    /// The digest of the file, once all of it is checked and sent.
    var digest: FileDigest? { state.withLock { $0.sent == size ? $0.hash : nil } }

    /// Begins from the first byte; returns the number of the request.
    func begin() -> Int {
        report(ProgressUpdate(completed: 0, total: size))
        return state.withLock { state in
            state = State(request: state.request + 1, hash: FileDigest(for: checksum))
            return state.request
        }
    }

    /// Reads the next block for a request on a file thread; nil at the end. Called after the last block was returned.
    func next(_ request: Int, on loop: any EventLoop) -> EventLoopFuture<ByteBuffer?> {
        let promise = loop.makePromise(of: ByteBuffer?.self)
        queue.start {
            let block = Result { try self.readBlock(request) }
            let size = (try? block.get())?.readableBytes ?? 0
            guard let pause = self.limiter?.take(size, at: loop.now) else { return promise.completeWith(block) }
            loop.scheduleTask(in: pause) { promise.completeWith(block) }
        }
        return promise.futureResult
    }

    /// Counts bytes that the network has taken.
    func sent(_ count: Int, _ request: Int) {
        let sent = state.withLock { state -> Int64? in
            guard state.request == request else { return nil }
            state.sent += Int64(count)
            return state.sent
        }
        if let sent { report(ProgressUpdate(completed: sent, total: size)) }
    }

    /// Blocks.
    private func readBlock(_ request: Int) throws(JobError) -> ByteBuffer? {
        let (present, offset, hash) = state.withLock { ($0.request, $0.offset, $0.hash) }
        guard present == request, offset < size else { return nil }
        let position = offset - Int64(frame?.before.count ?? 0)
        let block =
            switch position {
            case ..<0: ByteBuffer(bytes: frame?.before ?? [])
            case ..<fileSize: try readFile(at: position, hash)
            default: ByteBuffer(bytes: frame?.after ?? [])
            }
        let end = offset + Int64(block.readableBytes)
        if end == size { try check?(hash) }
        state.withLock { if $0.request == request { $0.offset = end } }
        return block
    }

    private func readFile(at position: Int64, _ hash: FileDigest) throws(JobError) -> ByteBuffer {
        let count = Int(min(Int64(min(Self.block, limiter?.largestPiece ?? .max)), fileSize - position))
        var buffer = ByteBuffer()
        var outcome = Result<Void, JobError>.success(())
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { room in
            let block = UnsafeMutableRawBufferPointer(rebasing: room[..<count])
            outcome = Result { () throws(JobError) in try read(position, block) }
            if isUpload { hash.update(UnsafeRawBufferPointer(block)) }
            return count
        }
        try outcome.get()
        return buffer
    }
}
