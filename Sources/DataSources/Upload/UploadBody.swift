import DeferredKit
import JobModel
import NIOCore
import Synchronization

/// What an upload's requests send: a file from its first byte on, each time again.
///
/// The last byte is given out only once the file is known to be what it was when it was opened, and to have its checksum.
final class UploadBody: Sendable {
    private struct State {
        /// Of the request that is under way; one before it may still have something to say.
        var reader: UploadReader?
        var sent: Int64 = 0
    }

    private let file: UploadFile
    private let sha256: String?
    private let queue: FileQueue
    private let report: @Sendable (ProgressUpdate) -> Void
    private let state = Mutex(State())

    init(
        _ file: UploadFile, sha256: String?, queue: FileQueue, report: @escaping @Sendable (ProgressUpdate) -> Void
    ) {
        self.file = file
        self.sha256 = sha256
        self.queue = queue
        self.report = report
    }

    var size: Int64 { file.size }

    /// The digest of all that was sent; nil until all was.
    var digest: String? {
        size == 0 ? SHA256Digest().hexadecimal : state.withLock { $0.sent == size ? $0.reader?.digest : nil }
    }

    /// Refuses an empty file that should be another: there is no last byte of it to be held back.
    func checkEmpty() throws(JobError) {
        if size == 0, let digest { try file.check(digest, against: sha256) }
    }

    /// Begins from the first byte, for one request.
    func reader() -> UploadReader {
        let reader = UploadReader(file, sha256: sha256, queue: queue)
        state.withLock { $0 = State(reader: reader) }
        report(ProgressUpdate(completed: 0, total: size))
        return reader
    }

    /// The network has taken so many more bytes that `reader` gave.
    func sent(_ count: Int, by reader: UploadReader) {
        let sent = state.withLock { state -> Int64? in
            guard state.reader === reader else { return nil }
            state.sent = state.sent.saturatingAdding(Int64(count))
            return state.sent
        }
        if let sent { report(ProgressUpdate(completed: sent, total: size)) }
    }
}

/// Reads the file of one request on the threads for files, a block ahead of what is being sent.
///
/// So two blocks are in memory at most. Called on one event loop, each time after the block before was given.
final class UploadReader: Sendable {
    /// Small enough for a thousand uploads at a time, large enough for the change of threads not to matter.
    static let block = 256 << 10

    private struct State {
        var offset: Int64 = 0
        var hash = SHA256Digest()
        /// Of the file; nil until all of it was read and is known to be right.
        var digest: String?
        var ahead: EventLoopFuture<ByteBuffer?>?
    }

    private let file: UploadFile
    private let sha256: String?
    private let queue: FileQueue
    private let state = Mutex(State())

    init(_ file: UploadFile, sha256: String?, queue: FileQueue) {
        self.file = file
        self.sha256 = sha256
        self.queue = queue
    }

    var digest: String? { state.withLock(\.digest) }

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

    private func read(on loop: any EventLoop) -> EventLoopFuture<ByteBuffer?> {
        let promise = loop.makePromise(of: ByteBuffer?.self)
        queue.start { promise.completeWith(Result { try self.read() }) }
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
                try file.read(at: offset, into: block)
            } catch {
                failure = error
                return 0
            }
            hash.update(UnsafeRawBufferPointer(block))
            return count
        }
        if let failure { throw failure }
        offset += Int64(count)
        let digest = offset == file.size ? try checked(hash) : nil
        state.withLock { ($0.offset, $0.hash, $0.digest) = (offset, hash, digest) }
        return buffer
    }

    /// The digest of the whole file, which must be the present one and the right one.
    private func checked(_ hash: SHA256Digest) throws(JobError) -> String {
        try file.checkUnchanged()
        let digest = hash.hexadecimal
        try file.check(digest, against: sha256)
        return digest
    }
}
