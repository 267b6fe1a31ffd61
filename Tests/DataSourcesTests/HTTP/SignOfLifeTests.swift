import DataSources
import DeferredKit
import Foundation
import JobModel
import NIOCore
import NIOEmbedded
import Testing
import TestOrigin

/// What a server may send for ever without being taken for one that works, and what shows that it works.
@Suite struct SignOfLifeTests {
    private static let head = "HTTP/1.1 200 OK\r\n"
    private static let chunked = head + "Transfer-Encoding: chunked\r\n\r\n"
    private static let informational = String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 10)

    /// Bytes that begin an answer, those that follow bit by bit, and those that would make it whole.
    struct Answer: CustomTestStringConvertible {
        let testDescription: String
        let start: String
        let drops: [String]
        let rest: String

        init(_ name: String, _ start: String, _ drops: [String], _ rest: String) {
            (testDescription, self.start, self.drops, self.rest) = (name, start, drops, rest)
        }
    }

    private static let signs: [Answer] = [
        Answer("a body", head + "Content-Length: 6\r\n\r\n", ["a", "b", "c", "d"], "ef"),
        Answer("chunks", chunked, Array(repeating: "1\r\na\r\n", count: 4), "0\r\n\r\n"),
        Answer(
            "informational answers", "", Array(repeating: informational, count: 4),
            head + "Content-Length: 2\r\n\r\n{}"),
        Answer("a body until the connection closes", head + "Connection: close\r\n\r\n", ["a", "b", "c", "d"], "e"),
    ]

    private static let noSigns: [Answer] = [
        Answer(
            "a field of an informational answer", "HTTP/1.1 103 Hints\r\nLink: ", ["a", "b", "c", "d"],
            "\r\n\r\n" + head + "Content-Length: 2\r\n\r\n{}"),
        Answer("a status line", "", ["H", "T", "T", "P"], "/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"),
        Answer("a reason", "HTTP/1.1 200 ", ["a", "b", "c", "d"], "\r\nContent-Length: 2\r\n\r\n{}"),
        Answer("a field", head + "X-Drip: ", ["a", "b", "c", "d"], "\r\nContent-Length: 2\r\n\r\n{}"),
        Answer(
            "fields", head, Array(repeating: "X-Drip: a\r\n", count: 4), "Content-Length: 2\r\n\r\n{}"),
        Answer("the size of a chunk", chunked, ["0", "0", "0", "2"], "\r\n{}\r\n0\r\n\r\n"),
        Answer("the extension of a chunk", chunked + "2;x=", ["a", "b", "c", "d"], "\r\n{}\r\n0\r\n\r\n"),
        Answer("trailers", chunked + "2\r\n{}\r\n0\r\nX-Drip: ", ["a", "b", "c", "d"], "\r\n\r\n"),
    ]

    @Test(arguments: noSigns) func time_isUp_whateverComesButABody(of answer: Answer) async throws {
        try await drip(answer) { bench, deferred in
            // The last bytes come too late. Had any before been a sign of life, this would succeed.
            let error = try await bench.failure(of: deferred)
            #expect(error.kind == .timeout && error.isRetryable)
        }
    }

    /// Also shows that what is dripped here does come in while the time passes.
    @Test(arguments: signs) func time_goesOn_whileABodyComes(of answer: Answer) async throws {
        try await drip(answer) { _, deferred in
            let result = try await deferred.get()
            #expect(result["status"] == 200)
        }
    }

    @Test(arguments: ["url", "json", "download", "upload"]) func time_isThatOfTheSource(type: String) async throws {
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(against: { _, _ in [.hold] }, timers: clock) {
            // Longer than the clock is turned.
            $0.http.idleTimeout = 1e9
        } _: { origin, bench in
            try bench.write([1], to: bench.downloads + "/x")
            let path: [String: JSON] = type == "url" || type == "json" ? [:] : ["path": type == "upload" ? "x" : "y"]
            let deferred = try bench.start(
                .source(type, origin.url("/x"), path.merging(["idleTimeout": 5]) { $1 }))
            await origin.log.reaches(1)
            await clock.turn(by: .seconds(1)) { deferred.outcome == nil }
            #expect(try await bench.failure(of: deferred).kind == .timeout)
        }
    }

    /// Lets a source ask for `answer`, a fifth of the time that a server may be silent passing before each drop, and
    /// before the rest; so that all of it has passed by then.
    private func drip(
        _ answer: Answer, _ body: (Workbench, Deferred<JSON, any Error>) async throws -> Void
    ) async throws {
        let gates = (answer.drops + [answer.rest]).map { _ in OriginGate() }
        let (sent, teller) = AsyncStream.makeStream(of: Void.self)
        var steps: [OriginStep] = [.send(answer.start), .tell(teller)]
        for (gate, drop) in zip(gates, answer.drops + [answer.rest]) {
            steps += [.wait(gate), .send(drop), .tell(teller)]
        }
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(against: { [steps] _, _ in steps + [.close] }, timers: clock) {
            $0.http.idleTimeout = 50
        } _: { origin, bench in
            let deferred = try bench.start(["type": "url", "url": .string(origin.url("/x"))])
            var telling = sent.makeAsyncIterator()
            await telling.next()
            try await Self.clientHandles(origin)
            for gate in gates {
                #expect(deferred.outcome == nil)
                await clock.advanceTime(by: .seconds(10))
                gate.open()
                guard gate !== gates.last else { break }
                await telling.next()
                try await Self.clientHandles(origin)
            }
            try await body(bench, deferred)
        }
    }

    /// Waits until the client has read what `origin` has sent, and its event loop is done with it.
    private static func clientHandles(_ origin: ScriptedOrigin) async throws {
        while try isAnythingUnread(ofPort: origin.port) { await Task.yield() }
        try await Workbench.settle()
    }

    /// Whether bytes are on their way, in either direction, on a connection to `port` of loopback.
    private static func isAnythingUnread(ofPort port: Int) throws -> Bool {
        let address = "0100007F:" + String(format: "%04X", port)
        return try String(contentsOfFile: "/proc/self/net/tcp", encoding: .utf8).split(separator: "\n").contains {
            line in
            let words = line.split(separator: " ")
            // Addresses of both ends, the state (01: established), and the bytes in the queues for sending and
            // receiving.
            return words.count > 4 && (words[1] == address || words[2] == address) && words[3] == "01"
                && words[4] != "00000000:00000000"
        }
    }
}
