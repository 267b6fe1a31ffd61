import DeferredKit
import JobModel
import NIOCore
import NIOEmbedded
import Testing
import TestOrigin

@testable import DataSources

@Suite struct HTTPSemanticsTests {
    static let plain = String(repeating: "compressed text ", count: 1000)

    @Test(arguments: ["url", "download"]) func connection_isUsedAgain(type: String) async throws {
        // By a clock that stands still, an idle connection is kept however slow the machine is.
        try await Workbench.run(
            against: { request, _ in Misbehaviour.correct([1, 2, 3], to: request) }, timers: NIOAsyncTestingEventLoop()
        ) { origin, bench in
            for number in 0..<20 {
                let url = JSON.string(origin.url("/x"))
                let path = JSON.string("x\(number)")
                _ = try await bench.result(
                    type == "url"
                        ? ["type": "url", "url": url] : ["type": "download", "url": url, "path": path])
            }
            // One for each event loop, as the loops take turns.
            #expect(origin.connectionCount <= System.coreCount)
            #expect(origin.log.count("/x") == 20)
        }
    }

    @Test func idleConnection_isClosed_afterHalfAMinute() async throws {
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(
            against: { request, _ in Misbehaviour.correct([1], to: request) }, timers: clock
        ) { origin, bench in
            // As many as there are loops, each of which comes to its connection in turn.
            let source: JSON = ["type": "url", "url": .string(origin.url("/x"))]
            for _ in 0..<System.coreCount { _ = try await bench.result(source) }
            await clock.advanceTime(by: ConnectionPool.longest - .milliseconds(1))
            for _ in 0..<System.coreCount { _ = try await bench.result(source) }
            #expect(origin.connectionCount <= System.coreCount)
            let before = origin.connectionCount
            await clock.advanceTime(by: ConnectionPool.longest)
            for _ in 0..<before { await origin.clientLeaves() }
            _ = try await bench.result(source)
            #expect(origin.connectionCount == before + 1)
        }
    }

    @Test func idleConnection_isClosed_asItsServerWill() async throws {
        let clock = NIOAsyncTestingEventLoop()
        let fields = [("Content-Length", "0"), ("Keep-Alive", "timeout=5, max=100")]
        try await Workbench.run(against: { _, _ in [.head("200 OK", fields)] }, timers: clock) { origin, bench in
            _ = try await bench.result(["type": "url", "url": .string(origin.url("/x"))])
            await clock.advanceTime(by: .seconds(4))
            await origin.clientLeaves()
        }
    }

    /// The server may be closing it, and nothing would tell whether it had the request.
    @Test func idleConnection_isNotUsed_afterASecondForAPost() async throws {
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(
            against: { request, _ in Misbehaviour.correct([1], to: request) }, timers: clock
        ) { origin, bench in
            func post() async throws {
                _ = try await bench.result(.source("url", origin.url("/x"), ["method": "POST"]))
            }
            // As many as there are loops, each of which comes to its connection in turn.
            for _ in 0..<System.coreCount { try await post() }
            for _ in 0..<System.coreCount { try await post() }
            let before = origin.connectionCount
            #expect(before <= System.coreCount)
            await clock.advanceTime(by: ConnectionPool.fresh + .milliseconds(1))
            try await post()
            #expect(origin.connectionCount == before + 1)
        }
    }

