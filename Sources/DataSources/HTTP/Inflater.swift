import CZlib
import JobModel
import NIOCore
import NIOHTTP1

/// Decodes a compressed body, piece by piece as its reader asks for it.
///
/// Not in the connection's pipeline: a byte can stand for a thousand, and there all that one read of the socket brings would
/// be decoded at once, whether there is room for it or not.
final class Inflater {
    enum Failure: Error {
        case damaged(String)
        case truncated
        case surplus
        case tooLarge
    }

    /// The most bytes that are decoded at a time.
    private static let piece = 64 << 10
    /// zlib's largest window, and 32 for: gzip or zlib's own format, whichever the first bytes say.
    private static let windowBits: Int32 = 15 + 32

    private let stream: UnsafeMutablePointer<z_stream>
    private let limit: Int
    /// What is still to be decoded.
    private var blocks: [ByteBuffer] = []
    /// Compressed bytes so far.
    private var received = 0
    /// Whether the last piece took all the room there was, so that there may be more without another byte.
    private var mayHaveMore = false
    private var isEnded = false

    /// Whether a body with these fields is decoded. One that others are around as well comes out as the outermost left it.
    static func decodes(_ headers: HTTPHeaders) -> Bool {
        let coding = headers[canonicalForm: "Content-Encoding"].first?.lowercased()
        return coding == "gzip" || coding == "deflate"
    }

    /// Takes `limit` compressed bytes at most.
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

    /// Takes in what has come of the body.
    func add(_ blocks: [ByteBuffer]) throws(Failure) {
        for block in blocks where block.readableBytes > 0 {
            received = received.saturatingAdding(block.readableBytes)
            self.blocks.append(block)
        }
        guard received <= limit else { throw .tooLarge }
    }

    /// The next bytes; nil where more of the body has to come first.
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
            // There was nothing more.
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
        // A read of the socket brings far less than 4 GiB.
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

    /// The body has ended. One without a byte is none, as the answer to HEAD has.
    func finish() throws(Failure) {
        guard isEnded || received == 0 else { throw .truncated }
    }
}
