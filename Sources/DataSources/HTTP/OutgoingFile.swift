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

    /// The progress of one request; an earlier one may still read.
    final class Sending: Sendable {
        let digest: FileDigest
        let bytes = Mutex<(read: Int64, sent: Int64)>((0, 0))

        init(for checksum: Checksum?) { digest = FileDigest(for: checksum) }
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
    private let latest: Mutex<Sending>

    init(
        _ source: Source, size: Int64, in frame: MultipartFrame? = nil, checksum: Checksum? = nil,
        _ transfer: Transfer
    ) {
        (before, after) = (frame?.before ?? [], frame?.after ?? [])
        self.size = size + Int64(before.count + after.count)
        (fileSize, self.source, self.checksum, self.transfer) = (size, source, checksum, transfer)
        latest = Mutex(Sending(for: checksum))
    }

    /// Whether this is the file of an upload, and not only the body of a request.
    var isUpload: Bool { if case .upload = source { true } else { false } }

    /// The digest of an upload's file, once all of it is checked and sent.
    var digest: FileDigest? { latest.withLock { $0.bytes.withLock(\.sent) == size ? $0.digest : nil } }

    func begin() -> Sending {
        let sending = Sending(for: checksum)
        latest.withLock { $0 = sending }
        if isUpload { transfer.report(ProgressUpdate(completed: 0, total: size)) }
        return sending
    }

    /// Reads the next block for a request on a file thread; nil at the end. Called after the last block was returned.
    func next(_ sending: Sending, on loop: any EventLoop) -> EventLoopFuture<ByteBuffer?> {
        let promise = loop.makePromise(of: ByteBuffer?.self)
        (isUpload ? transfer.userFiles : transfer.ownFiles).start { [self] in
            let block = Result { try readBlock(sending) }
            let size = (try? block.get())?.readableBytes ?? 0
            let pause = transfer.context.queueRate?.take(size, at: loop.now)
            guard let pause else { return promise.completeWith(block) }
            loop.scheduleTask(in: pause) { promise.completeWith(block) }
        }
        return promise.futureResult
    }

    func count(_ count: Int, sentBy sending: Sending) {
        let sent = sending.bytes.withLock { bytes in
            bytes.sent += Int64(count)
            return bytes.sent
        }
        if isUpload { transfer.report(ProgressUpdate(completed: sent, total: size)) }
    }

    /// Blocks.
    private func readBlock(_ sending: Sending) throws(JobError) -> ByteBuffer? {
        let offset = sending.bytes.withLock(\.read)
        guard offset < size else { return nil }
        let position = offset - Int64(before.count)
        let block =
            switch position {
            case ..<0: ByteBuffer(bytes: before)
            case ..<fileSize: try readFile(at: position, sending.digest)
            default: ByteBuffer(bytes: after)
            }
        let end = offset + Int64(block.readableBytes)
        if end == size, case .upload(let file) = source {
            try file.checkUnchanged()
            try check(sending.digest)
        }
        sending.bytes.withLock { $0.read = end }
        return block
    }

    private func readFile(at position: Int64, _ digest: FileDigest) throws(JobError) -> ByteBuffer {
        let most = min(Self.block, transfer.context.queueRate?.largestPiece ?? .max)
        let count = Int(min(Int64(most), fileSize - position))
        var buffer = ByteBuffer()
        var outcome = Result<Void, JobError>.success(())
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { room in
            let block = UnsafeMutableRawBufferPointer(rebasing: room[..<count])
            outcome = Result { () throws(JobError) in
                switch source {
                case .upload(let file): try file.read(at: position, into: block)
                case .body(let file): try file.read(at: position, into: block)
                }
            }
            if isUpload { digest.update(UnsafeRawBufferPointer(block)) }
            return count
        }
        try outcome.get()
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

    private static let escapes: [Unicode.Scalar: String] = ["\"": "%22", "\r": "%0D", "\n": "%0A"]

    /// A name as browsers write it.
    private static func escaped(_ name: String) -> String {
        name.unicodeScalars.map { escapes[$0] ?? String($0) }.joined()
    }
}
