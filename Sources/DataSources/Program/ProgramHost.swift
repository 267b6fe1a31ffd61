import CLinux
import DeferredKit
import Glibc
import JobModel
import Logging
import LoopTasks
import NIOCore
import Synchronization
import SystemPackage

/// What all programs share: the guard, which the first program starts, and the directory for their own directories.
final class ProgramHost: Sendable {
    private struct State {
        var connection: Deferred<ProgramGuard, JobError>?
        var isEnded = false
    }

    private let state = Mutex(State())
    /// The beginning of the names of this daemon's directories.
    private let prefix = String(UInt64.random(in: 0...UInt64.max), radix: 36)
    private let executor: LoopExecutor
    private let queue: FileQueue
    private let logger: Logger
    private let guardProgram: String

    init(guardProgram: String, executor: LoopExecutor, queue: FileQueue, logger: Logger) {
        self.guardProgram = guardProgram
        self.executor = executor
        self.queue = queue
        self.logger = logger
    }

    /// How long a program waits until the guard of an earlier daemon has ended its programs.
    private static let patience = TimeAmount.seconds(10)
    private static let pause = TimeAmount.milliseconds(50)

    func directoryName(of run: ProgramRun) -> String { "\(prefix)-\(run.id)" }

    /// Returns the guard, and starts it if it is not running.
    func connect(in directory: String, _ control: TransferControl) async throws(JobError) -> ProgramGuard {
        let promise = Promise<ProgramGuard, JobError>()
        let present = state.withLock { state in
            defer { state.connection = state.connection ?? promise.deferred }
            return state.connection
        }
        if present == nil {
            // The task ends by itself, with the promise.
            Task(executorPreference: executor) { [self] in
                do throws(JobError) {
                    promise.succeed(try await startGuard(in: directory))
                } catch {
                    state.withLock { $0.connection = nil }
                    promise.fail(error)
                }
            }
        }
        return try await control.wait { awaited in (present ?? promise.deferred).upon { awaited.resolve($0) } }
    }

    private func startGuard(in directory: String) async throws(JobError) -> ProgramGuard {
        let lock: Int32
        do throws(Errno) { lock = try await prepare(directory) } catch {
            throw JobError(storage: error, "prepared for programs", directory)
        }
        return try await ProgramGuard.start(guardProgram, lock: lock, on: executor, queue: queue) { [weak self] in
            guard let self else { return }
            let isExpected = state.withLock { state in
                state.connection = nil
                return state.isEnded
            }
            if !isExpected { logger.error("The program guard has ended; the next program starts another.") }
        }
    }

    /// Removes the directories of an earlier daemon's programs; the guard that this starts waits for the next program.
    func removeRemains(in directory: String) {
        // The task ends by itself.
        Task(executorPreference: executor) { [self] in
            if await queue.run({ ProgramDirectory.remains(in: directory).isEmpty }) { return }
            // If the guard cannot be started, the next program reports the reason.
            _ = try? await connect(in: directory, TransferControl(executor.loop))
        }
    }

    /// Makes the directory and waits for the programs of an earlier daemon; returns the lock on the directory.
    private func prepare(_ directory: String) async throws(Errno) -> Int32 {
        let lock = try await queue.run { () throws(Errno) in try ProgramDirectory.open(directory) }
        let deadline = executor.loop.now + Self.patience
        while deferd_try_lock(lock) != 0 {
            guard executor.loop.now < deadline else {
                logger.warning("Programs of an earlier daemon are still running; others are started nevertheless.")
                break
            }
            try? await LoopClock(executor.loop).sleep(for: .nanoseconds(Self.pause.nanoseconds))
        }
        await queue.run { [prefix] in
            for name in ProgramDirectory.remains(in: directory) where !name.hasPrefix(prefix) {
                // The next start tries again.
                try? ProgramDirectory.remove(name, in: directory)
            }
        }
        return lock
    }

    private var present: ProgramGuard? { try? state.withLock(\.connection)?.outcome?.get() }

    var isAtWork: Bool { present?.hasRuns ?? false }

    /// Lets the guard end all programs and itself.
    func end() {
        state.withLock { $0.isEnded = true }
        present?.end()
    }
}
