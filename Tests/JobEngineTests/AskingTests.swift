import DataSources
import Glibc
import JobCore
import JobStore
import Logging
import NIOPosix
import Synchronization
import TestSupport
import Testing

@testable import JobEngine

@Suite struct AskingTests {
    /// From a line to its answer there are at most two changes of thread, to the store and back.
    @Test func whatAnAnswerLeadsTo_isDoneOnTheThreadThatAsked_whereTheEngineHasNothingElseToDo() async throws {
        try await TemporaryDirectory.with { directory in
            let path = directory.path
            for name in ["state", "downloads", "bodies"] { mkdir(path + "/" + name, 0o700) }
            var logger = Logger(label: "asking")
            logger.logLevel = .critical
            var settings = SourceSettings()
            settings.downloads.directory = path + "/downloads"
            let library = try SourceLibrary(
                settings: settings, group: MultiThreadedEventLoopGroup.singleton, logger: logger)
            let engine = JobEngine(
                settings: EngineSettings(bodies: path + "/bodies"),
                store: try SQLiteStore(path: path + "/state") { _ in },
                library: library, logger: logger)
            try await engine.start()
            _ = await engine.probe()
            // Now and then the engine does something of its own.
            var isHere = false
            for _ in 0..<10_000 where !isHere {
                try await Task.sleep(for: .milliseconds(1))
                isHere = Self.isAnsweredHere(by: engine)
            }
            #expect(isHere)
            await engine.stop()
        }
    }

    private static func isAnsweredHere(by engine: JobEngine) -> Bool {
        let thread = pthread_self()
        let isHere = Mutex(false)
        engine.ask(.queues, for: Caller(uid: 0, isAdmin: true)) { _ in
            engine.afterwards { if pthread_self() == thread { isHere.withLock { $0 = true } } }
        }
        return isHere.withLock(\.self)
    }
}
