import DataSources
import DeferredKit
import Foundation
import Testing
import TestOrigin

/// The examples of the module's documentation, word for word; DeferredKit's DocCoverageTests see to it that none is
/// left out.
@Suite struct DocDataSourcesTests {
    private static let body = Workbench.bytes(100_000)

    /// Runs `body` with a server and an empty directory for downloads.
    private func run(
        _ body: @escaping @Sendable (_ origin: TestOrigin, _ downloads: String) async throws -> Void
    ) async throws {
        try await TestOrigin.run { origin in
            origin["/tool.tar.gz"] = OriginResource(Self.body, etag: "\"1\"")
            origin["/page"] = OriginResource(text: "Hello")
            origin["/release.json"] = .json(#"{"assets": [{"name": "tool.tar.gz", "size": 100000}]}"#)
            let downloads = FileManager.default.temporaryDirectory.path + "/DataSources-docs-\(UUID().uuidString)"
            defer { try? FileManager.default.removeItem(atPath: downloads) }
            try await body(origin, downloads)
        }
    }

    private func bytes(_ path: String) -> [UInt8]? { FileManager.default.contents(atPath: path).map(Array.init) }

    @Test func download_works() async throws {
        try await run { origin, downloads in
            let url = origin.url("/tool.tar.gz")
            let digest: String
            do {
                let file = try await DownloadSource(url, to: "tool.tar.gz", in: downloads).start().get()
                print(file.path, file.size, file.sha256)
                #expect(bytes(downloads + "/tool.tar.gz") == Self.body)
                #expect(file.path == downloads + "/tool.tar.gz")
                #expect(file.size == 100_000)
                digest = file.sha256
            }
            do {
                var source = DownloadSource(url, to: "tool.tar.gz", in: downloads)
                source.exists = .replace
                source.sha256 = digest
                let download = source.start()
                download.onProgress { print($0.fraction ?? 0) }
                download.upon { outcome in print(outcome) }
                #expect(try await download.get().sha256 == digest)
            }
            do {
                let queue = WorkQueue(concurrency: 2)
                let copies = ["a", "b", "c"].map { DownloadSource(url, to: $0, in: downloads) }
                let files = Deferred.all(copies.map { $0.start(on: queue) })
                print(try await files.get().map(\.size))
                #expect(try await files.get().map(\.size) == [100_000, 100_000, 100_000])
            }
            do {
                let file = try await DownloadSource(url, to: downloads + "/absolute").start().get()
                #expect(bytes(file.path) == Self.body)
            }
        }
    }

    @Test func documents_work() async throws {
        try await run { origin, _ in
            let (pageURL, releaseURL) = (origin.url("/page"), origin.url("/release.json"))
            do {
                let page = try await URLSource(pageURL).start().get()
                print(page.status, page.mediaType ?? "", page.text)

                struct Asset: Decodable {
                    let name: String
                    let size: Int
                }
                let asset = try await JSONSource(releaseURL, as: Asset.self, at: "/assets/0").start().get()
                print(asset.name, asset.size)
                #expect(page.status == 200 && page.mediaType == "text/plain" && page.text == "Hello")
                #expect(asset.name == "tool.tar.gz" && asset.size == 100_000)
            }
            do {
                let url = pageURL
                let page = try await URLSource(url).start().get()
                #expect(page.url == url)
            }
            do {
                let url = releaseURL
                let name = try await JSONSource(url, as: String.self, at: "/assets/0/name").start().get()
                #expect(name == "tool.tar.gz")
            }
        }
    }

    @Test func failure_works() async throws {
        try await run { origin, _ in
            let missingURL = origin.url("/missing")
            let patient = Deferred.retry(attempts: 3, if: { ($0 as? SourceError)?.isRetryable == true }) { _ in
                URLSource(missingURL).start()
            }
            do {
                print(try await patient.get().text)
            } catch let error as SourceError where error.code == .http {
                print(error.status ?? 0, error.message)
            }
            let error = await #expect(throws: SourceError.self) { try await patient.get() }
            #expect(error?.status == 404)
            #expect(origin.log.count("/missing") == 1)
        }
    }

    @Test func session_works() async throws {
        try await run { origin, _ in
            let pageURL = origin.url("/page")
            var options = SourceOptions()
            options.http.idleTimeout = .seconds(20)
            options.limits.body = 1 << 20
            options.policy.denyAddresses = PolicySettings.privateNetworks
            let session = try SourceSession(options)
            let refused = URLSource(pageURL, session: session).start()
            refused.upon { print($0) }
            await session.shutdown()
            let error = await #expect(throws: SourceError.self) { try await refused.get() }
            #expect(error?.code == .policy || error?.code == .cancelled)
        }
    }
}
