import JobModel
package import NIOCore

/// The status line and the fields of a response.
package struct ResponseHead: Sendable {
    package var status: Int
    /// The server's words about the status, without anything that cannot be printed.
    package var reason = ""
    package var headers = HTTPFields()

    /// How long the server keeps an idle connection: `Keep-Alive: timeout=5`.
    var keepAlive: TimeAmount? {
        headers.list("Keep-Alive").lazy.compactMap { option in
            option.hasPrefix("timeout=") ? Decimal.number(option.dropFirst(8)) : nil
        }.first.map { .seconds(min($0, 3600)) }
    }
}

/// Reads one response to one request: bytes in, events out.
///
/// It accepts what curl accepts. What is odd about the framing cannot lead to another response being misread, as the
/// connection does not outlive the response then.
package struct AnswerParser {
    package enum Event {
        /// The server works on the request; its response follows.
        case informational
        case head(ResponseHead)
        /// A part of the body, which shares the memory of the read.
        case body(ByteBuffer)
        /// The response is complete; `isKept` says whether another request may follow.
        case end(isKept: Bool)
    }

    package enum Failure: Error, Equatable {
        /// The answer begins with this line.
        case notHTTP(String)
        /// What is wrong, as a clause, although the server meant it.
        case unsupported(String)
        /// What is wrong, as a clause.
        case malformed(String)
        case longHeader
    }

    private enum State {
        case status, fields, chunkSize, chunkEnd, trailers, untilClose, complete, ended
        /// The rest of a body with a length, or of a chunk.
        case body(Int64), chunk(Int64)
    }

    /// The most bytes of a header, of the trailers, and of the line with a chunk's size.
    private let limit: Int
    private let isHead: Bool
    private var state = State.status
    private var buffer = ByteBuffer()
    private var line: [UInt8] = []
    /// The bytes that count towards the limit.
    private var size = 0
    private var head = ResponseHead(status: 0)
    private var isOld = false
    private var isOdd = false
    private var isKept = false

    /// Reads the response to HEAD if `isHead`, which never has a body.
    package init(limit: Int, isHead: Bool) {
        self.limit = limit
        self.isHead = isHead
    }

    /// Adds bytes, after ``next()`` has used up all others.
    package mutating func append(_ bytes: ByteBuffer) { buffer = bytes }

    /// Whether the end of the connection completes the response.
    package var endsWithConnection: Bool {
        if case .untilClose = state { true } else { false }
    }

    /// The next event; nil if more bytes are needed.
    package mutating func next() throws(Failure) -> Event? {
        while true {
            switch state {
            case .status:
                let found = try takeLine()
                guard "HTTP/".utf8.starts(with: (found ?? line).prefix(5)) else { throw Self.notHTTP(found ?? line) }
                guard let found else { return nil }
                try readStatus(found)
            case .fields:
                guard let found = try takeLine() else { return nil }
                if found.isEmpty { return try endHead() }
                try readField(found)
            case .body(let rest), .chunk(let rest):
                guard let block = buffer.readSlice(length: Int(min(rest, Int64(buffer.readableBytes)))),
                    block.readableBytes > 0
                else { return nil }
                let rest = rest - Int64(block.readableBytes)
                if case .body = state {
                    state = rest == 0 ? .complete : .body(rest)
                } else {
                    state = rest == 0 ? .chunkEnd : .chunk(rest)
                }
                return .body(block)
            case .chunkSize:
                // The rest of the line is an extension.
                guard let found = try takeLine(keeping: 256) else { return nil }
                let count = try chunkSize(found)
                state = count == 0 ? .trailers : .chunk(count)
            case .chunkEnd:
                guard let found = try takeLine(keeping: 2) else { return nil }
                guard found.isEmpty else { throw .malformed("a chunk is longer than its size") }
                (state, size) = (.chunkSize, 0)
            case .trailers:
                guard let found = try takeLine(keeping: 2) else { return nil }
                if found.isEmpty { state = .complete }
            case .untilClose:
                guard let block = buffer.readSlice(length: buffer.readableBytes), block.readableBytes > 0 else {
                    return nil
                }
                return .body(block)
            case .complete:
                state = .ended
                // Bytes behind the response are not the answer to a later request.
                return .end(isKept: isKept && !isOdd && buffer.readableBytes == 0)
            case .ended: return nil
            }
        }
    }

    /// Takes a line without its end, of which only the first `kept` bytes are needed; nil if it is not complete.
    private mutating func takeLine(keeping kept: Int = .max) throws(Failure) -> [UInt8]? {
        let bytes = buffer.readableBytesView
        let end = bytes.firstIndex(of: 0x0A)
        let piece = bytes[..<(end ?? bytes.endIndex)]
        size += piece.count + (end == nil ? 0 : 1)
        guard size <= limit else { throw .longHeader }
        line += piece.prefix(kept - min(kept, line.count))
        guard end != nil else {
            buffer.moveReaderIndex(forwardBy: piece.count)
            return nil
        }
        buffer.moveReaderIndex(forwardBy: piece.count + 1)
        defer { line = [] }
        if line.last == 0x0D { line.removeLast() } else { isOdd = true }
        return line
    }

    // MARK: - Head

    private mutating func readStatus(_ line: [UInt8]) throws(Failure) {
        let words = line.dropFirst(9).drop { $0 == 0x20 }
        guard line.starts(with: "HTTP/1.".utf8), line.count > 8, (0x30...0x31).contains(line[7]), line[8] == 0x20,
            let status = Decimal.number(String(decoding: words.prefix(3), as: UTF8.self)), words.count >= 3,
            words.dropFirst(3).first.map({ !(0x30...0x39).contains($0) }) ?? true
        else { throw Self.notHTTP(line) }
        guard status >= 100 else { throw .malformed("its status is \(status)") }
        guard status != 101 else { throw .malformed("it switches to another protocol") }
        let reason = words.dropFirst(3).filter { (0x20...0x7E).contains($0) }.prefix(128)
        head = ResponseHead(
            status: Int(status), reason: String(decoding: reason.drop { $0 == 0x20 }, as: UTF8.self))
        (isOld, size, state) = (line[7] == 0x30, 0, .fields)
    }

    private static func notHTTP(_ line: [UInt8]) -> Failure {
        let shown = line.prefix(80).map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }
        return .notHTTP(String(decoding: shown, as: UTF8.self))
    }

    private mutating func readField(_ line: [UInt8]) throws(Failure) {
        guard !line.contains(0) else { throw .malformed("a header field contains a NUL character") }
        if Self.isBlank(line[0]), head.headers.count > 0 {
            isOdd = true
            return head.headers.extendLast([0x20] + Self.trimmed(line[...]))
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else {
            throw .malformed("a header field has no colon")
        }
        let name = Self.trimmed(line[..<colon])
        let text = HTTPFields.text(name)
        let hasControl = line.contains { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }
        if name.count < colon || !HeaderField.isToken(text) || hasControl { isOdd = true }
        head.headers.add(name: text, bytes: Array(Self.trimmed(line[(colon + 1)...])))
    }

    private mutating func endHead() throws(Failure) -> Event {
        size = 0
        guard head.status >= 200 else {
            state = .status
            return .informational
        }
        let fields = head.headers
        let (codings, lengths) = (fields.list("Transfer-Encoding"), fields.list("Content-Length"))
        let options = fields.list("Connection")
        isKept = isOld ? options.contains("keep-alive") : !options.contains("close")
        if isHead || head.status == 204 || head.status == 304 {
            // A server that says otherwise may send a body.
            if head.status == 204, lengths.first ?? "0" != "0" || !codings.isEmpty { isOdd = true }
            state = .complete
        } else if !codings.isEmpty, codings != ["identity"] {
            guard codings == ["chunked"] else {
                throw .unsupported("its Transfer-Encoding is \(codings.joined(separator: ", ").echoed)")
            }
            isKept = isKept && !isOld && !fields.contains(name: "Content-Length")
            state = .chunkSize
        } else if fields.contains(name: "Content-Length") {
            guard Set(lengths).count <= 1 else { throw .unsupported("it has several lengths") }
            guard let length = lengths.first.flatMap({ Decimal.number($0) }) else {
                throw .malformed("its Content-Length is not a number of bytes")
            }
            isKept = isKept && codings.isEmpty && lengths.count == 1
            state = length == 0 ? .complete : .body(length)
        } else {
            isKept = false
            state = .untilClose
        }
        return .head(head)
    }

    // MARK: - Bytes

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let bytes = bytes.drop(while: isBlank)
        return bytes[..<(bytes.lastIndex { !isBlank($0) }.map { $0 + 1 } ?? bytes.startIndex)]
    }

    private mutating func chunkSize(_ line: [UInt8]) throws(Failure) -> Int64 {
        let trimmed = Self.trimmed(line[...])
        if trimmed.count < line.count { isOdd = true }
        let digits = trimmed.prefix { (0x30...0x39).contains($0) || (0x61...0x66).contains($0 | 0x20) }
        let rest = Self.trimmed(trimmed[digits.endIndex...])
        guard let size = Int64(String(decoding: digits, as: UTF8.self), radix: 16),
            rest.isEmpty || rest.first == UInt8(ascii: ";")
        else { throw .malformed("the size of a chunk is not a number") }
        return size
    }
}
