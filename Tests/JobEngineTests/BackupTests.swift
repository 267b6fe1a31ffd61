import Foundation
import JobModel
import JobCore
import Synchronization
import TestSupport
import Testing

@testable import JobEngine

/// Copies of the state.
@Suite struct BackupTests {
    private static let long = JSON.string(String(repeating: "y", count: 100_000))

    @Test func backup_isReadInPieces() async throws {
        try await TestEngine.with { test in
            let path = test.directory + "/copy"
            test.store.copy.withLock {
                $0 = {
                    _ = FileManager.default.createFile(atPath: path, contents: Data("abcdef".utf8))
                    return path
                }
            }
            let (first, blobs) = (try await test.engine.backUp(), test.engine.blobs)
            #expect(!FileManager.default.fileExists(atPath: path))
            _ = try await test.engine.backUp()
            #expect(first.size == 6)
            #expect(try blobs.read(first, offset: 4, length: 10) == Array("ef".utf8))
            #expect(try blobs.read(first, offset: 9, length: 1).isEmpty)
            blobs.remove([first])
            blobs.removals.sync {}
            #expect(throws: StoreError.self) { try blobs.read(first) }
        }
    }

    @Test func backup_isSweptAway_afterAKill() async throws {
        let (store, directory) = (TestStore(), try TemporaryDirectory())
        try await TestEngine.with(store: store, life: 1, in: directory) { test in
            let path = test.directory + "/copy"
            test.store.copy.withLock {
                $0 = {
                    _ = FileManager.default.createFile(atPath: path, contents: Data("abcdef".utf8))
                    return path
                }
            }
            _ = try await test.engine.backUp()
            let later = try BlobStore(path: test.directory + "/blobs", life: 2)
            try later.sweep(store)
            later.removals.sync {}
            #expect(try FileManager.default.contentsOfDirectory(atPath: later.path).isEmpty)
        }
    }

    @Test func backup_fails_whereNothingCanBeCopied_andMayBeTriedAgain() async throws {
        try await TestEngine.with { test in
            for _ in 0..<2 {
                let error = await #expect(throws: StoreError.self) { try await test.engine.backUp() }
                #expect(error?.code == .write)
            }
        }
    }

    @Test func filesStay_whileACopyOfTheirRowsIsMade() async throws {
        try await TestEngine.with { test in
            let row = try await test.run(["source": ["type": "value", "value": Self.long]])
            let file = test.directory + "/blobs/" + (try #require(row.carried?.blob)).name
            let (began, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let path = test.directory + "/copy"
            test.store.copy.withLock {
                $0 = {
                    began.signal()
                    goOn.wait()
                    _ = FileManager.default.createFile(atPath: path, contents: nil)
                    return path
                }
            }
            async let backup = test.engine.backUp()
            await test.engine.blocking(for: 7) { began.wait() }
            guard case .done = await test.engine.ask(.change(row.id, .remove), for: TestEngine.user) else {
                throw TestEngine.Unexpected("It was not removed.")
            }
            _ = await test.engine.probe()
            #expect(FileManager.default.fileExists(atPath: file))
            goOn.signal()
            _ = try await backup
            test.engine.blobs.removals.sync {}
            #expect(!FileManager.default.fileExists(atPath: file))
        }
    }
}
