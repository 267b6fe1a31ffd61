import DataSources
import DeferredKit
import JobModel
import NIOCore
import NIOEmbedded
import Synchronization
import Testing
import TestOrigin

/// What servers may send that is no proper answer, and what becomes of it.
@Suite struct HostileServerTests {
    private static let head = "HTTP/1.1 200 OK\r\n"

    /// `{}`, compressed.
    private static let gzipOnce = Base64.decode("H4sIAAAAAAACA6uuBQBDv6ajAgAAAA==") ?? []
    private static let gzipTwice =
        Base64.decode("H4sIAAAAAAACA5Pv5mAAASbm1etYGZz3L1vMBOQBAGPkxh8WAAAA") ?? []

    /// What the server sends before it closes, and the kind of the failure; nil for a success.
    private static let answers: [(String, [OriginStep], JobError.Kind?)] = [
        ("nothing", [.close], .network),
        ("no HTTP", [.send("<html>no header</html>"), .close], .network),
        ("HTTP/1.0 without a length", [.send("HTTP/1.0 200 OK\r\n\r\n{}"), .close], nil),
        ("HTTP/3.7", [.send("HTTP/3.7 200 OK\r\nContent-Length: 2\r\n\r\n{}"), .close], .network),
        ("chunks that are none", [.send(head + "Transfer-Encoding: chunked\r\n\r\nZZ\r\n{}"), .close], .network),
        (
            "a chunk too large", [.send(head + "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n{}"), .close],
            .network
        ),
        ("a negative chunk", [.send(head + "Transfer-Encoding: chunked\r\n\r\n-2\r\n{}"), .close], .network),
        ("chunks without an end", [.send(head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"), .close], .network),
        ("a body without an end", [.send(head + "\r\n"), .stream(200 << 20), .close], .tooLarge),
        (
            "a header without an end",
            [.send(head)] + Array(repeating: .send("X-Fill: \(String(repeating: "x", count: 4000))\r\n"), count: 2000),
            .tooLarge
        ),
        (
            "a field without an end",
            [.send(head + "X-Fill: ")] + Array(repeating: .send(String(repeating: "x", count: 1 << 16)), count: 50),
            .tooLarge
        ),
        (
            "a reason without an end",
            [.send("HTTP/1.1 200 ")] + Array(repeating: .send(String(repeating: "x", count: 1 << 16)), count: 50) + [
                .close
            ], .network
        ),
        (
            "many informational answers",
            [
                .send(
                    String(repeating: "HTTP/1.1 103 Hints\r\nLink: <x>\r\n\r\n", count: 20_000) + head
                        + "Content-Length: 2\r\n\r\n{}")
            ], nil
        ),
        (
            "a length and chunks",
            [.send(head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"), .close],
            .network
        ),
        ("two lengths", [.send(head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"), .close], .network),
        ("more than its length", [.send(head + "Content-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n\r\nmore")], nil),
        (
            "gzip that is none", [.send(head + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"), .close],
            .network
        ),
        (
            "a coding nobody knows", [.send(head + "Content-Encoding: x-none\r\nContent-Length: 2\r\n\r\n{}"), .close],
            nil
        ),
        ("HTTP/0.9", [.send("{}"), .close], .network),
        ("HTTP/0.9 that looks like a status", [.send("HTTP/\r\n\r\n{}"), .close], .network),
        (
            "HTTP/1.0 cut before its length", [.send("HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n{}"), .close],
            .network
        ),
        ("HTTP/1.0 without a length, reset", [.send("HTTP/1.0 200 OK\r\n\r\n{}"), .reset], .network),
        ("HTTP/1.0 without a length, cut early", [.send("HTTP/1.0 200 OK\r\n\r\n{"), .close], .parse),
        (
            "trailers without an end",
            [.send(head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n")]
                + Array(repeating: .send("X-Fill: \(String(repeating: "x", count: 4000))\r\n"), count: 2000),
            .tooLarge
        ),
        (
            "a chunk extension without an end",
            [.send(head + "Transfer-Encoding: chunked\r\n\r\n2;x=")]
                + Array(repeating: .send(String(repeating: "x", count: 1 << 16)), count: 50) + [.close], .network
        ),
        ("an informational answer and no other", [.send("HTTP/1.1 100 Continue\r\n\r\n"), .close], .network),
        (
            "gzip twice, said once", coded("gzip", gzipTwice), .parse
        ),
        (
            "gzip once, said twice", coded("gzip, gzip", gzipOnce), nil
        ),
        (
            "gzip twice, said twice", coded("gzip, gzip", gzipTwice),
            .parse
        ),
        ("gzip and what nobody knows", coded("x-none, gzip", gzipOnce), .parse),
        ("deflate that is gzip", coded("deflate", gzipOnce), nil),
        ("JSON too deep", [.send(head + "\r\n" + String(repeating: "[", count: 1_000_000)), .close], .parse),
        ("JSON that is not UTF-8", [.send(head + "\r\n"), .send([0x22, 0xC3, 0x28, 0x22]), .close], .parse),
        ("JSON cut off", [.send(head + "\r\n{\"a\": "), .close], .parse),
        ("a number without an end", [.send(head + "\r\n" + String(repeating: "9", count: 1_000_000)), .close], nil),
    ]

    /// A body that is said to be in these codings.
    private static func coded(_ codings: String, _ body: [UInt8]) -> [OriginStep] {
        [.head("200 OK", [("Content-Encoding", codings), ("Content-Length", "\(body.count)")]), .send(body), .close]
    }

    @Test(arguments: answers.indices) func answer_isOneOfTheKinds(index: Int) async throws {
        let (name, steps, kind) = Self.answers[index]
        try await ScriptedOrigin.run({ request, _ in
            request.path == "/good" ? [.head("200 OK", [("Content-Length", "2")]), .send("{}")] : steps
        }) { origin in
            try await Workbench.run { bench in
                do {
                    _ = try await bench.result(["type": "json", "url": .string(origin.url("/x"))])
                    #expect(kind == nil, "\(name)")
                } catch let error as JobError {
                    #expect(error.kind == kind, "\(name): \(error.message)")
                }
                // The next one is none the worse for it.
                let good = try await bench.result(["type": "json", "url": .string(origin.url("/good"))])
                #expect(good == [:])
            }
        }
    }

    @Test func informationalAnswers_areNoSignOfLife() async throws {
        let flood = String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 1000)
        try await ScriptedOrigin.run({ _, _ in [.send(flood), .hold] }) { origin in
            let clock = NIOAsyncTestingEventLoop()
            try await Workbench.run(timers: clock) { bench in
                let error = try await bench.failureAsTimePasses(origin, clock)
                #expect(error.kind == .timeout)
            }
        }
    }

    /// What comes a byte at a time, without an end and without a byte of the body: all of it has to be there in time.
    @Test(arguments: [
        "", head, head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n",
        head + "Transfer-Encoding: chunked\r\n\r\n2;x=", "HTTP/1.1 103 Hints\r\n",
    ])
    func drippedFields_areNoSignOfLife(behind start: String) async throws {
        let drip =
            (start.isEmpty ? Self.head : start.hasSuffix("=") ? "" : "X-Drip: ") + String(repeating: "x", count: 60_000)
        let steps = Array(drip.utf8).flatMap { [.send([$0]), .pause(.milliseconds(2))] as [OriginStep] }
        try await ScriptedOrigin.run({ _, _ in [.send(start)] + steps + [.hold] }) { origin in
            let clock = NIOAsyncTestingEventLoop()
            try await Workbench.run(timers: clock) { bench in
                let error = try await bench.failureAsTimePasses(origin, clock)
                #expect(error.kind == .timeout && error.isRetryable)
                await origin.clientLeaves()
            }
        }
    }

    @Test func handshake_isGivenUp_whenTheServerSaysNothing() async throws {
        try await ScriptedOrigin.run({ _, _ in [] }) { origin in
            let clock = NIOAsyncTestingEventLoop()
            try await Workbench.run(timers: clock) { bench in
                let deferred = try bench.start(["type": "url", "url": .string("https://127.0.0.1:\(origin.port)/")])
                await clock.turn(by: .seconds(1)) { deferred.outcome == nil }
                let error = try await bench.failure(of: deferred)
                #expect([.tls, .connect].contains(error.kind))
                #expect(error.message.contains("127.0.0.1:\(origin.port)"))
            }
        }
    }

    @Test func request_isSentAgain_whenIdleConnectionWasClosed() async throws {
        let state = Mutex((origin: ScriptedOrigin?.none, hasClosed: false))
        let script: ScriptedOrigin.Script = { _, _ in
            state.withLock { state in
                // More requests than connections: one of them came on a connection that was there.
                let isReused = state.origin.map { $0.log.count() > $0.connectionCount } ?? false
                guard isReused, !state.hasClosed else {
                    return [.head("200 OK", [("Content-Length", "2")]), .send("ok")]
                }
                state.hasClosed = true
                return [.close]
            }
        }
        try await ScriptedOrigin.run(script) { origin in
            state.withLock { $0.origin = origin }
            try await Workbench.run { bench in
                // More than there are event loops, each with its own connections.
                for _ in 0..<256 {
                    let result = try await bench.result(["type": "url", "url": .string(origin.url("/x"))])
                    #expect(result["body"] == "ok")
                    if state.withLock({ $0.hasClosed }) { break }
                }
                #expect(state.withLock { $0.hasClosed })
            }
        }
    }
}
