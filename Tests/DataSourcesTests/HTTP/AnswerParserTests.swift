import NIOCore
import Testing

@testable import DataSources

@Suite struct AnswerParserTests {
    private static func events(_ bytes: String, isHead: Bool = false) throws -> [AnswerParser.Event] {
        var parser = AnswerParser(limit: 1000, isHead: isHead)
        parser.append(ByteBuffer(string: bytes))
        var events: [AnswerParser.Event] = []
        while let event = try parser.next() { events.append(event) }
        return events
    }

    private static let length = "Content-Length: 2\r\n\r\n{}"
    private static let chunks = "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"

    /// Behind anything odd, a server and its client may disagree where a response ends.
    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\n" + length, true), ("HTTP/1.1 200 OK\r\n" + chunks, true),
        ("HTTP/1.1 204 No Content\r\n\r\n", true), ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", true),
        ("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n" + length, true), ("HTTP/1.0 200 OK\r\n" + length, false),
        ("HTTP/1.1 200 OK\r\nConnection: x, Close\r\n" + length, false),
        ("HTTP/1.1 200 OK\r\n" + length + "{}", false), ("HTTP/1.1 200 OK\r\n" + chunks + "\r\n", false),
        ("HTTP/1.1 200 OK\r\nX-A: a\r\n b\r\n" + length, false), ("HTTP/1.1 200 OK\r\nX-A : a\r\n" + length, false),
        ("HTTP/1.1 200 OK\r\nX A: a\r\n" + length, false),
        ("HTTP/1.1 200 OK\r\nX-A: a\rb\r\n" + length, false), ("HTTP/1.1 200 OK\nContent-Length: 2\n\n{}", false),
        ("HTTP/1.1 200 OK\r\n" + chunks.replacing("2\r\n", with: "2 \r\n"), false),
        ("HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" + length, false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n" + chunks, false),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n" + length, false),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" + chunks, false),
    ])
    func connection_isKept_onlyAfterPlainResponse(bytes: String, isKept: Bool) throws {
        guard case .end(isKept)? = try Self.events(bytes).last else {
            Issue.record("\(try Self.events(bytes))")
            return
        }
    }
}
