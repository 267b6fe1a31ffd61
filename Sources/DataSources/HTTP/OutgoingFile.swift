import DeferredKit
import JobModel
import NIOCore
import Synchronization

/// A file that requests send, each time from its first byte: that of an upload, or a long body.
///
/// The last block of an upload is held back until the file is checked. A form surrounds it with a frame.
final class OutgoingFile: Sendable {
    enum Source: Sendable {
        case upload(ReadableFile)
        case body(BodyFile)
    }

    /// Small enough to show that the server is not idle, large enough to be worth the change of threads.
    static let block = 64 << 10

    /// The size of the request's body: of the file and its frame.
    let size: Int64
    private let fileSize: Int64
    private let (before, after): ([UInt8], [UInt8])
    private let source: Source
    private let checksum: Checksum?
    private let transfer: Transfer
    /// The digest of a file that was sent whole.
    private let sent = Mutex<FileDigest?>(nil)

    init(
        _ source: Source, size: Int64, in frame: MultipartFrame? = nil, checksum: Checksum? = nil,
        _ transfer: Transfer
    ) {
        (before, after) = (frame?.before ?? [], frame?.after ?? [])
        self.size = frame?.size(with: size) ?? size
        (fileSize, self.source, self.checksum, self.transfer) = (size, source, checksum, transfer)
    }

    /// Whether this is the file of an upload, and not only the body of a request.
    var isUpload: Bool { if case .upload = source { true } else { false } }

    /// The digest of an upload's file, once all of it is checked and sent.
    var digest: FileDigest? { size == 0 ? FileDigest(for: checksum) : sent.withLock(\.self) }

    /// The rate of the queue, for which `send` waits.
    var rate: RateLimiter? { transfer.context.queueRate }

    /// Passes the file to `send` in blocks, from its first byte, until that wants no more; false if it did not get all.
    func send(_ send: (ByteBuffer) async throws -> Bool) async throws -> Bool {
        // An earlier server may have got all of it.
        sent.withLock { $0 = nil }
        let digest = FileDigest(for: checksum)
        let queue = isUpload ? transfer.userFiles : transfer.ownFiles
        var offset: Int64 = 0
        while true {
            if isUpload { transfer.report(ProgressUpdate(completed: offset, total: size)) }
            guard offset < size else { break }
            let block = try await queue.run { [self, offset] () throws(any Error) in
                try readBlock(at: offset, digest)
            }
            guard try await send(block) else { return false }
            if isUpload { transfer.context.transferred(block.readableBytes) }
            offset += Int64(block.readableBytes)
        }
        sent.withLock { $0 = digest }
        return true
    }

    /// Blocks.
    private func readBlock(at offset: Int64, _ digest: FileDigest) throws -> ByteBuffer {
        let position = offset - Int64(before.count)
        let block =
            switch position {
            case ..<0: ByteBuffer(bytes: before)
            case ..<fileSize: try readFile(at: position, digest)
            default: ByteBuffer(bytes: after)
            }
        if offset + Int64(block.readableBytes) == size, case .upload(let file) = source {
            try file.checkUnchanged()
            try check(digest)
        }
        return block
    }

    private func readFile(at position: Int64, _ digest: FileDigest) throws -> ByteBuffer {
        let most = min(Self.block, rate?.largestPiece ?? .max)
        let count = Int(min(Int64(most), fileSize - position))
        var buffer = ByteBuffer()
        try buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { room in
            let block = UnsafeMutableRawBufferPointer(rebasing: room[..<count])
            switch source {
            case .upload(let file):
                try file.read(at: position, into: block)
                digest.update(UnsafeRawBufferPointer(block))
            case .body(let file): try file.read(at: position, into: block)
            }
            return count
        }
        return buffer
    }

    /// Throws if an upload's file has another digest than its checksum.
    func check(_ digest: FileDigest) throws(JobError) {
        guard case .upload(let file) = source, let mismatch = digest.mismatch else { return }
        throw JobError(.checksum, "\"\(file.path)\" \(mismatch); check the file and the checksum.")
    }
}

/// What surrounds a file in a body of the type multipart/form-data (RFC 7578).
struct MultipartFrame: Sendable {
    let contentType: String
    let before: [UInt8]
    let after: [UInt8]

    init(_ form: UploadSpec.Form, filename: String) {
        // No file contains it by accident.
        let boundary =
            "deferd-\(String(UInt64.random(in: .min ... .max), radix: 16))\(String(UInt64.random(in: .min ... .max), radix: 16))"
        func head(_ name: String, _ rest: String = "") -> String {
            "--\(boundary)\r\nContent-Disposition: form-data; name=\"\(Self.escaped(name))\"\(rest)\r\n\r\n"
        }
        let fields = form.fields.map { head($0.name) + $0.value + "\r\n" }.joined()
        let file = "; filename=\"\(Self.escaped(filename))\"\r\nContent-Type: application/octet-stream"
        before = Array((fields + head(form.field, file)).utf8)
        after = Array("\r\n--\(boundary)--\r\n".utf8)
        contentType = "multipart/form-data; boundary=\(boundary)"
    }

    /// The size of a body with a file of `size` bytes: with holes, some have as many as 2^63 - 1.
    func size(with size: Int64) -> Int64 { size.saturatingAdding(Int64(before.count + after.count)) }

    private static let escapes: [Unicode.Scalar: String] = ["\"": "%22", "\r": "%0D", "\n": "%0A"]

    /// A name as browsers write it.
    private static func escaped(_ name: String) -> String {
        name.unicodeScalars.map { escapes[$0] ?? String($0) }.joined()
    }
}
