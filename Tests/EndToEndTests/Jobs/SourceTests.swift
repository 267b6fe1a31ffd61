import Foundation
import JobModel
import TestSupport
import Testing
import TestOrigin

/// The sources `url`, `json`, `value` and `timer`, against an origin that does as HTTP says.
@Suite struct SourceTests {
    /// Runs `body` with an origin and a daemon.
    private func serve(
        configuration: String = "", _ body: @escaping @Sendable (TestOrigin, Wire) async throws -> Void
    ) async throws {
        try await TestOrigin.run { origin in
            try await Daemon.run(configuration: configuration) { daemon in
                try await body(origin, daemon.connect())
            }
        }
    }

    private func url(_ origin: TestOrigin, _ path: String, _ more: [(String, JSON)] = []) -> JSON {
        let members: [(String, JSON)] = [("type", "url"), ("url", .string(origin.url(path)))] + more
        return ["source": .object(JSONObject(members.map { JSONObject.Member(name: $0.0, value: $0.1) }))]
    }

    // MARK: - url

    @Test func url_givesBase64_whenBodyIsNoText() async throws {
        try await serve { origin, wire in
            origin["/binary"] = OriginResource([0xff, 0, 0x80])
            let job = try await wire.run(url(origin, "/binary"))
            #expect(job["result"]?["encoding"] == "base64")
            #expect(job["result"]?["body"] == "/wCA")
            let piece = try await wire.call("job.result", ["job": job["job"] ?? .null])
            #expect(piece == ["data": "/wCA", "offset": 0, "size": 3, "eof": true])
        }
    }

    @Test func url_spillsBody_whenItIsLargerThanInlineResult() async throws {
        try await serve { origin, wire in
            let body = (0..<700_001).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 8) }
            origin["/large"] = OriginResource(body)
            let job = try await wire.run(url(origin, "/large"))
            #expect(job["result"]?["spilled"] == true)
            #expect(job["result"]?["body"] == nil)
            #expect(job["result"]?["size"] == 700_001)
            let id = try #require(job["job"])
            var collected: [UInt8] = []
            while true {
                let piece = try await wire.call("job.result", ["job": id, "offset": JSON(collected.count)])
                let bytes = Array(try #require(Data(base64Encoded: piece["data"]?.string ?? "")))
                #expect(piece["offset"]?.int == collected.count)
                #expect(piece["size"] == 700_001)
                #expect(bytes.count <= 256 << 10)
                #expect(!bytes.isEmpty)
                collected += bytes
                #expect(piece["eof"] == .bool(collected.count == body.count))
                if piece["eof"] != false || bytes.isEmpty { break }
            }
            #expect(collected == body)
            let middle = try await wire.call("job.result", ["job": id, "offset": 300_000, "length": 5])
            #expect(Data(base64Encoded: middle["data"]?.string ?? "").map(Array.init) == Array(body[300_000..<300_005]))
            #expect(middle["eof"] == false)
            let beyond = try await wire.call("job.result", ["job": id, "offset": 9_000_000])
            #expect(beyond["data"] == "")
            #expect(beyond["eof"] == true)
        }
    }

    @Test func url_failsTooLarge_whenBodyIsBeyondLimit() async throws {
        try await serve(configuration: "limits:\n  body: 10000\n") { origin, wire in
            origin["/large"] = OriginResource([UInt8](repeating: 65, count: 10_001))
            var chunked = OriginResource([UInt8](repeating: 65, count: 100_000))
            chunked.hidesLength = true
            origin["/chunked"] = chunked
            origin["/fits"] = OriginResource([UInt8](repeating: 65, count: 10_000))
            for path in ["/large", "/chunked"] {
                let error = try await wire.fail(url(origin, path))
                #expect(error["kind"] == "too-large", "\(path)")
            }
            let fitting = try await wire.succeed(url(origin, "/fits"))
            #expect(fitting["size"] == 10_000)
        }
    }

    @Test func url_failsWithPolicy_whenExpressionMakesDeniedURL() async throws {
        try await serve(configuration: "policy:\n  denyHosts: [forbidden.example]\n") { _, wire in
            let refusal = try await wire.refusal(
                "job.submit", ["source": ["type": "url", "url": "http://forbidden.example/"]])
            #expect(refusal.code == -32002)
            #expect(refusal.kind == "forbidden")
            let error = try await wire.fail([
                "source": ["type": "value", "value": "forbidden.example"],
                "then": [["then": ["source": ["type": "url", "url": "http://{{input}}/"]]]],
            ])
            #expect(error["kind"] == "policy")
            #expect(error["link"] == 1)
        }
    }

    // MARK: - json

    @Test func json_givesSelectedValue_whenPointerFindsIt() async throws {
        try await serve { origin, wire in
            origin["/doc"] = .json(#"{"a/b": [1.50, {"c": null}], "n": 12345678901234567890}"#)
            func select(_ pointer: String?) -> JSON {
                let url = JSON.string(origin.url("/doc"))
                guard let pointer else { return ["source": ["type": "json", "url": url]] }
                return ["source": ["type": "json", "url": url, "select": .string(pointer)]]
            }
            let job = try await wire.submit(select("/a~1b/0"))
            let id = wire.send("job.wait", ["job": JSON(job)])
            let line = try await wire.next("answer") { $0.id == JSON(id) }
            #expect(line.text.contains(#""result":1.50"#), "numbers keep their digits")
            let null = try await wire.run(select("/a~1b/1/c"))
            #expect(null["state"] == "succeeded")
            #expect(null.object?.names.contains("result") == true)
            #expect(null["result"] == .null)
            let whole = try await wire.succeed(select(nil))
            #expect(whole["n"] == (try JSON(parsing: Array("12345678901234567890".utf8))))
            #expect(try await wire.fail(select("/nothing"))["kind"] == "select")
            origin["/doc"] = OriginResource(text: "{not json")
            #expect(try await wire.fail(select("/a"))["kind"] == "parse")
        }
    }
}
