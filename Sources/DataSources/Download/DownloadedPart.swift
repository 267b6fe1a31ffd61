import DeferredKit
import JobModel
import NIOCore
import Synchronization
import SystemPackage

/// The contents of a `.part` file: the ranges that are written, and the digest of the bytes before the first gap.
///
/// The file is synced from time to time, and a checkpoint saved, so that a crash of the machine loses little of it. A file
/// that several connections fill has holes, so its size does not tell what is written: its checkpoint is saved each
/// second, so that a killed daemon loses no more.
final class DownloadedPart: Sendable {
    private struct State {
        var written: ByteRanges
        var hashed: Int64 = 0
        var isSaved: Bool
        /// Why the file could not be synced, of which the system tells only once.
        var failure: JobError?
    }

    /// What a later attempt needs to resume the file; nil if the server gave no strong validator.
    let checkpoint: DownloadCheckpoint?
    let total: Int64?
    /// The number of bytes that an earlier transfer wrote.
    let resumed: Int64
    let hasHoles: Bool
    /// The digest of the file, once ``hashWritten()`` has completed it.
    let digest: FileDigest
    private let state: Mutex<State>
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
        let identity: FileOperations.Status.Identity
        (identity, room) = try await transfer.userFiles.run { () throws(JobError) in
            // An earlier file, which it unlinks, takes room.
            (try target.makePart(), try target.leaseRoom(total ?? 0))
        }
        checkpoint = Validator(response.head.headers).map { validator in
            DownloadCheckpoint(
                url: Masking.masked(url: source), validator: validator, total: total,
                directory: target.path.directory, name: target.name, part: identity, bootID: transfer.files.bootID,
                hasHoles: hasHoles)
        }
        (self.total, self.hasHoles, resumed) = (total, hasHoles, 0)
        digest = FileDigest(for: checksum)
        state = Mutex(State(written: ByteRanges(), isSaved: false))
        (self.target, self.transfer) = (target, transfer)
    }

    /// Takes up the file of `size` bytes that was just reopened; nil if none of its contents can be relied on.
    init?(
        reopened target: DownloadTarget, size: Int64, _ checkpoint: DownloadCheckpoint,
        _ checksum: Checksum?, _ transfer: Transfer
    ) async throws(JobError) {
        let usable = checkpoint.usable(ofSize: size, boot: transfer.files.bootID)
        guard usable.count > 0 else { return nil }
        (total, hasHoles, resumed) = (checkpoint.total, checkpoint.hasHoles, usable.count)
        let missing = (total ?? resumed) - resumed
        room = try await transfer.userFiles.run { () throws(JobError) in try target.leaseRoom(missing) }
        self.checkpoint = checkpoint
        digest = FileDigest(for: checksum)
        state = Mutex(State(written: usable, isSaved: true))
        (self.target, self.transfer) = (target, transfer)
    }

    var written: ByteRanges { state.withLock(\.written) }
    var count: Int64 { written.count }

    /// Writes `blocks` at `offset`; blocks that continue the hashed bytes are hashed at the same time.
    func write(_ blocks: [ByteBuffer], at offset: Int64) async throws(JobError) {
        let queue = transfer.userFiles
        let isNext = state.withLock { $0.hashed == offset }
        async let hashing: Void? =
            isNext
            ? queue.run { [digest] in
                for block in blocks { block.withUnsafeReadableBytes { digest.update($0) } }
            } : nil
        try await queue.run { [self] () throws(JobError) in try store(blocks, at: offset) }
        if await hashing != nil { state.withLock { $0.hashed += Int64(blocks.byteCount) } }
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
            var failure = JobError(path: error, "written", target.partPath)
            // Others may make room.
            failure.isRetryable = error == .noSpace || error == .diskQuotaExceeded
            throw failure
        }
        state.withLock { $0.written.insert(contentsOf: offset..<end) }
        if let total { room?.shrink(to: total - count) }
        if offset / Self.checkInterval != end / Self.checkInterval {
            try target.checkRoomToGoOn()
        }
    }

    /// The bytes that a download may write between two checks of the free space.
    private static let checkInterval: Int64 = 1 << 20

    /// Hashes the written bytes before the first gap that are not hashed yet.
    func hashWritten() async throws(JobError) {
        let range = state.withLock { $0.hashed..<$0.written.prefix }
        try await transfer.hash(target.descriptor, target.partPath, range, into: digest)
        state.withLock { $0.hashed = range.upperBound }
    }

    // MARK: - Checkpoints

    /// Files below `size` that arrive within `time` get no checkpoint: fetching them again is cheaper.
    private static let negligible = (size: Int64(1 << 20), time: TimeAmount.seconds(2))
    /// The seconds between two syncs.
    private static let interval: Int64 = 15

    /// Saves checkpoints until the task is cancelled or the transfer interrupted.
    ///
    /// If the file cannot be synced, this interrupts the transfer.
    func saveCheckpoints() async {
        guard var checkpoint else { return }
        do throws(JobError) {
            if !state.withLock(\.isSaved) {
                let isLarge = max(count, total ?? 0) >= Self.negligible.size
                try await transfer.control.sleep(for: isLarge ? .zero : Self.negligible.time)
                // The first checkpoint only names the file, which is enough for one without holes.
                await save(checkpoint)
            }
            let steps = hasHoles ? Self.interval : 1
            while true {
                for _ in 0..<steps {
                    try await transfer.control.sleep(for: .seconds(Self.interval / steps))
                    guard hasHoles, count > checkpoint.written.count else { continue }
                    checkpoint.written = written
                    await save(checkpoint)
                }
                guard count > max(resumed, checkpoint.synced.count) else { continue }
                checkpoint.synced = try await sync()
                await save(checkpoint)
            }
        } catch {
            if !Task.isCancelled { transfer.control.interrupt(error) }
        }
    }

    /// Syncs the file, with another time if it is to get one, and returns what was written before. Once this has failed, it always
    /// does.
    @discardableResult
    func sync(setting time: Timestamp? = nil) async throws(JobError) -> ByteRanges {
        let present = written
        do throws(JobError) {
            if let failure = state.withLock(\.failure) { throw failure }
            try await transfer.userFiles.run { [target, files = transfer.files] () throws(JobError) in
                try JobError.naming(target.partPath, "synced") { () throws(Errno) in
                    if let time { try files.setModified(target.descriptor, time) }
                    try files.sync(target.descriptor)
                }
            }
        } catch {
            state.withLock { $0.failure = error }
            throw error
        }
        return present
    }

    /// Saves what a later attempt needs; false if it cannot find the file, or not rely on it.
    func close() async -> Bool {
        guard var checkpoint, checkpoint.part.createdAt != 0 else { return false }
        if !state.withLock(\.isSaved) { await save(checkpoint) }
        if hasHoles, count > resumed, let synced = try? await sync() {
            checkpoint.synced = synced
            await save(checkpoint)
        }
        return state.withLock { $0.isSaved && $0.failure == nil }
    }

    private func save(_ checkpoint: DownloadCheckpoint) async {
        // Without it, a later attempt begins anew. A store that fails is reported by the engine.
        guard (try? await transfer.context.saveCheckpoint(checkpoint.json).get()) != nil else { return }
        state.withLock { $0.isSaved = true }
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