    /// By a clock that stands still, the connection is not closed before the bytes come.
    @Test func bytesThatNothingAskedFor_areNotTheNextAnswer() async throws {
        let gate = OriginGate()
        let (told, teller) = AsyncStream.makeStream(of: Void.self)
        func answer(_ text: String) -> OriginStep { .send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\(text)") }
        try await Workbench.run(
            against: { [one = answer("one"), two = answer("two"), bad = answer("bad")] request, _ in
                request.path == "/one" ? [one, .wait(gate), bad, .tell(teller)] : [two]
            }, timers: NIOAsyncTestingEventLoop()
        ) { origin, bench in
            let first = try await bench.result(.source("url", origin.url("/one")))
            #expect(first["body"] == "one")
            gate.open()
            var telling = told.makeAsyncIterator()
            await telling.next()
            try await Workbench.settle()
            // Some of these are on the event loop of the first one.
            for _ in 0..<(4 * System.coreCount) {
                let next = try await bench.result(.source("url", origin.url("/two")))
                #expect(next["body"] == "two")
            }
        }
    }

    @Test(arguments: ["bytes 0-2/3", "bytes 0-2/4", "bytes 1-3/4", "bytes 0-3/4"], ["url", "download"])
    func partialContent_isTaken_whenItIsWhole(range: String, type: String) async throws {
        let fields = [("Content-Range", range), ("Content-Length", "3")]
        try await Workbench.run(against: { _, _ in [.head("206 Partial Content", fields), .send("abc")] }) {
            origin, bench in
            let source: JSON = .source(type, origin.url("/x"), type == "url" ? [:] : ["path": "x"])
            if range == "bytes 0-2/3" {
                let result = try await bench.result(source)
                #expect(result["size"] == 3)
            } else {
                let error = try await bench.failure(source)
                #expect(error.kind == .network)
            }
        }
    }

    @Test(arguments: [("abc", true), ("ab", false)])
    func partWithoutLength_endsWithItsRange(body: String, isWhole: Bool) async throws {
        let head = OriginStep.head("206 Partial Content", [("Content-Range", "bytes 0-2/3")])
        try await Workbench.run(against: { _, _ in [head, .send(body), .close] }) { origin, bench in
            let source: JSON = .download(origin.url("/x"), to: "x")
            if isWhole {
                let result = try await bench.result(source)
                #expect(result["size"] == 3)
            } else {
                let error = try await bench.failure(source)
                #expect(error.kind == .network)
            }
        }
    }

    @Test(arguments: ["url", "download"]) func length_ofNoContent_isIgnored(type: String) async throws {
        let head = OriginStep.head("204 No Content", [("Content-Length", "5")])
        try await Workbench.run(against: { _, _ in [head] }) { origin, bench in
            let result = try await bench.result(.source(type, origin.url("/x"), type == "url" ? [:] : ["path": "x"]))
            #expect(result["size"] == 0)
        }
    }

    @Test func body_isLeftAlone_whenTheJobAskedForItsCoding() async throws {
        var page = OriginResource([1, 2, 3], type: "text/plain")
        page.headers = [("Content-Encoding", "br")]
        try await Workbench.run(serving: ["/x": page]) { origin, bench in
            let own: [String: JSON] = ["headers": ["Accept-Encoding": "br"]]
            #expect(try await bench.result(.source("url", origin.url("/x"), own))["size"] == 3)
            let error = try await bench.failure(.source("url", origin.url("/x")))
            #expect(error.kind == .parse && error.message.contains("\"br\""))
        }
    }

    @Test func status_isRetryable_ifItMayPass() async throws {
        let passing = [408, 425, 429, 500, 502, 503, 504]
        try await Workbench.run(
            against: { request, _ in [.head("\(request.path.dropFirst()) Bad", [("Content-Length", "0")])] }
        ) { origin, bench in
            for status in passing + [400, 401, 403, 404, 410, 501] {
                let error = try await bench.failure(.source("url", origin.url("/\(status)")))
                #expect(error.kind == .http && error.http?["status"]?.int == status)
                #expect(error.isRetryable == passing.contains(status), "\(status)")
            }
        }
    }

    @Test func request_carriesBytes_ofBodyBase64() async throws {
        try await Workbench.run(serving: ["/in": OriginResource(text: "ok")]) { origin, bench in
            _ = try await bench.result(.source("url", origin.url("/in"), ["method": "POST", "bodyBase64": "/wCA"]))
            #expect(origin.log.last("/in")?.body == [0xFF, 0, 0x80])
            #expect(origin.log.last("/in")?.headers["user-agent"] == "deferd/1.0")
        }
    }

    @Test func unchanged_isNotModified_whenRequestWasConditional() async throws {
        var page = OriginResource(text: "[1]", etag: "\"v1\"")
        page.lastModified = "Wed, 31 Dec 2025 12:00:00 GMT"
        try await Workbench.run(serving: ["/x": page]) { origin, bench in
            let url = origin.url("/x")
            for condition in [["ifNoneMatch": "\"v1\""], ["ifModifiedSince": "2025-12-31T12:00:00Z"]]
                as [[String: JSON]]
            {
                let result = try await bench.result(.source("url", url, condition))
                #expect(result["status"] == 304)
                #expect(result["notModified"] == true)
                #expect(try await bench.result(.source("json", url, condition)) == .null)
            }
            let changed = try await bench.result(.source("url", url, ["ifNoneMatch": "\"v0\""]))
            #expect(changed["notModified"] == false)
            #expect(changed["body"] == "[1]")
        }
    }

    @Test(arguments: ["gzip", "deflate"]) func compressedBody_isDecoded(coding: String) async throws {
        let compressed = try Compression.compressed(Self.plain, coding)
        var page = OriginResource(compressed, type: "text/plain")
        page.headers = [("Content-Encoding", coding)]
        try await Workbench.run(serving: ["/x": page]) {
            $0.limits.body = 16_000
        } _: { origin, bench in
            let result = try await bench.result(["type": "url", "url": .string(origin.url("/x"))])
            #expect(result["body"]?.string == Self.plain)
            #expect(result["size"] == 16_000)
            let file = try await bench.result(.download(origin.url("/x"), to: "x"))
            #expect(file["size"]?.int == compressed.count)
            #expect(bench.bytes(of: bench.downloads + "/x") == compressed)
            #expect(origin.log.last("/x")?.headers["accept-encoding"] == "identity")
        }
    }
}
