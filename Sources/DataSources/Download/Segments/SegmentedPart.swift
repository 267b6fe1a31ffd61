import JobModel
import Logging
import NIOCore
import SystemPackage
import Synchronization

/// A `.part` that several connections write to, each its own segments, and the digest of it as far as it has no holes.
///
/// Behind the file's own bytes stands a block that says which of them are written, renewed after each write: so a daemon that
/// was killed goes on with every byte, while the machine has not been restarted since. The block is cut off in the end.
final class SegmentedPart: Sendable {
    /// The bytes of that block.
    private static let blockSize = 4096
    private static let signature = "deferd segments 1 "
    /// The end of its text, as a block lies across two pages, and a kill can come between them.
    private static func check(of text: some StringProtocol) -> String {
        " " + SHA256Digest.hexadecimal(of: Array(text.utf8)).prefix(checkSize - 1)
    }
    private static let checkSize = 17

    let identity: FileOperations.Status.Identity
    let total: Int64
    /// How many bytes an earlier transfer had written.
    let resumed: Int64
    private let target: DownloadTarget
    private let services: DownloadServices
    private let map: Mutex<SegmentMap>
    private let order = WriteOrder()
    private let digest = GrowingDigest()
    /// Kept while the block is written, so that an older one never replaces a newer one.
    private let block = Mutex<Void>(())
    private let growth = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let news = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    /// A new, empty one.
    init(
        new target: DownloadTarget, total: Int64, connections: Int, _ services: DownloadServices
    ) async throws(JobError) {
        identity = try await services.queue.run { () throws(JobError) in try target.makePart() }
        self.total = total
        resumed = 0
        self.target = target
        self.services = services
        map = Mutex(SegmentMap(total: total, connections: connections))
        growth.continuation.yield()
    }

    /// The one of `size` bytes that was just reopened; nil where nothing of it can be used.
    init?(
        reopened target: DownloadTarget, size: Int64, _ checkpoint: DownloadCheckpoint, connections: Int,
        _ services: DownloadServices
    ) async {
        guard let total = checkpoint.total, total > 0, let saved = checkpoint.fetched else { return nil }
        let files = services.files
        var written = saved
        if !files.bootID.isEmpty, checkpoint.bootID == files.bootID {
            written = await services.queue.run { Self.written(in: target.part.descriptor, total, files) } ?? saved
        }
        // The last byte is always asked for again, as only an answer shows that the file is still this one.
        written = written.below(min(size, written.count < total ? total : total - 1))
        guard written.count > 0 else { return nil }
        identity = checkpoint.part
        self.total = total
        resumed = written.count
        self.target = target
        self.services = services
        map = Mutex(SegmentMap(total: total, written: written, connections: connections))
        growth.continuation.yield()
    }

    /// Bytes that are there.
    var count: Int64 { map.withLock { $0.written.count } }
    var written: ByteRanges { map.withLock(\.written) }
    var isComplete: Bool { map.withLock(\.isComplete) }

    // MARK: Segments

    func begin() -> SegmentMap.ID? { map.withLock { $0.begin() } }
    func rest(of segment: SegmentMap.ID) -> Range<Int64>? { map.withLock { $0.rest(of: segment) } }
    func end(_ segment: SegmentMap.ID) { map.withLock { $0.end(segment) } }

    /// Waits until it is the turn of a connection with bytes for a segment to write; ``endTurn()`` ends it.
    func beginTurn(for segment: SegmentMap.ID, _ control: TransferControl) async throws(JobError) {
        try await order.begin(at: rest(of: segment)?.lowerBound ?? total, control)
    }

    /// Whether a connection with more bytes for a segment has the next turn too.
    func mayGoOn(with segment: SegmentMap.ID) -> Bool {
        rest(of: segment).map { order.mayGoOn(at: $0.lowerBound) } ?? false
    }

    func endTurn() {
        order.end()
        growth.continuation.yield()
    }

    /// Fewer bytes are not worth a second thread.
    private static let worthTwoThreads = 128 << 10

