import Foundation
import JobModel
import JobCore
import TestSupport
import Testing

@testable import JobEngine

/// Long values in files.
@Suite struct BlobTests {
    private static let long = JSON.string(String(repeating: "y", count: 100_000))

    @Test func longResult_standsInAFile_untilItsJobIsRemoved() async throws {
        try await TestEngine.with { test in
            let row = try await test.run(["source": ["type": "value", "value": Self.long]])
            let blob = try #require(row.carried?.blob)
            #expect(blob.size == Int64(Self.long.size))
            let part = try test.engine.blobs.read(blob, offset: 1, length: 3)
            #expect(part.bytes == Array("yyy".utf8))
            #expect(part.size == Self.long.size)
            #expect(JobView(row, document: nil).json()["resultSize"]?.int == Self.long.size)
            guard case .done = await test.engine.ask(.change(row.id, .remove), for: TestEngine.user) else {
                throw TestEngine.Unexpected("It was not removed.")
            }
            await test.settle(0)
            #expect(!FileManager.default.fileExists(atPath: test.directory + "/blobs/" + blob.name))
        }
    }

    @Test func longResult_flowsIntoTheNextLink() async throws {
        try await TestEngine.with { test in
            let row = try await test.run([
                "source": ["type": "value", "value": ["a": Self.long, "b": 2]],
                "then": [["then": ["return": "{{input/b}}"]]],
            ])
            #expect(try test.result(of: row) == 2)
        }
    }

    @Test func sweep_removesWhatEarlierLivesLeft_andNothingElse() async throws {
        let (store, directory) = (TestStore(), try TemporaryDirectory())
        var kept: BlobReference?
        try await TestEngine.with(store: store, life: 1, in: directory) { test in
            kept = try await test.run(["source": ["type": "value", "value": Self.long]]).carried?.blob
        }
        for name in ["1-77", "1-78.part", "2-1", "other"] { try directory.write("x", to: "blobs/" + name) }
        #expect(try BlobStore(path: directory.path + "/blobs", life: 2).sweep(store) == 2)
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path + "/blobs")
        #expect(Set(names) == [try #require(kept).name, "2-1", "other"])
    }
}
