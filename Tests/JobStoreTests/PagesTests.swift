import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

@testable import JobStore

/// Pages of the database that no job needs any more.
@Suite struct PagesTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func length() throws -> Int {
        try FileManager.default.attributesOfItem(atPath: directory.database)[.size] as? Int ?? 0
    }

    @Test func file_shrinks_whenMuchWasRemoved() async throws {
        let store = try SQLiteStore(path: directory.path)
        let text = String(repeating: "x", count: 100_000)
        let jobs = try (0..<300).map { _ in try Job.example(source: #"{"type": "value", "value": "\#(text)"}"#) }
        let ids = try await store.submit(jobs).compactMap { if case .created(let id) = $0 { id } else { nil } }
        for id in ids.dropLast() { _ = try await store.remove(id) }
        // It is done behind the removals, on the same thread.
        await withCheckedContinuation { continuation in store.queue.queue.async { continuation.resume() } }
        await store.close()
        #expect(try length() < 10 << 20)
        let again = try SQLiteStore(path: directory.path)
        #expect(try await again.existing(ids[299]).spec == jobs[299].spec)
        await again.close()
    }

    @Test func file_growsInWholeSteps_allOfThemOnTheDisk() throws {
        let path = try directory.write("x", to: "file")
        let file = GrowingFile(path)
        for size in [256 << 10, 100, 512 << 10] as [Int64] { file.grow(to: size) }
        file.close()
        file.grow(to: 1 << 20)
        var status = stat()
        #expect(stat(path, &status) == 0)
        #expect(status.st_size == 512 << 10 && Int(status.st_blocks) * 512 >= 512 << 10)
    }

    @Test func commit_writesNothingIntoTheDatabase_butMakesItLonger() async throws {
        let store = try SQLiteStore(path: directory.path)
        let before = try length()
        let text = String(repeating: "x", count: 100_000)
        for _ in 0..<5 { _ = try await store.create(.example(source: #"{"type": "value", "value": "\#(text)"}"#)) }
        let after = try length()
        #expect(after > before && after.isMultiple(of: 256 << 10))
        await store.close()
    }
}
