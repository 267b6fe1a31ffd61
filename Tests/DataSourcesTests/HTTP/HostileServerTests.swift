import DeferredKit
import JobModel
import NIOCore
import NIOEmbedded
import Synchronization
import Testing
import TestOrigin

@testable import DataSources

/// What servers may send that is no proper answer, and what becomes of it.
@Suite struct HostileServerTests {
    private static let head = "HTTP/1.1 200 OK\r\n"
    private static let chunked = head + "Transfer-Encoding: chunked\r\n\r\n"

    /// `{}`, compressed.
    private static let gzipOnce = Base64.decode("H4sIAAAAAAACA6uuBQBDv6ajAgAAAA==") ?? []
    private static let gzipTwice =
        Base64.decode("H4sIAAAAAAACA5Pv5mAAASbm1etYGZz3L1vMBOQBAGPkxh8WAAAA") ?? []

    /// What the server sends before it closes, and the kind of the failure; nil for a success. The files in
    /// `RealServers` hold less hostile answers.
    private static let answers: [(String, [OriginStep], JobError.Kind?)] = [
        ("nothing", [.close], .network),
        ("no HTTP", [.send("<html>no header</html>"), .close], .network),
        ("a body without an end", [.send(head + "\r\n"), .stream(200 << 20), .close], .tooLarge),
        ("a header without an end", [.send(head)] + flood("X-Fill: some text\r\n"), .tooLarge),
        ("a field without an end", [.send(head + "X-Fill: ")] + flood("x"), .tooLarge),
        ("a reason without an end", [.send("HTTP/1.1 200 ")] + flood("x"), .tooLarge),
        ("trailers without an end", [.send(chunked + "2\r\n{}\r\n0\r\n")] + flood("X-Fill: some text\r\n"), .tooLarge),
        ("a chunk extension without an end", [.send(chunked + "2;x=")] + flood("x"), .tooLarge),
        (
            "a chunk extension of 48 KiB",
            [.send(chunked + "2;x=" + String(repeating: "x", count: 48 << 10) + "\r\n{}\r\n0\r\n\r\n")], nil
        ),
        (
            "many informational answers",
            [
                .send(
                    String(repeating: "HTTP/1.1 103 Hints\r\nLink: <x>\r\n\r\n", count: 20_000) + head
                        + "Content-Length: 2\r\n\r\n{}")
            ], nil
        ),
        ("an informational answer and no other", [.send("HTTP/1.1 100 Continue\r\n\r\n"), .close], .network),
        ("HTTP/0.9 that looks like a status", [.send("HTTP/\r\n\r\n{}"), .close], .network),
        ("HTTP/1.0 without a length, reset", [.send("HTTP/1.0 200 OK\r\n\r\n{}"), .reset], .network),
        ("HTTP/1.0 without a length, cut early", [.send("HTTP/1.0 200 OK\r\n\r\n{"), .close], .parse),
        ("gzip twice, said once", coded("gzip", gzipTwice), .parse),
        ("gzip once, said twice", coded("gzip, gzip", gzipOnce), .network),
        ("gzip and what nobody knows", coded("x-none, gzip", gzipOnce), .parse),
        ("deflate that is gzip", coded("deflate", gzipOnce), nil),
        ("something before the status line", [.send("garbage\r\n" + head + "\r\n{}"), .close], .network),
        ("a NUL before the status line", [.send([0]), .send(head + "Content-Length: 2\r\n\r\n{}"), .close], .network),
        ("a 204 with a body", [.send("HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\n{}")], .parse),
        ("a 304 that was not asked for", [.send("HTTP/1.1 304 No\r\nContent-Length: 2\r\n\r\n{}")], .http),
        ("JSON too deep", [.send(head + "\r\n" + String(repeating: "[", count: 1_000_000)), .close], .parse),
        ("JSON that is not UTF-8", [.send(head + "\r\n"), .send([0x22, 0xC3, 0x28, 0x22]), .close], .parse),
        ("JSON cut off", [.send(head + "\r\n{\"a\": "), .close], .parse),
        ("a number without an end", [.send(head + "\r\n" + String(repeating: "9", count: 1_000_000)), .close], nil),
    ]

    /// Some MiB of `text`.
    private static func flood(_ text: String) -> [OriginStep] {
        Array(repeating: .send(String(repeating: text, count: (64 << 10) / text.utf8.count)), count: 50)
    }

    /// A body that is said to be in these codings.
    private static func coded(_ codings: String, _ body: [UInt8]) -> [OriginStep] {
        [.head("200 OK", [("Content-Encoding", codings), ("Content-Length", "\(body.count)")]), .send(body), .close]
    }

