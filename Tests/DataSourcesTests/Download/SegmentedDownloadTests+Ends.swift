import DataSources
import DeferredKit
import Foundation
import JobModel
import NIOCore
import NIOEmbedded
import TestOrigin
import Testing

/// How downloads over several connections end, and how they resume after a restart.
extension SegmentedDownloadTests {
    /// Runs a download until 3 of 4 segments hang after 100,000 bytes each, and ends it as a stop does; then `body`
    /// goes on.
    private func interrupted(
        _ origin: ScriptedOrigin, _ body: (Workbench, _ fetched: Int64) async throws -> Void
    ) async throws {
        try await Workbench.run { bench in
            let deferred = try bench.start(download(origin))
            await deferred.progress(reaches: 400_000)
            await bench.library.shutdown()
            #expect(try await bench.failure(of: deferred).kind == .cancelled)
            #expect(bench.names(below: bench.downloads) == ["x.part"])
            try await body(bench, 400_000)
        }
    }

    private static let hanging: ScriptedOrigin.Script = { request, count in
        count < 4
            ? [head(request), .send(Array(bytes(request).prefix(100_000))), .hold]
            : [head(request), .send(Array(bytes(request)))]
    }

    @Test(arguments: [1, 2, 4]) func restart_goesOnWithAllSegments_whateverTheirNumberIsNow(segments: Int) async throws
    {
        try await ScriptedOrigin.run(Self.hanging) { origin in
            try await interrupted(origin) { bench, fetched in
                try await bench.restarted { bench in
                    let result = try await bench.result(download(origin, segments))
                    #expect(bench.bytes(of: bench.downloads + "/x") == Self.body)
                    #expect(result["resumedFrom"] == JSON(Int(fetched)))
                    #expect(result["status"] == 206)
                    let asked = origin.log.entries.dropFirst(4).map { $0.range.map { $0.last - $0.start + 1 } ?? 0 }
                    #expect(!asked.contains(0))
                    #expect(Int64(asked.reduce(0, +)) >= (1 << 20) - fetched)
                    #expect(origin.log.entries.dropFirst(4).contains { $0.range?.start == 100_000 })
                }
            }
        }
    }

    /// As after kill -9: the first run never ends, and a second one begins with what was noted.
    @Test func secondRun_goesOnWithAllSegments_whereFirstOneWasKilled() async throws {
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(against: Self.hanging, timers: clock) { origin, bench in
            let killed = try bench.start(download(origin))
            await killed.progress(reaches: 400_000)
            // Slowly, as it must note within a second what it has, and not give the servers up.
            while (bench[checkpoint: 1]?["written"]?.string ?? "").isEmpty {
                await clock.advanceTime(by: .milliseconds(10))
                try await Task.sleep(for: .milliseconds(1))
            }
            try await bench.restarted { second in
                let result = try await second.result(download(origin))
                #expect(result["resumedFrom"] == 400_000)
                #expect(second.bytes(of: second.downloads + "/x") == Self.body)
            }
            killed.cancel()
        }
    }

    @Test func restartOfTheMachine_goesOnWithWhatWasSynced() async throws {
        var files = FileOperations.real
        files.bootID = "another"
        try await ScriptedOrigin.run(Self.hanging) { origin in
            try await interrupted(origin) { bench, _ in
                // As after a crash that lost the pages of all but this.
                var checkpoint = try #require(bench[checkpoint: 1]?.object)
                let second = try #require(checkpoint["synced"]?.string?.split(separator: ",").dropFirst().first)
                let start = try #require(second.split(separator: "-").first.flatMap { Int($0) })
                checkpoint["synced"] = .string("0-70000,\(start)-\(start + 30_000)")
                bench[checkpoint: 1] = .object(checkpoint)
                try await bench.restarted(files: files) { bench in
                    let result = try await bench.result(download(origin))
                    #expect(bench.bytes(of: bench.downloads + "/x") == Self.body)
                    #expect(result["resumedFrom"] == JSON(70_000 + 30_000))
                }
            }
        }
    }

    // MARK: Ends

    @Test(arguments: TransferEnd.allCases, [false, true])
    func download_endsAtOnce_whateverItsConnectionsWaitFor(end: TransferEnd, isLimited: Bool) async throws {
        let clock = NIOAsyncTestingEventLoop()
        try await Workbench.run(
            against: { request, _ in
                [Self.head(request), .send(Array(Self.bytes(request).prefix(100_000))), .hold]
            }, timers: clock
        ) { origin, bench in
            let deferred = try bench.start(
                download(origin, 4, isLimited ? ["rate": 1] : [:]), timeout: 50)
            if !isLimited { await deferred.progress(reaches: 400_000) }
            await origin.log.reaches(4)
            try await bench.end(deferred, by: end, clock)
            if end == .cancel { #expect(bench.names(below: bench.downloads).isEmpty) }
        }
    }
}
