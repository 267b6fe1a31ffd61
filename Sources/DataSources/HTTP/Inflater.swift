import CZlib
import JobModel
package import NIOCore

/// Decodes a compressed body, piece by piece as its reader asks for it.
///
/// A handler in the connection's pipeline would decode everything from one read of the socket at once, up to a thousand
/// times as many bytes, without regard to room.
package final class Inflater {
    package enum Failure: Error, CustomStringConvertible {
        case damaged(String)
        case truncated, surplus, tooLarge

        package var description: String {
            switch self {
            case .damaged(let reason): reason
            case .truncated: "it ends too early"
            case .surplus: "other bytes follow its end"
            case .tooLarge: "it is too large"
            }
        }
    }

    private static let piece = 64 << 10
    /// zlib's largest window, plus 32 to accept both gzip and zlib's own format.
    private static let windowBits: Int32 = 15 + 32
    private static let mostCodings = 4

    /// Decodes the output, if it is still encoded.
    private let inner: Inflater?
    private let stream: UnsafeMutablePointer<z_stream>
    private let limit: Int
    private var blocks: [ByteBuffer] = []
    /// The number of compressed bytes so far.
    private var received = 0
    /// Whether the last piece filled its buffer, so that more output may exist without more input.
    private var mayHaveMore = false
    private var isEnded = false
    /// Whether the format is still to be recognised: some servers send deflate without zlib's wrapper.
    private var isOpen: Bool

    /// The codings of a body, the outermost first.
    package static func codings(_ headers: HTTPFields) -> [String] {
        headers.list("Content-Encoding").reversed().filter { $0 != "identity" && $0 != "none" }
            .map { $0 == "x-gzip" ? "gzip" : $0 }
    }

    package static func decodes(_ codings: [String]) -> Bool {
        codings.count <= mostCodings && codings.allSatisfy { $0 == "gzip" || $0 == "deflate" }
    }

    /// Decodes at least one coding, and accepts at most `limit` compressed bytes.
    package init(_ codings: [String], limit: Int) throws(Failure) {
        self.limit = limit
        isOpen = codings.first == "deflate"
        inner = codings.count > 1 ? try Inflater(Array(codings.dropFirst()), limit: limit) : nil
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

    package func add(_ blocks: [ByteBuffer]) throws(Failure) {
        for block in blocks where block.readableBytes > 0 {
            received = received.saturatingAdding(block.readableBytes)
            self.blocks.append(block)
        }
        guard received <= limit else { throw .tooLarge }
    }

    /// Whether there is more to decode without more of the body.
    package var isBusy: Bool { mayHaveMore || !blocks.isEmpty || inner?.isBusy ?? false }

    /// Decodes one piece or member, which may be empty, so that its caller can give way; nil if more of the body is needed.
    package func next() throws(Failure) -> ByteBuffer? {
        guard let inner else { return try decode() }
        if let block = try inner.next() { return block }
        guard let block = try decode() else { return nil }
        try inner.add([block])
        return ByteBuffer()
    }

    private func decode() throws(Failure) -> ByteBuffer? {
        guard mayHaveMore || !blocks.isEmpty else { return nil }
        if isOpen {
            guard received >= 2 else { return nil }
            recognise()
        }
        if isEnded {
            guard try beginMember() else { return nil }
        }
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
        return output
    }

    /// Recognises deflate without a wrapper by its first two bytes.
    private func recognise() {
        let bytes = blocks.flatMap { $0.readableBytesView.prefix(2) }.prefix(2)
        let (first, second) = (Int(bytes[0]), Int(bytes[1]))
        let isWrapped = first & 0x0F == 8 && first >> 4 <= 7 && (first << 8 | second) % 31 == 0
        if !isWrapped, (first, second) != (0x1F, 0x8B) { inflateReset2(stream, -15) }
        isOpen = false
    }

    /// Begins another member of a gzip file, behind padding with zeros; false if there is none.
    private func beginMember() throws(Failure) -> Bool {
        while !blocks.isEmpty {
            let bytes = blocks[0].readableBytesView
            if let start = bytes.firstIndex(where: { $0 != 0 }) {
                guard bytes[start] == 0x1F else { throw .surplus }
                blocks[0].moveReaderIndex(to: start)
                inflateReset(stream)
                isEnded = false
                return true
            }
            blocks.removeFirst()
        }
        return false
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
    package func finish() throws(Failure) {
        guard isEnded || received == 0 else { throw .truncated }
        try inner?.finish()
    }
}