    @Test(arguments: answers.indices) func answer_isOneOfTheKinds(index: Int) async throws {
        let (name, steps, kind) = Self.answers[index]
        try await Workbench.run(against: { request, _ in
            request.path == "/good" ? [.head("200 OK", [("Content-Length", "2")]), .send("{}")] : steps
        }) { origin, bench in
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

    /// A few bytes can stand for very many, which are never decoded beyond what is kept of them.
    @Test(arguments: [true, false]) func rest_isNotDecoded_ofABodyThatIsDropped(isFailure: Bool) async throws {
        let zeros = try Compression.compressed(String(repeating: "0", count: 1 << 20), "gzip").dropLast(9)
        try await Workbench.run(against: { _, _ in Self.coded("gzip", Array(zeros)) }) { origin, bench in
            let url = origin.url("/x")
            let isLeft = try await bench.library.start(bench.context(1)) { (transfer) async throws(JobError) -> Bool in
                let request = OutgoingRequest(try transfer.rules.access.url(url), headers: [], coding: .decoded)
                let response = try await transfer.open(request)
                if isFailure { _ = await response.failure() } else { await response.discard() }
                // The end of the body is missing, as it would show if all of it had been decoded.
                return response.inflater.withLock { inflater in
                    inflater.flatMap { try? $0.finish() } != nil || inflater.flatMap { try? $0.next() } != nil
                }
            }.get()
            #expect(isLeft)
        }
    }

    @Test func errorBody_isGivenUp_whenItHoldsNothingForLong() async throws {
        let members = Array(repeating: try Compression.compressed("", "gzip"), count: 20_000).flatMap(\.self)
        let body = members + (try Compression.compressed("text", "gzip"))
        let head = OriginStep.head("404 No", [("Content-Encoding", "gzip"), ("Content-Length", "\(body.count)")])
        try await Workbench.run(against: { _, _ in [head, .send(body)] }) { origin, bench in
            let error = try await bench.failure(.source("url", origin.url("/x")))
            #expect(error.http?["status"] == 404 && error.http?["body"] == nil, "\(error)")
        }
    }

    /// Where a connection ends before its answer does.
    private static let cuts: [String] =
        ["H", "HTTP/1.1", "HTTP/1.1 2", "HTTP/1.1 200", "HTTP/1.1 200 OK\r", head, head + "Content-Le"]
        + ["", ":", ": ", ": 3", ": 3\r\n", ": 3\r\n\r"].map { head + "Content-Length\($0)" }
        + ["", "{", "{}"].map { head + "Content-Length: 3\r\n\r\n\($0)" }
        + [
            "", "3", "3\r", "3;x=", "3;x=\"", "3\r\n", "3\r\n{", "3\r\n{} ", "3\r\n{} \r", "3\r\n{} \r\n",
            "3\r\n{} \r\n0",
            "3\r\n{} \r\n0\r\n", "3\r\n{} \r\n0\r\n\r", "3\r\n{} \r\n0\r\nX-Sum: ", "3\r\n{} \r\n0\r\nX-Sum: 1\r\n",
        ].map { chunked + $0 }

    @Test(arguments: ["url", "json", "download"], [false, true])
    func answerThatIsCut_isNetwork_whereverThatIs(type: String, resetting: Bool) async throws {
        try await Workbench.run(against: { request, _ in
            let cut = Self.cuts[Int(request.path.dropFirst()) ?? 0]
            return [.send(cut), resetting ? .reset : .close]
        }) { origin, bench in
            for (number, cut) in Self.cuts.enumerated() {
                let members: [String: JSON] = type == "download" ? ["path": "x"] : [:]
                let source = JSON.source(type, origin.url("/\(number)"), members)
                do {
                    let result = try await bench.result(source, job: JobID(number + 1))
                    Issue.record("\(cut.debugDescription) gives \(result)")
                } catch let error as JobError {
                    #expect(
                        error.kind == .network && error.isRetryable, "\(cut.debugDescription): \(error.message)")
                }
                #expect(bench.names(below: bench.downloads) == [], "\(cut.debugDescription)")
            }
        }
    }

    @Test func handshake_isGivenUp_whenTheServerSaysNothing() async throws {
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(against: { _, _ in [] }, timers: clock) { origin, bench in
            let deferred = try bench.start(["type": "url", "url": .string("https://127.0.0.1:\(origin.port)/")])
            await clock.turn(by: .seconds(1)) { deferred.outcome == nil }
            let error = try await bench.failure(of: deferred)
            #expect(error.kind == .connect && error.isRetryable)
            #expect(error.message.contains("127.0.0.1:\(origin.port)"))
        }
    }

    @Test func proxy_isNamed_whenItDoesNotAnswer() async throws {
        let clock = NIOAsyncTestingEventLoop()
        try await ScriptedOrigin.run({ _, _ in [.hold] }) { proxy in
            try await Workbench.run(timers: clock) {
                $0.http.proxy = "http://127.0.0.1:\(proxy.port)"
            } _: { bench in
                let deferred = try bench.start(["type": "url", "url": "https://192.0.2.1/"])
                await clock.turn(by: .seconds(1)) { deferred.outcome == nil }
                let error = try await bench.failure(of: deferred)
                #expect(error.kind == .connect && error.isRetryable)
                #expect(error.message.contains("through the proxy 127.0.0.1:\(proxy.port)"), "\(error.message)")
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

    /// Swift takes minutes to compare text with so many characters to sort.
    private static let combining = "a" + String(repeating: "\u{301}\u{323}", count: 15_000)

    @Test(arguments: ["TEXT: x", "Connection: TEXT", "Location: /TEXT"])
    func header_isReadAsLatin1_whereItsCharactersCombineTooMuch(form: String) async throws {
        let field = form.replacing("TEXT", with: Self.combining)
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\(field)\r\n\r\n{}"
        try await Workbench.run(against: { _, _ in [.send(head), .close] }) { origin, bench in
            let result = try await bench.result(.source("url", origin.url("/x"), [:]))
            #expect(result["headers"].map { $0.utf8.count > field.utf8.count } == true)
            #expect(!String(decoding: result.utf8, as: UTF8.self).combinesTooMuch)
        }
    }

    @Test func longText_isNoFileName() { #expect(ServerName.cleaned(Self.combining) == nil) }

    @Test func allFields_areTold_inTheirOrder() async throws {
        let names = (0..<3_000).map { "f\($0)" }
        let fields = (names + names.reversed()).map { "\($0): x\r\n" }.joined()
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\(fields)\r\n{}"
        try await Workbench.run(against: { _, _ in [.send(head), .close] }) { origin, bench in
            let headers = try await bench.result(.source("url", origin.url("/x"), [:]))["headers"]?.object
            #expect(headers?.names == ["content-length"] + names)
            #expect(headers?.members.dropFirst().allSatisfy { $0.value == "x, x" } == true)
        }
    }
}
