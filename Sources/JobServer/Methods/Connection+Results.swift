import Glibc
import JobCore
import JobEngine
import JobModel
import JobProtocol
import NIOCore
import NIOPosix

/// `job.result`.
extension Connection {
    private static let piece = 256 << 10

    func jobResult(_ call: Call) async throws(ProtocolError) {
        let (id, offset, length) = try call.read { (params) throws(SpecError) in
            try params.allow(["job", "offset", "length"])
            return (
                try params.job(), try params.integer("offset", in: 0...Int.max) ?? 0,
                try params.integer("length", in: 0...Int.max) ?? Self.piece
            )
        }
        let result = try await ask(.result(id), \.result)
        // In Base64 three bytes take four.
        let wanted = min(length, Self.piece, max(0, call.room - 128) / 4 * 3)
        guard wanted > 0 || length == 0 else { throw Replies.full }
        func answerPart(of bytes: [UInt8]) {
            let start = min(offset, bytes.count)
            answer(call, bytes[start..<min(bytes.count, start + wanted)], offset: offset, size: bytes.count)
        }
        switch result {
        case .value(let value): answerPart(of: value.utf8)
        case .body(let bytes): answerPart(of: bytes)
        case .file(let link):
            let path = engine.bodyPath(of: id, link: link)
            do {
                let (bytes, size) = try await NIOThreadPool.singleton.runIfActive {
                    try Self.read(path, offset: offset, length: wanted)
                }
                answer(call, bytes[...], offset: offset, size: size)
            } catch {
                throw ProtocolError(.storage, "The body of job \(id) cannot be read: \(error); retry the job.")
            }
        }
    }

    private func answer(_ call: Call, _ bytes: ArraySlice<UInt8>, offset: Int, size: Int) {
        call.succeed([
            "data": .string(Base64.encode(bytes)), "offset": JSON(offset), "size": JSON(size),
            "eof": .bool(offset + bytes.count >= size),
        ])
    }

    private static func read(_ path: String, offset: Int, length: Int) throws -> ([UInt8], Int) {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw IOError(errnoCode: errno, reason: "open") }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw IOError(errnoCode: errno, reason: "stat") }
        let length = offset < status.st_size ? length : 0
        var failure: IOError?
        let bytes = [UInt8](unsafeUninitializedCapacity: length) { buffer, count in
            while count < length {
                let read = pread(file, buffer.baseAddress?.advanced(by: count), length - count, off_t(offset + count))
                if read < 0 { failure = IOError(errnoCode: errno, reason: "read") }
                if read <= 0 { break }
                count += read
            }
        }
        if let failure { throw failure }
        return (bytes, Int(status.st_size))
    }
}
