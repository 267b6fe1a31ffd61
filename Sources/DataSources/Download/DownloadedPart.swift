import SystemPackage
import JobModel
import Logging
import NIOCore

/// The bytes in a `.part`: how many there are, and their digest so far. One task uses it.
final class DownloadedPart {
    let identity: FileOperations.Status.Identity
    private(set) var size: Int64
    private(set) var hash: SHA256Digest
    private let target: DownloadTarget
    private let services: DownloadServices

    /// A new, empty one.
    init(new target: DownloadTarget, _ services: DownloadServices) async throws(JobError) {
        identity = try await services.queue.run { () throws(JobError) in try target.makePart() }
        size = 0
        hash = SHA256Digest()
        self.target = target
        self.services = services
    }

    /// The one that was just reopened, cut down to its first `size` bytes; nil where these cannot be read. Throws where
    /// the transfer was stopped meanwhile.
    init?(
        reopened target: DownloadTarget, size: Int64, _ services: DownloadServices, _ control: TransferControl
    ) async throws(JobError) {
        let (descriptor, files) = (target.part.descriptor, services.files)
        do throws(JobError) {
            hash = try await FileHash.of(descriptor, target.absolutePath, upTo: size, services, control)
        } catch {
            if control.isInterrupted || Task.isCancelled { throw error }
            services.logger.warning(
                "An unfinished download could not be read, so it begins again.",
                metadata: ["path": "\(target.absolutePath)", "error": "\(error.message)"])
            return nil
        }
        do throws(Errno) {
            identity = try await services.queue.run { () throws(Errno) in
                try files.truncate(descriptor, size)
                return try files.statusOfOpen(descriptor).identity
            }
        } catch {
            services.logger.warning(
                "An unfinished download could not be cut to what is known of it, so it begins again.",
                metadata: ["path": "\(target.absolutePath)", "error": "\(error)"])
            return nil
        }
        self.size = size
        self.target = target
        self.services = services
    }

    /// Blocks of fewer bytes are not worth a second thread.
    private static let worthTwoThreads = 128 << 10

    /// Writes `blocks` behind what is there; large ones are written while they are hashed.
    func append(_ blocks: [ByteBuffer]) async throws(JobError) {
        let (before, services, target, queue) = (hash, services, target, services.queue)
        let blocks = Self.coalesced(blocks)
        let count = blocks.reduce(0) { $0 + $1.readableBytes }
        do throws(Errno) {
            if count < Self.worthTwoThreads {
                hash = try await queue.run { () throws(Errno) in
                    try Self.write(blocks, target.part.descriptor, services.files)
                    return Self.hash(before, blocks)
                }
            } else {
                async let digest = queue.run { Self.hash(before, blocks) }
                let written = await queue.run {
                    Result { () throws(Errno) in try Self.write(blocks, target.part.descriptor, services.files) }
                }
                hash = await digest
                try written.get()
            }
        } catch {
            throw JobError(path: error, "written", target.absolutePath + DownloadPath.partSuffix)
        }
        size += Int64(count)
    }

    private static func hash(_ before: SHA256Digest, _ blocks: [ByteBuffer]) -> SHA256Digest {
        var hash = before
        for block in blocks { block.withUnsafeReadableBytes { hash.update($0) } }
        return hash
    }

    private static func write(
        _ blocks: [ByteBuffer], _ file: Int32, _ files: FileOperations
    ) throws(Errno) {
        for block in blocks {
            let written: Result<Void, Errno> = block.withUnsafeReadableBytes { bytes in
                Result { () throws(Errno) in try files.write(file, bytes) }
            }
            try written.get()
        }
    }

    /// Many small blocks as one, to be written with one call; large ones are not worth copying.
    static func coalesced(_ blocks: [ByteBuffer]) -> [ByteBuffer] {
        let size = blocks.reduce(0) { $0 + $1.readableBytes }
        guard blocks.count > 1, size / blocks.count < 64 << 10 else { return blocks }
        var whole = ByteBuffer()
        whole.reserveCapacity(size)
        for block in blocks { whole.writeImmutableBuffer(block) }
        return [whole]
    }
}
