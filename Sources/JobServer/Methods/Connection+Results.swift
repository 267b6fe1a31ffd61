import JobCore
import JobEngine
import JobModel
import JobProtocol
import NIOCore

/// `job.result`.
extension Connection {
    private static let piece = 256 << 10

    func jobResult(_ call: Call) async throws {
        let params = try call.params(["job", "offset", "length"])
        let id = try params.job()
        let offset = try params.integer("offset", in: 0...Int.max) ?? 0
        let length = try params.integer("length", in: 0...Int.max)
        let wanted = try resultPiece(call, length)
        let part = try await look { lookup in
            switch try lookup.result(of: id) {
            case .inline(let bytes): return ResultPart(of: bytes, offset: offset, length: wanted)
            case .file(let blob):
                do throws(StoreError) {
                    return try lookup.engine.blobs.read(blob, offset: offset, length: wanted)
                } catch {
                    // The job may have been removed since.
                    _ = try lookup.job(id)
                    throw ProtocolError(.storage, "The result of job \(id) cannot be read: \(error.message)")
                }
            }
        }
        answer(call, part, at: offset)
    }

    /// The bytes of a requested piece for which the answer has room.
    func resultPiece(_ call: Call, _ length: Int?) throws(ProtocolError) -> Int {
        // Base64 turns three bytes into four.
        let piece = min(length ?? .max, Self.piece, max(0, call.room - 128) / 4 * 3)
        guard piece > 0 || length == 0 else { throw Batch.full }
        return piece
    }

    func answer(_ call: Call, _ part: ResultPart, at offset: Int) {
        call.succeed([
            "data": .string(Base64.encode(part.bytes)), "offset": JSON(offset), "size": JSON(part.size),
            "eof": .bool(offset >= part.size - part.bytes.count),
        ])
    }
}
