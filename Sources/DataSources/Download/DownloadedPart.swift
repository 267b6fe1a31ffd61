import JobModel
import NIOCore
import Synchronization
import SystemPackage

/// The contents of a `.part` file: the ranges that are written, and the digest of the bytes before the first gap.
///
/// A file that several connections fill has holes, so its size does not tell what is written. A note of the written
/// ranges stands behind its contents and is renewed with each write: a killed daemon loses no byte unless the machine
/// restarts.
final class DownloadedPart: Sendable {
    private struct State {
        var written: ByteRanges
        var digest = SHA256Digest()
        /// The number of bytes in the digest.
        var hashed: Int64 = 0
    }

    let identity: FileOperations.Status.Identity
    /// The number of bytes that an earlier transfer wrote.
    let resumed: Int64
    /// The offset of the note; nil if the file has no holes.
    private let note: Int64?
    /// Held while the note is written, so that an older one never replaces a newer one.
    private let noting = Mutex(())
    private let state: Mutex<State>
    private let target: DownloadTarget
    private let transfer: Transfer

    /// Makes an empty file; with holes if `total` is given.
    init(
        new target: DownloadTarget, withHolesBelow total: Int64?, _ transfer: Transfer
    ) async throws(JobError) {
        identity = try await transfer.userFiles.run { () throws(JobError) in try target.makePart() }
        resumed = 0
        note = total.map(Self.note)
        state = Mutex(State(written: ByteRanges()))
        self.target = target
        self.transfer = transfer
    }

    /// Takes up the file of `size` bytes that was just reopened; nil if none of its contents can be relied on.
    init?(
        reopened target: DownloadTarget, size: Int64, _ checkpoint: DownloadCheckpoint, _ transfer: Transfer
    ) async {
        identity = checkpoint.part
        note = checkpoint.hasHoles ? checkpoint.total.map(Self.note) : nil
        var noted: ByteRanges?
        if let note {
            noted = await transfer.userFiles.run { Self.noted(in: target.part.descriptor, at: note, transfer.files) }
        }
        let usable = checkpoint.usable(ofSize: size, noted: noted, boot: transfer.files.bootID)
        guard usable.count > 0 else { return nil }
        resumed = usable.count
        state = Mutex(State(written: usable))
        self.target = target
        self.transfer = transfer
    }

    var hasHoles: Bool { note != nil }
    var written: ByteRanges { state.withLock(\.written) }
    var count: Int64 { written.count }
    /// The digest of the file, once ``hashWritten()`` has completed it.
    var digest: String { state.withLock(\.digest).hexadecimal }

    /// Smaller writes are not worth a second thread for their digest.
    private static let worthTwoThreads = 128 << 10

    /// Writes `blocks` at `offset`; blocks that continue the hashed bytes are hashed at the same time.
    func write(_ blocks: [ByteBuffer], at offset: Int64) async throws(JobError) {
        let (before, hashed) = state.withLock { ($0.digest, $0.hashed) }
        let hash = { @Sendable in
            var digest = before
            for block in blocks { block.withUnsafeReadableBytes { digest.update($0) } }
            return digest
        }
        let write = { @Sendable [self] in Result { () throws(Errno) in try store(blocks, at: offset) } }
        let (count, queue) = (blocks.byteCount, transfer.userFiles)
        let (stored, digest): (Result<Void, Errno>, SHA256Digest?)
        if offset != hashed {
            (stored, digest) = (await queue.run(write), nil)
        } else if count < Self.worthTwoThreads {
            (stored, digest) = await queue.run { (write(), hash()) }
        } else {
            async let hashing = queue.run(hash)
            (stored, digest) = (await queue.run(write), await hashing)
        }
        if case .failure(let error) = stored { throw JobError(path: error, "written", target.partPath) }
        if let digest { state.withLock { ($0.digest, $0.hashed) = (digest, offset + Int64(count)) } }
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
            let text = ByteBuffer(string: written.text + "\n")
            // The connections make far fewer ranges; ranges that the note lacks are fetched again.
            if let note, text.readableBytes <= Self.pageSize { try write(text, at: note) }
        }
    }

    private func write(_ bytes: ByteBuffer, at offset: Int64) throws(Errno) {
        try bytes.withUnsafeReadableBytes { (bytes) throws(Errno) in
            try transfer.files.writeAt(target.part.descriptor, offset, bytes)
        }
    }

    /// Hashes the written bytes before the first gap that are not hashed yet.
    func hashWritten() async throws(JobError) {
        let (digest, range) = state.withLock { ($0.digest, $0.hashed..<$0.written.prefix) }
        let whole = try await transfer.hash(target.part.descriptor, target.partPath, range, after: digest)
        state.withLock { ($0.digest, $0.hashed) = (whole, range.upperBound) }
    }

    // MARK: - Note

    private static let pageSize = 4096

    /// The note has a page of its own, so that a kill does not tear it.
    private static func note(_ total: Int64) -> Int64 {
        total.saturatingAdding(Int64(pageSize - 1)) / Int64(pageSize) * Int64(pageSize)
    }

    /// Reads the note; nil if there is none. Blocks.
    private static func noted(in file: Int32, at note: Int64, _ files: FileOperations) -> ByteRanges? {
        var bytes = [UInt8](repeating: 0, count: pageSize)
        let count = bytes.withUnsafeMutableBytes { (try? files.readAt(file, note, $0)) ?? 0 }
        guard let end = bytes.prefix(count).firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        return ByteRanges(String(decoding: bytes[..<end], as: UTF8.self))
    }
}

extension [ByteBuffer] {
    var byteCount: Int { reduce(0) { $0 + $1.readableBytes } }

    /// Removes the first `count` bytes, or all if there are fewer, and returns them.
    mutating func removeFirst(bytes count: Int) -> [ByteBuffer] {
        var (taken, missing) = ([ByteBuffer](), count)
        while missing > 0, var block = first {
            guard let piece = block.readSlice(length: Swift.min(missing, block.readableBytes)) else { break }
            missing -= piece.readableBytes
            taken.append(piece)
            if block.readableBytes == 0 { removeFirst() } else { self[0] = block }
        }
        return taken
    }
}
