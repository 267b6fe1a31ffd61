import DeferredKit
import Glibc
import JobCore
import JobEngine
import JobModel
import TestSupport
import Testing

/// Who is told that a program has written.
@Suite struct OutputTests {
    private final class Subscriber: JobSubscriber {
        let batches = AsyncStream.makeStream(of: ProgressBatch.self)
        var isGone: Bool { false }
        func receive(_ update: JobUpdate) { if case .output(let batch) = update { batches.continuation.yield(batch) } }
    }

    @Test func readersAndSubscribers_areTold_whenAProgramWrites() async throws {
        try await TestEngine.with { test in
            let (subscriber, id) = (Subscriber(), test.engine.nextID())
            test.engine.register(subscriber, as: id, of: TestEngine.user.uid)
            _ = await test.engine.ask(.watch(WatchScope(.all, interval: 0.001), id), for: TestEngine.user)
            let gate = test.directory + "/gate"
            try #require(mkfifo(gate, 0o600) == 0)
            let (begun, first, second) = (Promise<Void, Never>(), Promise<Void, Never>(), Promise<Void, Never>())
            // The first job has the id 1.
            test.engine.board.awaitOutput(of: 1, beyond: 1 << 62, begun)
            let script: JSON = .string("echo one; : <'\(gate)'; echo two; exec sleep 1000")
            let job = try await test.submit(["source": ["type": "program", "command": ["/bin/sh", "-c", script]]])
            #expect(job == 1)
            await begun.deferred.get()
            test.engine.board.awaitOutput(of: job, beyond: 3, first)
            test.engine.board.awaitOutput(of: job, beyond: 4, second)
            if test.engine.board.program(of: job)?.output ?? 0 < 4 { await first.deferred.get() }
            #expect(!second.deferred.isResolved)
            for await batch in subscriber.batches.stream {
                guard case .output(attempt: 1, size: 4)? = batch.rows.first?.news else { continue }
                #expect(batch.rows.map(\.job) == [job] && batch.rows.map(\.link) == [0])
                break
            }
            try await test.engine.blocking(for: 0) {
                let file = open(gate, O_WRONLY | O_CLOEXEC)
                try #require(file >= 0)
                close(file)
            }
            await second.deferred.get()
            #expect(test.engine.board.program(of: job)?.output == 8)
            let ended = Promise<Void, Never>()
            test.engine.board.awaitOutput(of: job, beyond: 1 << 62, ended)
            _ = await test.engine.ask(.change(job, .cancel), for: TestEngine.user)
            await ended.deferred.get()
            let row = try await test.end(of: job)
            #expect(row.blobs.map(\.attempt) == [1] && test.engine.board.program(of: job) == nil)
        }
    }
}
