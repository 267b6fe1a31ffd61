import DataSources
import InMemoryStore
import JobModel
import JobCore
import JobEngine
import Synchronization
import SystemPackage
import TestOrigin
import TestSupport
import Testing

/// Waits, starts and stops.
@Suite struct LifeTests {
    @Test func wait_isOver_whenItIsAbandoned() async throws {
        try await TestEngine.with { test in
            let job = try await test.submit(["source": ["type": "timer", "seconds": 3600]])
            let id = test.engine.nextID()
            let isOver = Atomic(false)
            async let over: Void = {
                defer { isOver.store(true, ordering: .relaxed) }
                try await test.engine.wait(for: [job], as: TestEngine.user, id: id)
            }()
            // The wait may not have begun yet.
            while !isOver.load(ordering: .relaxed) {
                test.engine.abandon(id, of: TestEngine.user.uid)
                _ = await test.engine.probe()
            }
            try await over
            #expect(try test.engine.reader.job(job)?.row.state == .running)
        }
    }

    @Test func list_isShown_afterAStart() async throws {
        let (store, directory) = (TestStore(), try TemporaryDirectory())
        try await ScriptedOrigin.run({ _, _ in [.hold] }) { origin in
            let child: JSON = ["source": ["type": "url", "url": .string(origin.url("/x"))]]
            var job: JobID = 0
            try await TestEngine.with(store: store, in: directory) { test in
                job = try await test.submit(["source": ["type": "list", "jobs": [child, child]]])
                await store.until { [job] in $0.list(of: job)?.phase == .open }
            }
            try await TestEngine.with(store: store, life: 2, in: directory) { test in
                #expect(await test.engine.probe())
                #expect(test.engine.board.progress(of: job, in: nil)?.total == 2)
            }
        }
    }

    @Test func stop_storesWhatTransfersGoOnWith() async throws {
        let store = TestStore()
        let (writes, written) = AsyncStream.makeStream(of: Int32.self)
        var files = FileOperations.real
        files.writeAt = { file, offset, bytes throws(Errno) in
            try FileOperations.real.writeAt(file, offset, bytes)
            written.yield(file)
        }
        let head = OriginStep.head("200 OK", [("Content-Length", "200000"), ("ETag", "\"1\"")])
        try await ScriptedOrigin.run({ _, _ in [head, .stream(100_000), .hold] }) { origin in
            try await TestEngine.with(store: store, files: files) { test in
                for number in 0..<3 {
                    _ = try await test.submit([
                        "source": ["type": "download", "url": .string(origin.url("/x")), "path": .string("\(number)")]
                    ])
                }
                var begun: Set<Int32> = []
                for await file in writes where begun.insert(file).inserted && begun.count == 3 { break }
                store.faults.withLock { $0.isSlow = true }
            }
        }
        #expect(store.rows.checkpointOwners.count { $0.link == 0 } == 3)
    }

    @Test func shortage_refusesSubmissions() async throws {
        try await TestEngine.with {
            $0.minimumFree = .max
        } _: { test in
            await #expect(throws: ProtocolError.self) {
                try await test.submit(["source": ["type": "value", "value": 1]])
            }
            #expect(test.engine.status.core.shortage != nil)
        }
    }
}
