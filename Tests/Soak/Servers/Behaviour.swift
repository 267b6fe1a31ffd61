import NIOCore

/// The ways in which the servers of a soak answer.
enum Behaviour: String, CaseIterable {
    case document, file, cutFile, moved, large, store
    case endlessHeaders, endlessBody, drip, tooShort, tooLong, earlyClose, garbageChunks, hugeJSON, deepJSON, redirects
    case bomb, informational, century, silent

    /// Behaviours with correct answers, if not always at once.
    static let good: [Behaviour] = [.document, .file, .cutFile, .moved, .large, .store]
    static let hostile = allCases.filter { !good.contains($0) }

    enum Answer {
        case silence
        case whole(String)
        case bytes(ByteBuffer)
        /// The same piece for ever, with a pause in between.
        case endless(head: String, piece: String, pause: TimeAmount)
    }

    /// Whether a request's body is read before it is answered.
    var readsBody: Bool { self == .store }

    /// The answer to a request that asks for `range`, or for everything.
    func answer(for range: ClosedRange<Int>?) -> Answer {
        switch self {
        case .document: return Self.json(#"{"items":[1,2,{"name":"a"}],"next":null}"#)
        case .file: return .bytes(Self.file(range, cut: false))
        case .cutFile: return .bytes(Self.file(range, cut: (range?.lowerBound ?? 0) == 0))
        case .large: return .whole(Self.largeAnswer)
        case .store: return .whole("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
        case .moved: return .whole("HTTP/1.1 302 Found\r\nLocation: /document\r\nContent-Length: 0\r\n\r\n")
        case .endlessHeaders:
            return .endless(
                head: "HTTP/1.1 200 OK\r\n", piece: String(repeating: "X-Header: aaaaaaaaaaaaaaaa\r\n", count: 200),
                pause: .milliseconds(20))
        case .endlessBody:
            let piece = "8000\r\n" + String(repeating: "b", count: 0x8000) + "\r\n"
            return .endless(
                head: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", piece: piece, pause: .milliseconds(20))
        case .drip:
            return .endless(
                head: "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", piece: "x", pause: .milliseconds(50))
        case .tooShort: return .whole("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort")
        case .tooLong:
            return .whole("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + String(repeating: "l", count: 9999))
        case .earlyClose: return .whole("HTTP/1.1 200 OK\r\nContent-Le")
        case .garbageChunks: return .whole("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n-1\r\n\u{0}\r\n")
        case .hugeJSON: return Self.json("[" + String(repeating: "0,", count: 600_000) + "0]")
        case .deepJSON: return Self.json(String(repeating: "[", count: 200_000))
        case .redirects: return .whole("HTTP/1.1 302 Found\r\nLocation: /redirects\r\nContent-Length: 0\r\n\r\n")
        case .bomb: return .bytes(Self.inflatingBytes)
        case .informational:
            return .endless(head: "", piece: "HTTP/1.1 100 Continue\r\n\r\n", pause: .milliseconds(10))
        case .century:
            return .whole("HTTP/1.1 503 Busy\r\nRetry-After: 3153600000\r\nContent-Length: 0\r\n\r\n")
        case .silent: return .silence
        }
    }

    private static func json(_ text: String) -> Answer {
        .whole("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(text.utf8.count)\r\n\r\n\(text)")
    }

    static let content = ByteBuffer(bytes: (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 9) })

    /// Bytes of a text that is stored as a body, as it is too long to stand in a result.
    static let largeSize = 100_000
    private static let largeAnswer =
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: \(largeSize)\r\n\r\n"
        + String(repeating: "0123456789", count: largeSize / 10)

    /// The file, or a range of it; with `cut`, the connection ends in the middle.
    private static func file(_ range: ClosedRange<Int>?, cut: Bool) -> ByteBuffer {
        let size = content.readableBytes
        let range = range?.clamped(to: 0...size - 1)
        let (start, count) = (range?.lowerBound ?? 0, range?.count ?? size)
        let field = range.map { "Content-Range: bytes \($0.lowerBound)-\($0.upperBound)/\(size)\r\n" } ?? ""
        var answer = ByteBuffer(
            string:
                "HTTP/1.1 \(range == nil ? "200 OK" : "206 Partial Content")\r\nETag: \"1\"\r\nAccept-Ranges: bytes\r\n"
                + "\(field)Content-Length: \(count)\r\n\r\n")
        answer.writeImmutableBuffer(content.getSlice(at: start, length: cut ? count / 2 : count) ?? ByteBuffer())
        return answer
    }

    /// 16 MiB of zeros in 100 KB of deflate: a zero, then over and over the 258 bytes before, with the fixed codes.
    private static let inflatingBytes: ByteBuffer = {
        var bytes: [UInt8] = []
        var (bits, count) = (UInt32(0), UInt32(0))
        func write(_ value: UInt32, _ length: UInt32) {
            bits |= value << count
            count += length
            while count >= 8 {
                bytes.append(UInt8(truncatingIfNeeded: bits))
                bits >>= 8
                count -= 8
            }
        }
        write(0b011, 3)
        // Codes stand with their highest bit first: 00110000 is a zero, 11000101 00000 is 258 bytes from one byte
        // before.
        write(0b0000_1100, 8)
        for _ in 0..<65_000 { write(0b0_0000_1010_0011, 13) }
        write(0, 7 + 7)
        var answer = ByteBuffer(
            string: "HTTP/1.1 200 OK\r\nContent-Encoding: deflate\r\nContent-Type: application/json\r\n"
                + "Content-Length: \(bytes.count + 2)\r\n\r\n")
        answer.writeBytes([0x78, 0x9C] + bytes)
        return answer
    }()
}
