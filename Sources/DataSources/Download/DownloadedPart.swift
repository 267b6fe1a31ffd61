import SystemPackage
import JobModel
import Logging
import NIOCore
import Synchronization

/// The bytes in a `.part`: which of them are there, and the digest of those from the first on.
///
/// In one with holes a note of what is written stands behind the file's own bytes, renewed with each write: so a daemon that was
/// killed goes on with every byte, while the machine has not been restarted since.
final class DownloadedPart: Sendable {
    private struct State {
        var written: ByteRanges
        var digest = SHA256Digest()
        /// Bytes from the first on that the digest is of.
        var hashed: Int64 = 0
    }

    let identity: FileOperations.Status.Identity
    /// Bytes that an earlier transfer wrote.
    let resumed: Int64
    /// Where the note is: on a page of its own, which a kill does not cut in two. Nil where there are no holes.
    private let note: Int64?
    /// Kept while the note is written, so that an older one never replaces a newer one.
    private let noting = Mutex(())
    private let state: Mutex<State>
    private let target: DownloadTarget
    private let services: DownloadServices

    /// A new, empty one; with holes where it is known how long the file will be.
    init(
        new target: DownloadTarget, withHolesBelow total: Int64? = nil, _ services: DownloadServices
    ) async throws(JobError) {
        identity = try await services.queue.run { () throws(JobError) in try target.makePart() }
        resumed = 0
        note = total.map(Self.note)
        state = Mutex(State(written: ByteRanges()))
        self.target = target
        self.services = services
    }

    /// The one of `size` bytes that was just reopened; nil where nothing of it counts.
    init?(
        reopened target: DownloadTarget, size: Int64, _ checkpoint: DownloadCheckpoint, _ services: DownloadServices
    ) async {
        identity = checkpoint.part
        note = checkpoint.hasHoles ? checkpoint.total.map(Self.note) : nil
        var noted: ByteRanges?
        if let note {
            noted = await services.queue.run { Self.noted(in: target.part.descriptor, at: note, services.files) }
        }
        let usable = checkpoint.usable(ofSize: size, noted: noted, boot: services.files.bootID)
        guard usable.count > 0 else { return nil }
        resumed = usable.count
        state = Mutex(State(written: usable))
        self.target = target
        self.services = services
    }

    /// Bytes that are there.
    var count: Int64 { state.withLock { $0.written.count } }
    var written: ByteRanges { state.withLock(\.written) }
    /// The digest of the whole file, once it is hashed.
    var digest: String { state.withLock(\.digest).hexadecimal }
    /// Bytes from the first on that are hashed.
    var hashed: Int64 { state.withLock(\.hashed) }

    /// Blocks of fewer bytes are not worth a second thread.
    private static let worthTwoThreads = 128 << 10

    /// Writes `blocks` behind all that is there, and hashes them; large ones are hashed while they are written.
    func append(_ blocks: [ByteBuffer]) async throws(JobError) {
        let (before, offset) = state.withLock { ($0.digest, $0.hashed) }
        let blocks = Self.coalesced(blocks)
        let count = blocks.reduce(0) { $0 + $1.readableBytes }
        let hash = { @Sendable in
            var digest = before
            for block in blocks { block.withUnsafeReadableBytes { digest.update($0) } }
            return digest
        }
        let digest: SHA256Digest
        do throws(Errno) {
            if count < Self.worthTwoThreads {
                digest = try await services.queue.run { [self] () throws(Errno) in
                    try store(blocks, at: offset)
                    return hash()
                }
            } else {
                async let hashed = services.queue.run(hash)
                let stored = await services.queue.run { [self] in
                    Result { () throws(Errno) in try store(blocks, at: offset) }
                }
                digest = await hashed
                try stored.get()
            }
        } catch {
            throw JobError(path: error, "written", target.partPath)
        }
        state.withLock { ($0.digest, $0.hashed) = (digest, offset + Int64(count)) }
    }

    /// Writes `blocks` at `offset`; ``hashWritten(_:)`` reads them again.
    func write(_ blocks: [ByteBuffer], at offset: Int64) async throws(JobError) {
        let blocks = Self.coalesced(blocks)
        do throws(Errno) {
            try await services.queue.run { [self] () throws(Errno) in try store(blocks, at: offset) }
        } catch {
            throw JobError(path: error, "written", target.partPath)
        }
    }

    /// Blocks.
    private func store(_ blocks: [ByteBuffer], at offset: Int64) throws(Errno) {
        var end = offset
        for block in blocks {
            try write(block, at: end)
            end += Int64(block.readableBytes)
        }
        try noting.withLock { _ throws(Errno) in
            let written = state.withLock { state in
                state.written.insert(offset..<end)
                return state.written
            }
            if let note { try write(written, at: note) }
        }
    }

    // MARK: The note

    private static let pageSize = 4096

    private static func note(_ total: Int64) -> Int64 {
        total.saturatingAdding(Int64(pageSize - 1)) / Int64(pageSize) * Int64(pageSize)
    }

    private func write(_ written: ByteRanges, at note: Int64) throws(Errno) {
        let text = ByteBuffer(string: written.text + "\n")
        // There are never so many; what does not stand there is fetched again.
        if text.readableBytes <= Self.pageSize { try write(text, at: note) }
    }

    private func write(_ bytes: ByteBuffer, at offset: Int64) throws(Errno) {
        try bytes.withUnsafeReadableBytes { (bytes) throws(Errno) in
            try services.files.writeAt(target.part.descriptor, offset, bytes)
        }
    }

    /// What the note says; nil where there is none. Blocks.
    private static func noted(in file: Int32, at note: Int64, _ files: FileOperations) -> ByteRanges? {
        var bytes = [UInt8](repeating: 0, count: pageSize)
        let count = bytes.withUnsafeMutableBytes { (try? files.readAt(file, note, $0)) ?? 0 }
        guard let end = bytes.prefix(count).firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        return ByteRanges(String(decoding: bytes[..<end], as: UTF8.self))
    }

    // MARK: The digest

    /// Hashes what is there from the first byte on. Not while something is appended.
    func hashWritten(_ control: TransferControl) async throws(JobError) {
        while true {
            let (digest, range) = state.withLock { ($0.digest, $0.hashed..<$0.written.prefix) }
            if range.isEmpty { return }
            let longer = try await FileHash.of(
                target.part.descriptor, target.partPath, range, after: digest, services, control)
            state.withLock { ($0.digest, $0.hashed) = (longer, range.upperBound) }
        }
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
