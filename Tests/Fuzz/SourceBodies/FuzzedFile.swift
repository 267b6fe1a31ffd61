import NIOCore
import Synchronization

/// A file in three versions, and a server that cuts, stretches, shifts, withholds and mislabels it according to the
/// bytes of an input.
///
/// Unless it is told to lie, it never gives bytes of one version under the validator of another. So in any case, the
/// downloaded file is one version as far as the server said.
final class FuzzedFile: Sendable {
    /// Statements of the answers about a file that a client may have used.
    struct Said: Hashable {
        let version: Int
        let size: Int
    }

    private struct State {
        /// The number of requests by the start of their range; nil for the whole file.
        var requests: [Int?: Int] = [:]
        var count = 0
        var said: Set<Said> = []
    }

    /// The parts of one answer. Missing bytes of an input are 0, the honest answer.
    private struct Answer {
        static let size = 6

        let bytes: ArraySlice<UInt8>

        subscript(_ index: Int) -> Int { index < bytes.count ? Int(bytes[bytes.startIndex + index]) : 0 }

        /// Whether a bit of the last byte is set.
        func has(_ flag: Flag) -> Bool { self[5] & flag.rawValue != 0 }
    }

    private enum Flag: Int {
        case withoutLastChunk = 2
        case withOtherTagToo = 4
        /// Gives bytes of a version other than the stated one, if it may lie.
        case lies = 8
    }

