import DeferredKit
import JobModel
import Logging
import NIOCore
import Synchronization
import SystemPackage

/// The contents of a `.part` file: the ranges that are written, and the digest of the bytes before the first gap.
///
/// A file that several connections fill has holes, so its size does not tell what is written. A note of the written
/// ranges stands behind its contents and is renewed with each write: a killed daemon loses no byte unless the machine
/// restarts. A checkpoint is saved from time to time, so that a crash of the machine loses little of it.
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
    /// The offset of the note; nil if the file has no holes.
    private let note: Int64?
    /// Held while the note is written, so that an older one never replaces a newer one.
    private let noting = Mutex(())
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
        note = hasHoles ? total.map(Self.note) : nil
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
        note = checkpoint.hasHoles ? total.map(Self.note) : nil
        var noted: ByteRanges?
        if let note {
            noted = await transfer.userFiles.run { Self.noted(in: target.descriptor, at: note, transfer.files) }
        }
        let usable = checkpoint.usable(ofSize: size, noted: noted, boot: transfer.files.bootID)
        guard usable.count > 0 else { return nil }
        resumed = usable.count
        room = try await transfer.shared.room.lease((total ?? resumed) - resumed, for: target, transfer)
        state = Mutex(State(written: usable, digest: FileDigest(for: checksum)))
        isSaved = Mutex(true)
        self.target = target
        self.transfer = transfer
    }

    var hasHoles: Bool { note != nil }
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
                try write(block, at: end)
                end += Int64(block.readableBytes)
            }
            try note(offset..<end)
        } catch {
            throw JobError(path: error, "written", target.partPath)
        }
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

    private func note(_ range: Range<Int64>) throws(Errno) {
        try noting.withLock { _ throws(Errno) in
            let written = state.withLock { state in
                state.written.insert(contentsOf: range)
                return state.written
            }
            let text = ByteBuffer(string: written.text + "\n")
            // The connections make far fewer ranges; ranges that the note lacks are fetched again.
            if let note, text.readableBytes <= Self.pageSize { try write(text, at: note) }
        }
    }

    private func write(_ bytes: ByteBuffer, at offset: Int64) throws(Errno) {
        try bytes.withUnsafeReadableBytes { (bytes) throws(Errno) in
            try transfer.files.writeAt(target.descriptor, offset, bytes)
        }
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
        guard var checkpoint else { return }
        if !isSaved.withLock(\.self) {
            let isLarge = max(count, total ?? 0) >= Self.negligible.size
            guard await sleep(for: isLarge ? .zero : Self.negligible.time) else { return }
            // The first checkpoint only names the file: until the machine restarts, that is enough.
            await save(checkpoint)
        }
        var saved = count
        while await sleep(for: Self.interval) {
            let written = written
            guard written.count > saved else { continue }
            do throws(Errno) {
                try await transfer.userFiles.run { [target, files = transfer.files] () throws(Errno) in
                    try files.syncData(target.descriptor)
                }
            } catch {
                throw JobError(path: error, "synced", target.partPath)
            }
            checkpoint.synced = written
            await save(checkpoint)
            saved = written.count
        }
    }

    /// Waits; false if the transfer ended meanwhile.
    private func sleep(for pause: TimeAmount) async -> Bool {
        do throws(JobError) { try await transfer.control.sleep(for: pause) } catch { return false }
        return true
    }

    /// Saves the first checkpoint if none was saved; false if no later attempt can find the file.
    func close() async -> Bool {
        if let checkpoint, !isSaved.withLock(\.self) { await save(checkpoint) }
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
