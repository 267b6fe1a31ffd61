import DeferredKit
import JobModel
import Logging
import NIOCore
import Synchronization
import SystemPackage

/// The contents of a `.part` file: the ranges that are written, and the digest of the bytes before the first gap.
///
/// A checkpoint is saved from time to time, so that a crash of the machine loses little of it. A file that several
/// connections fill has holes, so its size does not tell what is written: there, a killed daemon loses as little.
final class DownloadedPart: Sendable {
    private struct State {
        var written: ByteRanges
        var digest: FileDigest
        /// The number of bytes in the digest.
        var hashed: Int64 = 0
    }

    /// What a later attempt needs to resume the file; nil if the server gave no strong validator.
    let checkpoint: DownloadCheckpoint?
    /// The size of the file, if it is known.
    let total: Int64?
    /// The number of bytes that an earlier transfer wrote.
    let resumed: Int64
    let hasHoles: Bool
    private let state: Mutex<State>
    /// Whether a checkpoint of this file is saved.
    private let isSaved: Mutex<Bool>
    private let target: DownloadTarget
    private let transfer: Transfer
    /// The room on the disk for the missing bytes.
    private let room: Lease?

    /// Makes an empty file for the body of `response`; `source` is the URL as the spec has it.
    init(
        new target: DownloadTarget, for response: IncomingResponse, from source: String, hasHoles: Bool,
        _ checksum: Checksum?, _ transfer: Transfer
    ) async throws(JobError) {
        let total = response.contentLength
        room = try await transfer.shared.room.lease(total ?? 0, for: target, transfer)
        let identity = try await transfer.userFiles.run { () throws(JobError) in try target.makePart() }
        self.total = total
        checkpoint = Validator(response.head.headers).map { validator in
            DownloadCheckpoint(
                url: Masking.masked(url: source), validator: validator, total: total,
                directory: target.path.directory, name: target.name, part: identity, bootID: transfer.files.bootID,
                hasHoles: hasHoles)
        }
        resumed = 0
        self.hasHoles = hasHoles
        state = Mutex(State(written: ByteRanges(), digest: FileDigest(for: checksum)))
        isSaved = Mutex(false)
        self.target = target
        self.transfer = transfer
    }

    /// Takes up the file of `size` bytes that was just reopened; nil if none of its contents can be relied on.
    init?(
        reopened target: DownloadTarget, size: Int64, _ checkpoint: DownloadCheckpoint,
        _ checksum: Checksum?, _ transfer: Transfer
    ) async throws(JobError) {
        self.checkpoint = checkpoint
        total = checkpoint.total
        hasHoles = checkpoint.hasHoles
        let usable = checkpoint.usable(ofSize: size, boot: transfer.files.bootID)
        guard usable.count > 0 else { return nil }
        resumed = usable.count
        room = try await transfer.shared.room.lease((total ?? resumed) - resumed, for: target, transfer)
        state = Mutex(State(written: usable, digest: FileDigest(for: checksum)))
        isSaved = Mutex(true)
        self.target = target
        self.transfer = transfer
    }

    var written: ByteRanges { state.withLock(\.written) }
    var count: Int64 { written.count }
    /// The digest of the file, once ``hashWritten()`` has completed it.
    var digest: FileDigest { state.withLock(\.digest) }

    /// Writes `blocks` at `offset`; blocks that continue the hashed bytes are hashed at the same time.
    func write(_ blocks: [ByteBuffer], at offset: Int64) async throws(JobError) {
        let (before, hashed) = state.withLock { ($0.digest, $0.hashed) }
        let queue = transfer.userFiles
        func hash() async -> FileDigest? {
            guard offset == hashed else { return nil }
            return await queue.run {
                var digest = before
                for block in blocks { block.withUnsafeReadableBytes { digest.update($0) } }
                return digest
            }
        }
        async let hashing = hash()
        try await queue.run { [self] () throws(JobError) in try store(blocks, at: offset) }
        if let digest = await hashing {
            state.withLock { ($0.digest, $0.hashed) = (digest, offset + Int64(blocks.byteCount)) }
        }
    }

