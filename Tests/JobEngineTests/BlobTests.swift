import Foundation
import JobModel
import JobCore
import TestSupport
import Testing

@testable import JobEngine

/// Long values in files.
@Suite struct BlobTests {
    private static let long = JSON.string(String(repeating: "y", count: 100_000))

    @Test func sweep_removesWhatEarlierLivesLeft_andNothingElse() async throws {
        let (store, directory) = (TestStore(), try TemporaryDirectory())
        var kept: BlobReference?
        try await TestEngine.with(store: store, life: 1, in: directory) { test in
            kept = try await test.run(["source": ["type": "value", "value": Self.long]]).carried?.blob
        }
        for name in ["1-77", "1-78.part", "2-1", "other"] { try directory.write("x", to: "blobs/" + name) }
        let blobs = try BlobStore(path: directory.path + "/blobs", life: 2)
        try blobs.sweep(store)
        blobs.removals.sync {}
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path + "/blobs")
        #expect(Set(names) == [try #require(kept).name, "2-1", "other"])
    }

    @Test(arguments: [4, .max, -1, .min] as [Int64])
    func read_throws_whenTheRowTellsAnotherSize(_ size: Int64) throws {
        let directory = try TemporaryDirectory()
        try directory.write("abc", to: "1-1")
        let store = try BlobStore(path: directory.path, life: 1)
        #expect(try store.read(BlobReference(life: 1, number: 1, size: 3)) == Array("abc".utf8))
        #expect(throws: StoreError.self) { try store.read(BlobReference(life: 1, number: 1, size: size)) }
    }
}
