import Foundation
import JobModel
import TestOrigin
import TestSupport
import Testing

/// The source `upload`, from the command line to the server's log.
@Suite struct UploadTests {
    @Test func deferctl_uploads_andDownloadsOverSeveralConnections() async throws {
        try await TestOrigin.run { origin in
            origin["/store"] = OriginResource(text: "kept")
            origin["/large"] = OriginResource(Sample.large, etag: "\"1\"")
            try await Daemon.run { daemon in
                try FileManager.default.createDirectory(atPath: daemon.downloads, withIntermediateDirectories: true)
                try Data(Sample.large).write(to: URL(filePath: daemon.downloads + "/file"))
                let sent = try await daemon.deferctl(["upload", "--json", "file", origin.url("/store")]).outputText
                #expect(sent.contains(Sample.largeSHA256), "\(sent)")
                #expect(origin.log.last("/store")?.method == "PUT")
                #expect(origin.log.last("/store")?.body == Sample.large)
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
}