    /// Two of one size, so that only the validator tells them apart.
    private static let sizes = [200_000, 200_000, 160_000]
    private static let versions = sizes.indices.map { version in
        var state = UInt64(version + 1) &* 0x9E37_79B9_7F4A_7C15
        return (0..<202_000).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 33)
        }
    }
    /// Requests after which it answers nothing any more, so that an input ends.
    private static let mostRequests = 64

    private let answers: [Answer]
    private let hasDates: Bool
    private let mayLie: Bool
    private let state = Mutex(State())

    /// The first of `bytes` says how versions are told apart; the others are answers of six bytes each.
    init(_ bytes: ArraySlice<UInt8>, mayLie: Bool) {
        hasDates = bytes.first.map { $0 % 4 == 3 } ?? false
        let rest = bytes.dropFirst()
        let starts = stride(from: rest.startIndex, to: rest.endIndex, by: Answer.size)
        let answers = starts.map { Answer(bytes: rest[$0..<min($0 + Answer.size, rest.endIndex)]) }
        self.answers = answers.isEmpty ? [Answer(bytes: [])] : answers
        self.mayLie = mayLie
    }

    /// The first version.
    static var expected: ArraySlice<UInt8> { versions[0][..<sizes[0]] }

    /// The version that `file` equals, if the server attributed exactly these bytes to it.
    func version(of file: [UInt8]) -> Int? {
        let said = state.withLock(\.said)
        return said.first { $0.size == file.count && Self.versions[$0.version].starts(with: file) }?.version
    }

    /// The field that tells a version from others.
    func validator(of version: Int) -> String {
        hasDates ? "Mon, 0\(version + 1) Jan 2024 00:00:00 GMT" : "\"\(version)\""
    }

    /// The answer to a request.
    func answer(_ request: String) -> ByteBuffer {
        let asked = Self.range(in: request)
        let start = asked?.lowerBound
        let answer = state.withLock { state -> Answer? in
            state.count += 1
            guard state.count <= Self.mostRequests else { return nil }
            let earlier = state.requests[start, default: 0]
            state.requests[start] = earlier + 1
            // The requested bytes identify a request better than the order of arrival, which is random.
            let index = start.map { 1 + $0 / (64 << 10) + 4 * earlier } ?? earlier
            return answers[index % answers.count]
        }
        guard let answer else { return ByteBuffer() }
        switch answer[0] % 16 {
        case 10: return file(answer, nil)
        case 11: return Self.refusal("416 Range Not Satisfiable")
        case 12: return Self.refusal("404 Not Found")
        case 13: return Self.refusal("503 Service Unavailable")
        case 14: return Self.refusal("307 Temporary Redirect\r\nLocation: /y")
        case 15: return ByteBuffer()
        default: return file(answer, asked)
        }
    }

    private static func refusal(_ status: String) -> ByteBuffer {
        ByteBuffer(string: "HTTP/1.1 \(status)\r\nContent-Length: 0\r\n\r\n")
    }

    /// `bytes=5-9` or `bytes=5-` in a request.
    private static func range(in request: String) -> Range<Int>? {
        guard let field = request.split(separator: "\r\n").first(where: { $0.lowercased().hasPrefix("range: bytes=") })
        else { return nil }
        let ends = field.dropFirst("range: bytes=".count).split(separator: "-").compactMap { Int($0) }
        guard let start = ends.first else { return nil }
        let end = ends.count > 1 ? ends[1] + 1 : .max
        return start < end ? start..<end : nil
    }

    /// The requested bytes of the file, or all.
    private func file(_ answer: Answer, _ asked: Range<Int>?) -> ByteBuffer {
        let version = [0, 0, 0, 0, 0, 0, 1, 2][answer[1] % 8]
        var total = Self.sizes[version]
        var (start, end) = (asked?.lowerBound ?? 0, min(asked?.upperBound ?? total, total))
        switch answer[2] % 8 {
        case 4: start += asked == nil ? 0 : 1
        case 5: end = start + (end - start) / 2
        case 6: end = min(end + 10_000, total)
        case 7:
            total += 1
            if asked == nil { end = total }
        default: break
        }
        guard start < end else { return Self.refusal("416 Range Not Satisfiable") }

        // How the body is framed, and how much of it comes.
        let framing = answer[4] % 8
        let length: Int? =
            switch framing {
            case 4, 5: nil
            case 6: end - start + 1
            case 7: end - start - 1
            default: end - start
            }
        let whole = length ?? end - start
        var count = whole
        if (128..<250).contains(answer[3]) { count = whole * (answer[3] - 128) / 122 }
        if answer[3] == 250 { count = 0 }
        let extra = answer[3] > 250 ? 1000 : 0
        // Bytes beyond the end of a range do not belong to the file. The end of a whole file is known only from its
        // length.
        let own = asked == nil ? count + (length == nil ? extra : 0) : min(count, end - start)
        let source = Self.versions[mayLie && answer.has(.lies) ? (version + 1) % 3 : version]
        var body = ByteBuffer(bytes: source[min(start, source.count)..<min(start + own, source.count)])
        body.writeRepeatingByte(0xEE, count: count + extra - own)
        remember(asked == nil ? length ?? body.readableBytes : total, of: version)

        var head = asked == nil ? "HTTP/1.1 200 OK\r\n" : "HTTP/1.1 206 Partial Content\r\n"
        if asked != nil { head += "Content-Range: bytes \(start)-\(end - 1)/\(total)\r\n" }
        head += validatorField(version, answer)
        if let length { head += "Content-Length: \(length)\r\n" }
        if framing == 4 {
            head += "Transfer-Encoding: chunked\r\n\r\n\(String(body.readableBytes, radix: 16))\r\n"
            body.writeString("\r\n")
            if !answer.has(.withoutLastChunk) { body.writeString("0\r\n\r\n") }
        } else {
            head += "\r\n"
        }
        var text = ByteBuffer(string: head)
        text.writeImmutableBuffer(body)
        return text
    }

    private func validatorField(_ version: Int, _ answer: Answer) -> String {
        guard !hasDates else { return "Last-Modified: \(validator(of: version))\r\n" }
        let other = answer.has(.withOtherTagToo) ? "ETag: \(validator(of: (version + 1) % 3))\r\n" : ""
        switch answer[1] / 8 % 8 {
        case 6: return ""
        case 7: return "ETag: W/\(validator(of: version))\r\n"
        default: return "ETag: \(validator(of: version))\r\n\(other)"
        }
    }

    private func remember(_ size: Int, of version: Int) {
        _ = state.withLock { $0.said.insert(Said(version: version, size: size)) }
    }
}
