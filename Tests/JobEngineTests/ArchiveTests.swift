import DataSources
import DeferredKit
import Foundation
import InMemoryStore
import JobCore
import JobModel
import Synchronization
import TestSupport
import Testing

@testable import JobEngine

/// Long values and output with an archive.
@Suite struct ArchiveTests {
    /// Longer than two parts.
    private static let long = JSON.string(String((0..<100_000).map { "\($0 % 977)," }.joined().prefix(600_000)))

    /// The files in the directory, once the ends of jobs were taken note of.
    private static func names(_ test: TestEngine) async throws -> [String] {
        _ = await test.engine.probe()
        await test.settle(0)
        test.engine.blobs.removals.sync {}
        return try FileManager.default.contentsOfDirectory(atPath: test.directory + "/blobs")
    }

    @Test(
        arguments: [
            ["type": "program", "command": ["/bin/echo", "once"]], ["type": "value", "value": Self.long],
            ["type": "each", "in": [Self.long], "job": ["source": ["type": "value", "value": 1]]],
        ] as [JSON])
    func job_waits_untilTheArchiveWorks(_ source: JSON) async throws {
        let archive = TestArchive()
        archive.isBroken.withLock { $0 = true }
        try await TestEngine.with(archive: archive) { test in
            let job = try await test.submit(["source": source])
            await archive.failed.deferred.get()
            archive.isBroken.withLock { $0 = false }
            let row = try await test.end(of: job)
            #expect(row.state == .succeeded, "\(String(describing: row.carried?.error))")
        }
    }

    @Test func program_isCancelled_whileTheArchiveFails() async throws {
        let archive = TestArchive()
        archive.isBroken.withLock { $0 = true }
        try await TestEngine.with(archive: archive) { test in
            let job = try await test.submit(["source": ["type": "program", "command": ["/bin/echo", "once"]]])
            await archive.failed.deferred.get()
            _ = await test.engine.ask(.change(job, .cancel), for: TestEngine.user)
            let row = try await test.end(of: job)
            #expect(row.state == .cancelled && row.blobs.isEmpty)
            #expect(try await Self.names(test) == [])
        }
    }

    /// Otherwise, another node could sweep it away before a row refers to it.
    @Test func newFile_isOfThePresentLife_afterTheLastWasOver() async throws {
        let (store, archive) = (TestStore(), TestArchive())
        try await TestEngine.with(store: store, archive: archive) { test in
            store.inRound.withLock { $0 = { [unowned store] in store.begin(life: 2, wasStopped: false) } }
            while await !test.engine.probe() {}
            let row = try await test.run(["source": ["type": "value", "value": Self.long]])
            #expect(row.carried?.blob?.life == 2)
        }
    }

    @Test func output_isKept_whenAnotherNodeTookOverItsRun() async throws {
        let (store, archive) = (TestStore(), TestArchive())
        try await TestEngine.with(store: store, archive: archive) { test in
            var sweeps = archive.sweeps.stream.makeAsyncIterator()
            await sweeps.next()
            let (ready, end) = (test.directory + "/ready", test.directory + "/end")
            for path in [ready, end] { mkfifo(path, 0o600) }
            let script = "trap ': <\(end); echo late; exit' TERM; : >\(ready); /bin/sleep 1000 & wait"
            let command = JSON.array(["/bin/sh", "-c", .string(script)])
            let job = try await test.submit(["source": ["type": "program", "command": command]])
            await test.engine.blocking(for: TestEngine.user.uid) { _ = close(open(ready, O_RDONLY)) }
            let output = try #require(store.rows.job(job)?.run).output()
            store.inRound.withLock { hook in
                hook = { [unowned store] in
                    store.inRound.withLock { $0 = nil }
                    store.begin(life: 2, wasStopped: false)
                    _ = store.round { transaction throws(StoreError) in
                        guard var row = try transaction.job(job) else { return }
                        (row.state, row.run) = (.failed, nil)
                        row.blobs = [LinkBlob(link: 0, blob: output, attempt: 1)]
                        try transaction.update(row)
                        try transaction.forgetLostLives()
                    }
                }
            }
            while await !test.engine.probe() {}
            // A sweep that does not wait for the program is over by then.
            await test.settle(getuid())
            await test.engine.blocking(for: TestEngine.user.uid) { _ = close(open(end, O_WRONLY)) }
            await sweeps.next()
            await test.settle(getuid())
            #expect(try String(decoding: archive.part(0, of: output), as: UTF8.self).contains("late"))
            #expect(try FileManager.default.contentsOfDirectory(atPath: test.directory + "/blobs") == [])
        }
    }

    @Test func sweep_archivesWhatRowsName() async throws {
        let (archive, store, directory) = (TestArchive(), TestStore(), try TemporaryDirectory())
        try await TestEngine.with(store: store, life: 1, in: directory) { test in
            let row = try await test.run(["source": ["type": "value", "value": Self.long]])
            let blobs = try BlobStore(path: test.directory + "/blobs", life: 2, archive: archive)
            try blobs.sweep(store)
            #expect(try blobs.read(#require(row.carried?.blob)) == Self.long.utf8)
            #expect(try await Self.names(test) == [])
        }
    }

    @Test func sweep_removesLocalFiles_andUnusedOnesOfTheArchive() throws {
        let (archive, directory, store) = (TestArchive(), try TemporaryDirectory(), TestStore())
        try archive.put([1], as: 0, of: BlobReference(life: 1, number: 77, size: 1))
        try archive.put([1], as: 0, of: BlobReference(life: 1, number: 78, size: 1))
        // The output of a run that another daemon took over, which does not know its size.
        let output = RunID(life: 1, number: 6).output()
        var row = JobRow(
            owner: 7, groups: nil, parent: nil,
            terms: JobTerms(
                plan: JobPlan(
                    source: JobPlan.Step(source: .program, timeout: nil, retry: .standard), links: [], deadline: nil),
                queue: "default", priority: 0, key: nil, tags: []),
            specSize: 2, createdAt: Timestamp(milliseconds: 0), state: .failed)
        row.blobs = [LinkBlob(link: 0, blob: output, attempt: 1)]
        let end = store.round { transaction throws(StoreError) in
            _ = try transaction.insert(NewJobRow(row: row, document: .spec(Array("{}".utf8))))
        }
        guard case .committed = end else { throw TestEngine.Unexpected("\(end)") }
        for name in ["1-5", "1-6", "2-1"] { try directory.write(name, to: name) }
        let blobs = try BlobStore(path: directory.path, life: 2, archive: archive)
        try blobs.sweep(store)
        blobs.removals.sync {}
        #expect(directory.names == ["2-1"] && archive.names == ["1-6", "1-78"])
        #expect(try archive.part(0, of: output) == Array("1-6".utf8))
        try blobs.sweep(store)
        blobs.removals.sync {}
        #expect(directory.names == ["2-1"] && archive.names == ["1-6", "1-78"])
    }
}
