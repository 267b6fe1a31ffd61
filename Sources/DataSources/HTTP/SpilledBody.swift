import Glibc
import JobModel
import NIOCore
import SystemPackage

/// A long body of a request, or input of a program, in a file without a name: a server may take it as slowly as it likes, or
/// not at all, and no more than a block of it is in memory meanwhile.
final class SpilledBody: Sendable {
    /// As large as those of uploads.
    private static let block = UploadReader.block

    let size: Int64
    let descriptor: Int32
    private let path: String
    private let files: FileOperations
    private let queue: FileQueue
    private let room: SpilledRoom

    /// Writes what `bytes` gives, for which there is `room`, without keeping up who waits for it by `control`.
    static func writing(
        _ bytes: @escaping @Sendable () -> [UInt8], in room: SpilledRoom, leaving minimumFree: Int,
        for context: SourceContext, files: FileOperations, queue: FileQueue, _ control: TransferControl
    ) async throws(JobError) -> SpilledBody {
        try await control.wait { delivery in
            queue.start {
                // Where nobody waits any more, they go all the same.
                let bytes = bytes()
                guard !delivery.isDelivered else { return }
                delivery.deliver(
                    Result { () throws(JobError) in
                        try SpilledBody(
                            bytes, in: room, leaving: minimumFree, for: context, files: files, queue: queue)
                    })
            }
        }
    }

    /// Writes `bytes`, for which there is `room`, into the directory of `context`'s bodies, where that leaves the disk
    /// `minimumFree` bytes. Blocks.
    private init(
        _ bytes: [UInt8], in room: SpilledRoom, leaving minimumFree: Int, for context: SourceContext,
        files: FileOperations, queue: FileQueue
    ) throws(JobError) {
        size = Int64(bytes.count)
        self.room = room
        path = context.bodyPath + Self.ending
        self.files = files
        self.queue = queue
        do throws(Errno) {
            let (directory, name) = try OpenDirectory.above(path, opened: context.bodyDirectory, files: files)
            descriptor = try directory.makeUnnamedFile(name)
        } catch {
            throw JobError(storage: error, "made", path)
        }
        if minimumFree > 0, let free = files.freeBytes(descriptor), free.saturatingSubtracting(size) < minimumFree {
            throw .withoutRoom(
                "\"\(path)\" is to have \(size) bytes where \(free) are free, and \(minimumFree) are left so; make room."
            )
        }
        let written: Result<Void, Errno> = bytes.withUnsafeBytes { raw in
            Result { () throws(Errno) in try files.write(descriptor, raw) }
        }
        if case .failure(let error) = written { throw JobError(storage: error, "written", path) }
    }

    deinit { files.close(descriptor) }

    /// It is not the name of a body that came as an answer.
    private static let ending = ".sent"

    /// The block at `offset`; nil at the end.
    func block(at offset: Int64, on loop: any EventLoop) -> EventLoopFuture<ByteBuffer?> {
        let count = Int(min(Int64(Self.block), size - offset))
        guard count > 0 else { return loop.makeSucceededFuture(nil) }
        let promise = loop.makePromise(of: ByteBuffer?.self)
        queue.start { promise.completeWith(Result { try self.read(count, at: offset) }) }
        return promise.futureResult
    }

    /// Blocks.
    private func read(_ count: Int, at offset: Int64) throws(JobError) -> ByteBuffer {
        var buffer = ByteBuffer()
        var failure: Errno?
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { room in
            let block = UnsafeMutableRawBufferPointer(rebasing: room[..<count])
            var filled = 0
            do throws(Errno) {
                while filled < count {
                    let read = try files.readAt(
                        descriptor, offset + Int64(filled), UnsafeMutableRawBufferPointer(rebasing: block[filled...]))
                    // It is nobody else's; only a broken file system has lost some of it.
                    guard read > 0 else { throw Errno.ioError }
                    filled += read
                }
            } catch {
                failure = error
            }
            return filled
        }
        if let failure { throw JobError(storage: failure, "read", path) }
        return buffer
    }
}