    /// Writes what came for a segment, as far as it is still the segment's; what continues the digest is hashed meanwhile,
    /// after the little that others wrote between the two.
    func write(_ blocks: [ByteBuffer], to segment: SegmentMap.ID) async throws(JobError) {
        let size = blocks.reduce(0) { $0 + $1.readableBytes }
        let (offset, count, isNext) = map.withLock { map in
            let (offset, count) = map.claim(size, for: segment)
            return (offset, count, offset == map.written.prefix)
        }
        guard count > 0 else { return }
        let blocks = DownloadedPart.coalesced(blocks)
        defer { news.continuation.yield() }
        do throws(Errno) {
            guard isNext, let (before, position) = digest.begin(from: offset - Self.mostBehind) else {
                return try await services.queue.run { [self] () throws(Errno) in
                    try store(blocks, count, at: offset, of: segment)
                }
            }
            let stored: Result<Void, Errno>
            let longer: SHA256Digest?
            if count + Int(offset - position) < Self.worthTwoThreads {
                (stored, longer) = await services.queue.run { [self] in
                    let stored = Result { () throws(Errno) in try store(blocks, count, at: offset, of: segment) }
                    return (stored, hash(before, position..<offset, blocks, count))
                }
            } else {
                async let hashed = services.queue.run { [self] in hash(before, position..<offset, blocks, count) }
                stored = await services.queue.run { [self] in
                    Result { () throws(Errno) in try store(blocks, count, at: offset, of: segment) }
                }
                longer = await hashed
            }
            digest.end((try? stored.get()) == nil ? nil : longer, at: offset + Int64(count))
            try stored.get()
        } catch {
            throw JobError(path: error, "written", target.absolutePath + DownloadPath.partSuffix)
        }
    }

    /// Writes bytes of a segment, and then the block that says so.
    private func store(
        _ blocks: [ByteBuffer], _ count: Int, at offset: Int64, of segment: SegmentMap.ID
    ) throws(Errno) {
        try write(blocks, count, at: offset)
        try block.withLock { _ throws(Errno) in
            let written = map.withLock { map in
                map.finishWriting(segment)
                return map.written
            }
            try writeBlock(written)
        }
    }

    /// The digest with what stands in a range of the file and then with blocks; nil where that cannot be read, which
    /// ``completeDigest()`` tells of.
    private func hash(
        _ before: SHA256Digest, _ written: Range<Int64>, _ blocks: [ByteBuffer], _ count: Int
    ) -> SHA256Digest? {
        guard var hash = try? continued(before, written) else { return nil }
        var rest = count
        for block in blocks {
            block.withUnsafeReadableBytes { bytes in
                let piece = UnsafeRawBufferPointer(rebasing: bytes.prefix(rest))
                hash.update(piece)
                rest -= piece.count
            }
        }
        return hash
    }

    private func write(_ blocks: [ByteBuffer], _ count: Int, at offset: Int64) throws(Errno) {
        var (offset, rest) = (offset, count)
        for block in blocks {
            let outcome: Result<Int, Errno> = block.withUnsafeReadableBytes { bytes in
                Result { () throws(Errno) in
                    let piece = UnsafeRawBufferPointer(rebasing: bytes.prefix(rest))
                    try services.files.writeAt(target.part.descriptor, offset, piece)
                    return piece.count
                }
            }
            let size = try outcome.get()
            (offset, rest) = (offset + Int64(size), rest - size)
            if rest == 0 { return }
        }
    }

    // MARK: What is written

    private func writeBlock(_ written: ByteRanges) throws(Errno) {
        var text = Self.signature
        for (index, range) in written.ranges.enumerated() {
            let more = (index > 0 ? "," : "") + "\(range.lowerBound)-\(range.upperBound)"
            // There are never so many; what does not stand there is fetched again.
            guard text.utf8.count + more.utf8.count + Self.checkSize < Self.blockSize else { break }
            text += more
        }
        text += Self.check(of: text)
        var bytes = Array((text + "\n").utf8)
        bytes.append(contentsOf: repeatElement(0, count: max(0, Self.blockSize - bytes.count)))
        let outcome: Result<Void, Errno> = bytes.withUnsafeBytes { raw in
            Result { () throws(Errno) in try services.files.writeAt(target.part.descriptor, total, raw) }
        }
        try outcome.get()
    }

