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
            let first = try await test.engine.backUp()
            #expect(!FileManager.default.fileExists(atPath: path))
            _ = try await test.engine.backUp()
            #expect(first.size == 6)
            #expect(try first.read(offset: 4, length: 10).bytes == Array("ef".utf8))
            #expect(try first.read(offset: 9, length: 1).bytes.isEmpty)
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
            await test.settle(0)
            #expect(FileManager.default.fileExists(atPath: file))
            goOn.signal()
            _ = try await backup
            #expect(!FileManager.default.fileExists(atPath: file))
        }
    }
}
