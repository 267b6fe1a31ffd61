import DataSources
import Foundation
import JobModel
import Synchronization
import Testing
import TestOrigin

@Suite struct DocumentSourceTests {
    @Test func url_result_holdsStatusHeadersAndText() async throws {
        var page = OriginResource(text: "Grüße", type: "Text/Plain; charset=utf-8", etag: "\"1\"")
        page.headers = [("X-Part", "a"), ("X-Part", "b")]
        try await Workbench.run(serving: ["/page": page]) { origin, bench in
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

    @Test func url_isTooLarge_whenItsOwnerHasNoRoomForTheBody() async throws {
        try await Workbench.run(serving: ["/large": OriginResource(Workbench.bytes(300_000))]) { origin, bench in
            bench.roomForBody.withLock { $0 = 299_999 }
            let error = try await bench.failure(["type": "url", "url": .string(origin.url("/large"))])
            #expect(error.kind == .tooLarge && error.message.contains("299999 more bytes"), "\(error)")
            #expect(!error.isRetryable)
            #expect(bench.bytes(of: bench.bodyPath) == nil, "what was written of it is gone")
            bench.roomForBody.withLock { $0 = 300_000 }
            #expect(
                try await bench.result(["type": "url", "url": .string(origin.url("/large"))])["spilled"] == true)
        }
    }
}
