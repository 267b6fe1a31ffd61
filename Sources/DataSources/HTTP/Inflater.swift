import CZlib
import JobModel
import NIOCore
import NIOHTTP1

/// Decodes a compressed body, piece by piece as its reader asks for it.
///
/// A handler in the connection's pipeline would decode everything from one read of the socket at once, up to a thousand
/// times as many bytes, without regard to room.
final class Inflater {
    enum Failure: Error {
        case damaged(String)
        case truncated
        case surplus
        case tooLarge
    }

    /// The most bytes decoded at a time.
    private static let piece = 64 << 10
    /// zlib's largest window, plus 32 to accept both gzip and zlib's own format.
    private static let windowBits: Int32 = 15 + 32

    private let stream: UnsafeMutablePointer<z_stream>
    private let limit: Int
    /// The blocks to decode.
    private var blocks: [ByteBuffer] = []
    /// The number of compressed bytes so far.
    private var received = 0
    /// Whether the last piece filled its buffer, so that more output may exist without more input.
    private var mayHaveMore = false
    private var isEnded = false

    /// Whether a body with these fields is decoded; of several codings, only the outermost is.
    static func decodes(_ headers: HTTPHeaders) -> Bool {
        let coding = headers[canonicalForm: "Content-Encoding"].first?.lowercased()
        return coding == "gzip" || coding == "deflate"
    }

    /// Accepts at most `limit` compressed bytes.
    init(limit: Int) throws(Failure) {
        self.limit = limit
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        guard
            inflateInit2_(stream, Self.windowBits, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
        else { throw .damaged("zlib could not begin") }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    /// Adds received blocks.
    func add(_ blocks: [ByteBuffer]) throws(Failure) {
        for block in blocks where block.readableBytes > 0 {
            received = received.saturatingAdding(block.readableBytes)
            self.blocks.append(block)
        }
        guard received <= limit else { throw .tooLarge }
    }

    /// The next bytes; nil if more of the body is needed.
    func next() throws(Failure) -> ByteBuffer? {
        while mayHaveMore || !blocks.isEmpty {
            guard !isEnded else { throw .surplus }
            var output = ByteBufferAllocator().buffer(capacity: Self.piece)
            var status = Z_OK
            output.writeWithUnsafeMutableBytes(minimumWritableBytes: Self.piece) { room in
                status = inflate(into: room)
                return min(room.count, Self.piece) - Int(stream.pointee.avail_out)
            }
            switch status {
            case Z_OK: mayHaveMore = stream.pointee.avail_out == 0
            case Z_STREAM_END: (isEnded, mayHaveMore) = (true, false)
            // All input was already decoded.
            case Z_BUF_ERROR where blocks.isEmpty: mayHaveMore = false
            default: throw .damaged(stream.pointee.msg.map { String(cString: $0) } ?? "zlib's error \(status)")
            }
            if output.readableBytes > 0 { return output }
        }
        return nil
    }

    /// Decodes some of the first block.
    private func inflate(into room: UnsafeMutableRawBufferPointer) -> Int32 {
        stream.pointee.next_out = room.baseAddress?.assumingMemoryBound(to: UInt8.self)
        stream.pointee.avail_out = UInt32(min(room.count, Self.piece))
        guard !blocks.isEmpty else { return CZlib.inflate(stream, Z_NO_FLUSH) }
        // A block has far less than 4 GiB.
        let status = blocks[0].readWithUnsafeMutableReadableBytes { input in
            stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.avail_in = UInt32(input.count)
            let status = CZlib.inflate(stream, Z_NO_FLUSH)
            let read = input.count - Int(stream.pointee.avail_in)
            (stream.pointee.next_in, stream.pointee.avail_in) = (nil, 0)
            return (read, status)
        }
        if blocks[0].readableBytes == 0 { blocks.removeFirst() }
        return status
    }

    /// Ends the body. An empty one is valid, as in answers to HEAD.
    func finish() throws(Failure) {
        guard isEnded || received == 0 else { throw .truncated }
    }
}