    /// What the block of a `.part` says; nil where there is none. Blocks.
    private static func written(in file: Int32, _ total: Int64, _ files: FileOperations) -> ByteRanges? {
        var bytes = [UInt8](repeating: 0, count: blockSize)
        let count = bytes.withUnsafeMutableBytes { (try? files.readAt(file, total, $0)) ?? 0 }
        let text = String(decoding: bytes.prefix(count).prefix { $0 != 0x0A }, as: UTF8.self)
        let ranges = text.dropLast(checkSize)
        guard count == blockSize, bytes.contains(0x0A), ranges.hasPrefix(signature),
            text.hasSuffix(check(of: ranges))
        else { return nil }
        return ByteRanges(ranges.dropFirst(signature.count))
    }

    /// Calls `body` after writes, until ``finishNews()``.
    func afterWrites(_ body: () async -> Void) async {
        for await _ in news.stream { await body() }
    }

    func finishNews() { news.continuation.finish() }

    /// Cuts off what is not the file's own.
    func finish() async throws(JobError) {
        do throws(Errno) {
            try await services.queue.run { [self] () throws(Errno) in
                try services.files.truncate(target.part.descriptor, total)
            }
        } catch {
            throw JobError(path: error, "written", target.absolutePath + DownloadPath.partSuffix)
        }
    }

    // MARK: The digest

    /// Bytes that are read at a time, few enough for the processor to keep them until they are hashed.
    private static let block = 256 << 10
    /// Bytes between two looks at whether the transfer was cancelled.
    private static let portion: Int64 = 16 << 20
    /// A digest that is no more than so many bytes behind what is written in front goes on with the next write: else the file is
    /// complete long before its digest. One that is further behind reads what an earlier transfer wrote, beside the writes.
    private static let mostBehind = portion

    /// The digest, to be continued beside the writes: where it is far behind, or nothing is written.
    private func beginReading() -> (hash: SHA256Digest, range: Range<Int64>)? {
        let prefix = map.withLock { $0.written.prefix }
        guard prefix - digest.position > Self.mostBehind || !order.isTaken, let (hash, position) = digest.begin() else {
            return nil
        }
        let end = min(prefix, position + Self.portion)
        guard position < end else {
            digest.end(nil, at: position)
            return nil
        }
        return (hash, position..<end)
    }

    /// Reads what continues the digest and was not at hand when it was written, until the digest is that of the whole file;
    /// nil where the task was cancelled before.
    func completeDigest() async throws(JobError) -> String? {
        for await _ in growth.stream {
            while !Task.isCancelled, let (hash, range) = beginReading() {
                do throws(Errno) {
                    let longer = try await services.queue.run { [self] () throws(Errno) in
                        try continued(hash, range)
                    }
                    digest.end(longer, at: range.upperBound)
                } catch {
                    throw JobError(path: error, "read", target.absolutePath + DownloadPath.partSuffix)
                }
            }
            if digest.position == total { return digest.text }
        }
        return nil
    }

    private func continued(_ before: SHA256Digest, _ range: Range<Int64>) throws(Errno) -> SHA256Digest {
        var hash = before
        guard !range.isEmpty else { return hash }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.block, alignment: 4096)
        defer { buffer.deallocate() }
        var position = range.lowerBound
        while position < range.upperBound {
            let room = Int(min(Int64(buffer.count), range.upperBound - position))
            let count = try services.files.readAt(
                target.part.descriptor, position, UnsafeMutableRawBufferPointer(rebasing: buffer[..<room]))
            // It was written a moment ago, so somebody is truncating it.
            guard count > 0 else { throw Errno.ioError }
            hash.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            position += Int64(count)
        }
        return hash
    }
}
