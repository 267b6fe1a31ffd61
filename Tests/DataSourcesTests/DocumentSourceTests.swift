import DataSources
import Foundation
import JobModel
import Synchronization
import Testing
import TestOrigin

@Suite struct DocumentSourceTests {
    @Test func url_result_holdsStatusHeadersAndText() async throws {
        try await TestOrigin.run { origin in
            var page = OriginResource(text: "Grüße", type: "Text/Plain; charset=utf-8", etag: "\"1\"")
            page.headers = [("X-Part", "a"), ("X-Part", "b")]
            origin["/page"] = page
            try await Workbench.run { bench in
                let result = try await bench.result(["type": "url", "url": .string(origin.url("/page"))])
                #expect(result["status"] == 200)
                #expect(result["mediaType"] == "text/plain")
                #expect(result["size"] == 7)
                #expect(result["notModified"] == false)
                #expect(result["body"] == "Grüße")
                #expect(result["encoding"] == nil)
                #expect(result["headers"]?["etag"] == "\"1\"")
                #expect(result["headers"]?["x-part"] == "a, b")
            }
        }
    }

    @Test func url_result_isBase64_whenBodyIsNoText() async throws {
        try await TestOrigin.run { origin in
            origin["/blob"] = OriginResource([0xFF, 0x00, 0x80])
            try await Workbench.run { bench in
                let result = try await bench.result(["type": "url", "url": .string(origin.url("/blob"))])
                #expect(result["body"] == "/wCA")
                #expect(result["encoding"] == "base64")
            }
        }
    }

    @Test func url_body_isSpilled_whenLargerThanInlineResult() async throws {
        try await TestOrigin.run { origin in
            let bytes = Workbench.bytes(300_000)
            origin["/large"] = OriginResource(bytes)
            try await Workbench.run { bench in
                let result = try await bench.result(["type": "url", "url": .string(origin.url("/large"))])
                #expect(result["spilled"] == true)
                #expect(result["size"] == 300_000)
                #expect(result["body"] == nil)
                #expect(bench.bytes(of: bench.bodyPath) == bytes)
            }
        }
    }

    @Test func url_isTooLarge_whenItsOwnerHasNoRoomForTheBody() async throws {
        try await TestOrigin.run { origin in
            origin["/large"] = OriginResource(Workbench.bytes(300_000))
            try await Workbench.run { bench in
                bench.roomForBody.withLock { $0 = 299_999 }
                let error = try await bench.failure(["type": "url", "url": .string(origin.url("/large"))])
                #expect(error.kind == .tooLarge && error.message.contains("299999 bytes more"), "\(error)")
                #expect(!error.isRetryable)
                #expect(bench.bytes(of: bench.bodyPath) == nil, "what was written of it is gone")
                bench.roomForBody.withLock { $0 = 300_000 }
                #expect(
                    try await bench.result(["type": "url", "url": .string(origin.url("/large"))])["spilled"] == true)
            }
        }
    }

    @Test func json_result_isSelectedValue() async throws {
        try await TestOrigin.run { origin in
            origin["/release"] = .json(#"{"assets": [{"url": "a"}, {"url": "b"}]}"#)
            try await Workbench.run { bench in
                let result = try await bench.result([
                    "type": "json", "url": .string(origin.url("/release")), "select": "/assets/1/url",
                ])
                #expect(result == "b")
            }
        }
    }

    @Test func download_result_describesFile() async throws {
        try await TestOrigin.run { origin in
            let bytes = Workbench.bytes(3_000_000)
            origin["/tool"] = OriginResource(bytes, etag: "\"v1\"")
            try await Workbench.run { bench in
                let result = try await bench.result([
                    "type": "download", "url": .string(origin.url("/tool")), "path": "a/b/tool",
                ])
                #expect(result["path"]?.string == bench.downloads + "/a/b/tool")
                #expect(result["size"] == 3_000_000)
                #expect(result["status"] == 200)
                #expect(result["etag"] == "\"v1\"")
                #expect(result["resumedFrom"] == 0)
                #expect(bench.bytes(of: bench.downloads + "/a/b/tool") == bytes)
                #expect(bench.names(below: bench.downloads) == ["a", "a/b", "a/b/tool"])
            }
        }
    }
}
