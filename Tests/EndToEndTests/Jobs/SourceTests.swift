import Foundation
import JobModel
import TestSupport
import Testing
import TestOrigin

/// Bodies as results of the source `url`.
@Suite struct SourceTests {
    /// Runs `body` with an origin and a daemon.
    private func serve(_ body: @escaping @Sendable (TestOrigin, Wire) async throws -> Void) async throws {
        try await TestOrigin.run { origin in
            try await Daemon.run { _, wire in try await body(origin, wire) }
        }
    }

    @Test func url_givesBase64_whenBodyIsNoText() async throws {
        try await serve { origin, wire in
            origin["/binary"] = OriginResource([0xff, 0, 0x80])
            let job = try await wire.run(.fetch(.string(origin.url("/binary"))))
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
            let job = try await wire.run(.fetch(.string(origin.url("/large"))))
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
}
