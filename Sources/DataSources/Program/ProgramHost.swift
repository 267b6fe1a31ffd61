import CLinux
import DeferredKit
import Glibc
import JobModel
import Logging
import LoopTasks
import NIOCore
import Synchronization
import SystemPackage

/// Everything that all programs share: the guard, which the first one starts, and the directory that theirs are made in.
final class ProgramHost: Sendable {
    private struct State {
        /// The guard that runs or is being started.
        var connection: Deferred<ProgramGuard, JobError>?
        var runs: [UInt64: ProgramRun] = [:]
        var lastID: UInt64 = 0
        var isPrepared = false
        var isEnded = false
    }

    private let state = Mutex(State())
    /// Tells the directories of this daemon's programs from those of others.
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

    /// How long a program waits for those of an earlier daemon to end, which its guard sees to.
    private static let patience = TimeAmount.seconds(10)
    private static let pause = TimeAmount.milliseconds(50)

    // MARK: - The guard

    /// The guard, which is started where there is none.
    func connect(in directory: String, _ control: TransferControl) async throws(JobError)
        -> ProgramGuard
    {
        try await control.wait { awaited in
            let promise = Promise<ProgramGuard, JobError>()
            let present = self.state.withLock { state in
                defer { state.connection = state.connection ?? promise.deferred }
                return state.connection
            }
            (present ?? promise.deferred).upon { awaited.resolve($0) }
            guard present == nil else { return }
            // It ends by itself.
            Task(executorPreference: executor) { [self] in
                do throws(JobError) {
                    promise.succeed(try await begin(in: directory, promise.deferred))
                } catch {
                    forget(promise.deferred)
                    promise.fail(error)
                }
            }
        }
    }

    private func begin(
        in directory: String, _ connection: Deferred<ProgramGuard, JobError>
    ) async throws(JobError) -> ProgramGuard {
        let lock: Int32
        do throws(Errno) { lock = try await prepare(directory) } catch {
            throw JobError(storage: error, "prepared for programs", directory)
        }
        return try await ProgramGuard.start(
            guardProgram, lock: lock, on: executor, queue: queue,
            received: { [weak self] in self?.received($0) },
            ended: { [weak self, weak connection] in self?.guardEnded(connection) })
    }

    /// Has the next program start another guard.
    private func forget(_ connection: Deferred<ProgramGuard, JobError>?) {
        state.withLock { if $0.connection === connection { $0.connection = nil } }
    }

    /// Removes what programs of an earlier daemon left behind, where there is any, without being asked for a program: the guard
    /// that is started for that waits for the next one.
    func removeRemains(in directory: String) {
        // It ends by itself.
        Task(executorPreference: executor) { [self] in
            if await queue.run({ ProgramDirectory.remains(in: directory).isEmpty }) { return }
            // Where it cannot be started, the next program says why.
            _ = try? await connect(in: directory, TransferControl())
        }
    }

    /// Makes the directory, and waits for the programs of an earlier daemon; gives the lock on it.
    private func prepare(_ directory: String) async throws(Errno) -> Int32 {
        let lock = try await queue.run { () throws(Errno) in try ProgramDirectory.open(directory) }
        let deadline = executor.loop.now + Self.patience
        while deferd_try_lock(lock) != 0 {
            guard executor.loop.now < deadline else {
                logger.warning(
                    "Programs of an earlier daemon have not ended; others are started all the same.")
                break
            }
            // Nothing cancels it.
            try? await LoopClock(executor.loop).sleep(for: .nanoseconds(Self.pause.nanoseconds))
        }
        if !state.withLock({ $0.isPrepared }) {
            await queue.run { [prefix] in
                for name in ProgramDirectory.remains(in: directory) where !name.hasPrefix(prefix) {
                    // What cannot be removed is tried again at the next start.
                    try? ProgramDirectory.remove(name, in: directory)
                }
            }
            state.withLock { $0.isPrepared = true }
        }
        return lock
    }

    private func guardEnded(_ connection: Deferred<ProgramGuard, JobError>?) {
        forget(connection)
        let (runs, isExpected) = state.withLock { state in
            defer { state.runs = [:] }
            return (Array(state.runs.values), state.isEnded)
        }
        if !isExpected {
            logger.error("The program guard has ended; the next program starts another.")
        }
        for run in runs {
            // The program was killed with the guard; the rest of its group is ended here.
            if let process = run.process { kill(-process, SIGKILL) }
            run.ending.succeed(.lost)
            run.end.succeed(())
        }
    }

    private func received(_ reports: [ProgramGuard.Report]) {
        for report in reports {
            guard let run = state.withLock({ $0.runs[report.id] }) else { continue }
            switch report.kind {
            case DEFERD_GUARD_STARTED: run.started(report.value)
            case DEFERD_GUARD_REFUSED, DEFERD_GUARD_NO_DIRECTORY:
                forget(run)
                run.ending.succeed(
                    .refused(report.value, isDirectory: report.kind == DEFERD_GUARD_NO_DIRECTORY))
                run.end.succeed(())
            case DEFERD_GUARD_EXITED: run.ending.succeed(.exited(Int(report.value)))
            case DEFERD_GUARD_SIGNALLED: run.ending.succeed(.signalled(Int(report.value)))
            case DEFERD_GUARD_ENDED:
                forget(run)
                run.end.succeed(())
            default: break
            }
        }
    }

    // MARK: - Runs

    /// A new run; its timers go by `clock`.
    func makeRun(clock: any EventLoop) -> ProgramRun {
        state.withLock { state in
            state.lastID += 1
            let run = ProgramRun(id: state.lastID, clock: clock) { [weak self] in self?.signal($0, $1) }
            state.runs[run.id] = run
            return run
        }
    }

    /// The name of the run's own directory.
    func directoryName(of run: ProgramRun) -> String { "\(prefix)-\(run.id)" }

    func forget(_ run: ProgramRun) {
        state.withLock { $0.runs[run.id] = nil }
    }

    /// Whether there is a program that has not ended.
    var isAtWork: Bool { state.withLock { !$0.runs.isEmpty } }

    private func signal(_ id: UInt64, _ number: Int32) {
        let connection = state.withLock { $0.runs[id] == nil ? nil : $0.connection }
        guard let guardian = try? connection?.outcome?.get(), !guardian.send(number, to: id) else {
            return
        }
        executor.loop.scheduleTask(in: Self.pause) { self.signal(id, number) }
    }

    /// Closes the connection to the guard, which ends what still runs, and itself.
    func end() {
        let connection = state.withLock { state in
            state.isEnded = true
            defer { state.connection = nil }
            return state.connection
        }
        _ = connection
    }
}
