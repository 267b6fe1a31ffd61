import Crypto
import JobModel
import NIOCore

/// The bytes that a `.part` holds: how many, and their digest so far.
struct DownloadedPart: Sendable {
    let identity: FileOperations.Status.Identity
    private(set) var size: Int64
    private(set) var hash: SHA256
    private let target: DownloadTarget
    private let services: DownloadServices

    /// A new, empty one.
    init(new target: DownloadTarget, _ services: DownloadServices) async throws(JobError) {
        identity = try await services.queue.run { () throws(JobError) in try target.makePart() }
        size = 0
        hash = SHA256()
        self.target = target
        self.services = services
    }

    /// The one that was just reopened, cut down to its first `size` bytes; nil where these cannot be read.
    init?(reopened target: DownloadTarget, size: Int64, _ services: DownloadServices) async {
        let (descriptor, files) = (target.part.descriptor, services.files)
        guard let hash = try? await FileHash.of(descriptor, target.absolutePath, upTo: size, services),
            let identity = try? await services.queue.run({ () throws(SystemError) in
                try files.truncate(descriptor, size)
                return try files.statusOfOpen(descriptor).identity
            })
        else { return nil }
        self.identity = identity
        self.size = size
        self.hash = hash
        self.target = target
        self.services = services
    }

    /// Writes `blocks` behind what is there.
    mutating func append(_ blocks: [ByteBuffer]) async throws(JobError) {
        let (before, files, target) = (hash, services.files, target)
        let blocks = Self.coalesced(blocks)
        do throws(SystemError) {
            hash = try await services.queue.run { () throws(SystemError) in
                var hash = before
                for block in blocks {
                    let written: Result<Void, SystemError> = block.withUnsafeReadableBytes { bytes in
                        hash.update(bufferPointer: bytes)
                        return Result { () throws(SystemError) in try files.write(target.part.descriptor, bytes) }
                    }
                    try written.get()
                }
                return hash
            }
        } catch {
            throw JobError(path: error, "written", target.absolutePath + DownloadPath.partSuffix)
        }
        size += blocks.reduce(0) { $0 + Int64($1.readableBytes) }
    }

    /// Many small blocks as one, to be written with one call; large ones are not worth copying.
    private static func coalesced(_ blocks: [ByteBuffer]) -> [ByteBuffer] {
        let size = blocks.reduce(0) { $0 + $1.readableBytes }
        guard blocks.count > 1, size / blocks.count < 64 << 10 else { return blocks }
        var whole = ByteBuffer()
        whole.reserveCapacity(size)
        for block in blocks { whole.writeImmutableBuffer(block) }
        return [whole]
    }
}
