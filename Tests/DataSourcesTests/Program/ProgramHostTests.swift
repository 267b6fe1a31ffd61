import Foundation
import JobModel
import Logging
import LoopTasks
import NIOPosix
import Synchronization
import Testing

@testable import DataSources

/// The guard that all programs share.
@Suite struct ProgramHostTests {
    @Test func guardThatEndsAsItIsStarted_isNotKept() async throws {
        let directory = NSTemporaryDirectory() + "deferd-host-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let executor = LoopTasks.LoopExecutor(MultiThreadedEventLoopGroup.singleton.next())
        let queue = FileQueue(isShared: false)
        let starts = Mutex(0)
        let program = ProgramSettings().guardProgram
        let host = ProgramHost(
            executor: executor, queue: queue, logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        ) { lock, received, ended async throws(JobError) in
            let number = starts.withLock { starts in
                starts += 1
                return starts
            }
            let connection = try await ProgramGuard.start(
                program, lock: lock, on: executor.loop, queue: queue, received: received, ended: {})
            // The first has ended before anybody was told that it runs.
            if number == 1 { ended() }
            return connection
        }
        for _ in 1...3 { _ = try await host.connect(in: directory, TransferControl()) }
        #expect(starts.withLock(\.self) == 2)
        host.end()
        await queue.shutdown()
    }
}