    /// Blocks.
    private func store(_ blocks: [ByteBuffer], at offset: Int64) throws(JobError) {
        var end = offset
        do throws(Errno) {
            for block in blocks {
                try block.withUnsafeReadableBytes { (bytes) throws(Errno) in
                    try transfer.files.writeAt(target.descriptor, end, bytes)
                }
                end += Int64(block.readableBytes)
            }
        } catch {
            throw JobError(path: error, "written", target.partPath)
        }
        state.withLock { $0.written.insert(contentsOf: offset..<end) }
        if let total { room?.shrink(to: total - count) }
        try checkRoom(from: offset, to: end)
    }

    /// The bytes that a download may write between two checks of the free space.
    private static let checkInterval: Int64 = 1 << 20

    /// Ends a running download below half of the required free space, to leave the rest to others.
    ///
    /// The written bytes are removed, which makes room again.
    private func checkRoom(from start: Int64, to end: Int64) throws(JobError) {
        let minimum = Int64(transfer.settings.downloads.minimumFree / 2)
        guard minimum > 0, start / Self.checkInterval != end / Self.checkInterval, let free = target.freeBytes,
            free < minimum
        else { return }
        throw JobError(
            .storage,
            "\"\(target.path.directory)\" has \(free) bytes free, and downloads end below \(minimum); make room.",
            retryable: true)
    }

    /// Hashes the written bytes before the first gap that are not hashed yet.
    func hashWritten() async throws(JobError) {
        let (digest, range) = state.withLock { ($0.digest, $0.hashed..<$0.written.prefix) }
        let whole = try await transfer.hash(target.descriptor, target.partPath, range, after: digest)
        state.withLock { ($0.digest, $0.hashed) = (whole, range.upperBound) }
    }

    // MARK: - Checkpoints

    /// Files below `size` that arrive within `time` get no checkpoint: fetching them again is cheaper.
    private static let negligible = (size: Int64(1 << 20), time: TimeAmount.seconds(2))
    private static let interval = TimeAmount.seconds(15)

    /// Saves checkpoints until the task is cancelled or the transfer interrupted; throws if the file cannot be synced.
    func saveCheckpoints() async throws(JobError) {
        guard let checkpoint else { return }
        if !isSaved.withLock(\.self) {
            let isLarge = max(count, total ?? 0) >= Self.negligible.size
            guard await sleep(for: isLarge ? .zero : Self.negligible.time) else { return }
            // The first checkpoint only names the file: until the machine restarts, that is enough.
            await save(checkpoint)
        }
        var saved = count
        while await sleep(for: Self.interval) {
            let present = count
            guard present > saved else { continue }
            try await saveWritten(checkpoint)
            saved = present
        }
    }

    /// Saves a checkpoint of what is written, once that is on stable storage.
    private func saveWritten(_ checkpoint: DownloadCheckpoint) async throws(JobError) {
        var checkpoint = checkpoint
        checkpoint.synced = written
        do throws(Errno) {
            try await transfer.userFiles.run { [target, files = transfer.files] () throws(Errno) in
                try files.syncData(target.descriptor)
            }
        } catch {
            throw JobError(path: error, "synced", target.partPath)
        }
        await save(checkpoint)
    }

    /// Waits; false if the transfer ended meanwhile.
    private func sleep(for pause: TimeAmount) async -> Bool {
        do throws(JobError) { try await transfer.control.sleep(for: pause) } catch { return false }
        return true
    }

    /// Saves what a later attempt needs; false if it cannot find the file.
    func close() async -> Bool {
        if let checkpoint, !isSaved.withLock(\.self) { await save(checkpoint) }
        // If this fails, the checkpoint before it counts.
        if let checkpoint, hasHoles, count > resumed { try? await saveWritten(checkpoint) }
        return isSaved.withLock(\.self)
    }

    private func save(_ checkpoint: DownloadCheckpoint) async {
        do {
            try await transfer.context.saveCheckpoint(checkpoint.json).get()
            isSaved.withLock { $0 = true }
        } catch is CancellationError {
            // A cancelled download leaves no checkpoint.
        } catch {
            transfer.logger.warning(
                "The progress of a download could not be saved; after a crash it starts from the beginning.",
                metadata: ["path": "\(target.absolutePath)", "error": "\(error)"])
        }
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
