import Foundation
import JobModel
import TestOrigin
import TestSupport
import Testing

/// The source `upload`, from a client's spec to the server's log.
@Suite struct UploadTests {
    private func serve(
        configuration: String = "", _ body: @escaping @Sendable (TestOrigin, Daemon, Wire) async throws -> Void
    ) async throws {
        try await TestOrigin.run { origin in
            origin["/store"] = OriginResource(text: "kept")
            try await Daemon.run(configuration: configuration) { daemon in
                try FileManager.default.createDirectory(
                    atPath: daemon.downloads, withIntermediateDirectories: true)
                try Data(Sample.large).write(to: URL(filePath: daemon.downloads + "/file"))
                try await body(origin, daemon, daemon.connect())
            }
        }
    }

    private func upload(_ origin: TestOrigin, _ more: [String: JSON] = [:], retry: JSON? = nil) -> JSON {
        let source: JSON = ["type": "upload", "url": .string(origin.url("/store")), "path": "file"]
        let spec: JSON = ["source": source.with(more)]
        return spec.with(retry.map { ["retry": $0] } ?? [:])
    }

    @Test func upload_sendsTheFile_andTellsWhatCameOfIt() async throws {
        try await serve { origin, _, wire in
            let job = try await wire.run(upload(origin))
            #expect(job["state"] == "succeeded", "\(job)")
            let result = try #require(job["result"])
            #expect(result["status"] == 200)
            #expect(result["headers"]?["content-type"] == "text/plain; charset=utf-8")
            #expect(result["size"] == 4_000_000)
            #expect(result["sha256"]?.string == Sample.largeSHA256)
            #expect(result["attempts"] == 1)
            #expect(result["url"]?.string == origin.url("/store"))
            let request = try #require(origin.log.last("/store"))
            #expect(request.method == "PUT")
            #expect(request.body == Sample.large)
            let body = try await wire.call("job.result", ["job": job["job"] ?? .null])
            #expect(body["data"]?.string == Data("kept".utf8).base64EncodedString())
            // A long answer is read with job.result, as that of a url is.
            origin["/long"] = OriginResource(Sample.content)
            let form: JSON = ["field": "file", "fields": ["a": "b"]]
            let long = try await wire.run(
                upload(origin, ["url": .string(origin.url("/long")), "multipart": form]))
            #expect(long["result"]?["spilled"] == true && long["result"]?["sha256"]?.string == Sample.largeSHA256)
            let id = try #require(long["job"]?.int)
            let piece = try await wire.call("job.result", ["job": JSON(id), "length": 1000])
            #expect(piece["size"] == 100_000)
            #expect(piece["data"]?.string == Data(Sample.content.prefix(1000)).base64EncodedString())
            #expect(origin.log.last("/long")?.method == "POST")
        }
    }

    @Test func deferctl_uploads_andDownloadsOverSeveralConnections() async throws {
        try await serve { origin, daemon, _ in
            let sent = try await daemon.deferctl(["upload", "--json", "file", origin.url("/store")]).outputText
            #expect(sent.contains(Sample.largeSHA256), "\(sent)")
            #expect(origin.log.last("/store")?.body == Sample.large)
            origin["/large"] = OriginResource(Sample.large, etag: "\"1\"")
            let download = try await daemon.deferctl([
                "download", "--segments", "4", origin.url("/large"), "--to", "copy",
            ])
            #expect(download.outputText == daemon.downloads + "/copy\n")
            #expect(download.errorText.contains("in your directory among the daemon's downloads"))
            #expect(try Data(contentsOf: URL(filePath: daemon.downloads + "/copy")) == Data(Sample.large))
            #expect(origin.log.count("/large") > 1)
        }
    }
}
