@testable import DataSources
import Foundation
import JobModel
import TestOrigin
import Testing

/// Digests of several algorithms, and the time of the server.
@Suite struct ChecksumTests {
    private static let digests = [
        "md5:900150983cd24fb0d6963f7d28e17f72", "sha1:a9993e364706816aba3e25717850c26c9cd0d89d",
        "SHA256:BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
        "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
            + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
    ]

    @Test(arguments: digests) func file_isChecked_byAnyAlgorithm(checksum: String) async throws {
        try await Workbench.run(serving: ["/abc": OriginResource(text: "abc"), "/abd": OriginResource(text: "abd")]) {
            origin, bench in
            let sum: [String: JSON] = ["checksum": .string(checksum)]
            let result = try await bench.result(.download(origin.url("/abc"), to: "x", sum))
            #expect(result["sha256"]?.string == FileDigest.sha256(of: Array("abc".utf8)))
            let error = try await bench.failure(.download(origin.url("/abd"), to: "y", sum))
            #expect(error.kind == .checksum && error.message.contains(String(checksum.lowercased().suffix(32))))
            #expect(!error.isRetryable)
            #expect(bench.names(below: bench.downloads) == ["x"])
            // An existing file is hashed, unless its record has the digest.
            let skip = sum.merging(["exists": "skip"]) { $1 }
            _ = try await bench.result(.download(origin.url("/abc"), to: "x", skip), job: 2)
            try bench.write(Array("abd".utf8), to: bench.downloads + "/x")
            let other = try await bench.failure(.download(origin.url("/abc"), to: "x", skip), job: 3)
            #expect(other.kind == .checksum)
        }
    }

    @Test(arguments: [true, false]) func file_getsTimeOfServer_onlyIfAsked(isAsked: Bool) async throws {
        let script: ScriptedOrigin.Script = { _, _ in
            [
                .head("200 OK", [("Content-Length", "2"), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")]),
                .send("ok"),
            ]
        }
        try await Workbench.run(against: script) { origin, bench in
            _ = try await bench.result(.download(origin.url("/x"), to: "x", ["remoteTime": .bool(isAsked)]))
            let attributes = try FileManager.default.attributesOfItem(atPath: bench.downloads + "/x")
            let modified = try #require(attributes[.modificationDate] as? Date)
            #expect((modified.timeIntervalSince1970 == 784_111_777) == isAsked)
        }
    }

    /// In FIPS mode, libcrypto lacks MD5.
    @Test func algorithm_mayBeMissing() { #expect(FileDigest.context("none") == nil) }
}
