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
        /// The guard that is running or starting.
        var connection: Deferred<ProgramGuard, JobError>?
        var runs: [UInt64: ProgramRun] = [:]
        var lastID: UInt64 = 0
        /// Whether the directories of earlier daemons are removed.
        var isPrepared = false
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

    // MARK: - Guard

    /// Returns the guard, and starts it if it is not running.
    func connect(in directory: String, _ control: TransferControl) async throws(JobError) -> ProgramGuard {
        try await control.wait { awaited in
            let promise = Promise<ProgramGuard, JobError>()
            let present = self.state.withLock { state in
                defer { state.connection = state.connection ?? promise.deferred }
                return state.connection
            }
            (present ?? promise.deferred).upon { awaited.resolve($0) }
            guard present == nil else { return }
            // The task ends by itself, with the promise.
            Task(executorPreference: executor) { [self] in
                do throws(JobError) {
                    promise.succeed(try await startGuard(in: directory, promise.deferred))
                } catch {
                    forget(promise.deferred)
                    promise.fail(error)
                }
            }
        }
    }

    private func startGuard(
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

    /// Lets the next program start another guard.
    private func forget(_ connection: Deferred<ProgramGuard, JobError>?) {
        state.withLock { if $0.connection === connection { $0.connection = nil } }
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
        if !state.withLock(\.isPrepared) {
            await queue.run { [prefix] in
                for name in ProgramDirectory.remains(in: directory) where !name.hasPrefix(prefix) {
                    // The next start of the daemon tries again.
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
        if !isExpected { logger.error("The program guard has ended; the next program starts another.") }
        for run in runs {
            // The program was killed with the guard, but not the rest of its group.
            if let process = run.process.withLock(\.self) { kill(-process, SIGKILL) }
            run.end(with: .lost)
        }
    }

    private func received(_ reports: [deferd_guard_report]) {
        for report in reports {
            guard let run = state.withLock({ $0.runs[report.id] }) else { continue }
            let kind = deferd_guard_report_kind(rawValue: report.kind)
            switch kind {
            case DEFERD_GUARD_STARTED: run.process.withLock { $0 = report.value }
            case DEFERD_GUARD_REFUSED, DEFERD_GUARD_NO_DIRECTORY:
                forget(run)
                run.end(with: .refused(report.value, isDirectory: kind == DEFERD_GUARD_NO_DIRECTORY))
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

    func makeRun() -> ProgramRun {
        state.withLock { state in
            state.lastID += 1
            let run = ProgramRun(id: state.lastID)
            state.runs[run.id] = run
            return run
        }
    }

    /// Ends a run's process group: with SIGTERM now, with SIGKILL later by `clock`.
    func stop(_ run: ProgramRun, by clock: any EventLoop) {
        guard !run.end.deferred.isResolved, !run.isStopping.exchange(true, ordering: .relaxed) else { return }
        signal(run.id, SIGTERM)
        let kill = clock.scheduleTask(in: ProgramRun.grace) { self.signal(run.id, SIGKILL) }
        run.end.deferred.upon { _ in kill.cancel() }
    }

    func directoryName(of run: ProgramRun) -> String { "\(prefix)-\(run.id)" }

    func forget(_ run: ProgramRun) { state.withLock { $0.runs[run.id] = nil } }

    /// Whether a program is running.
    var isAtWork: Bool { state.withLock { !$0.runs.isEmpty } }

    /// Sends a signal to a run's process group, again if the guard is busy.
    private func signal(_ id: UInt64, _ number: Int32) {
        let connection = state.withLock { $0.runs[id] == nil ? nil : $0.connection }
        guard let guardian = try? connection?.outcome?.get(), !guardian.send(number, to: id) else { return }
        executor.loop.scheduleTask(in: Self.pause) { self.signal(id, number) }
    }

    /// Closes the connection to the guard, which then ends all programs and itself.
    func end() {
        let connection = state.withLock { state in
            state.isEnded = true
            return state.connection.take()
        }
        // Released outside of the lock.
        _ = connection
    }
}

/// One program from its start to the end of its process group, as the guard reports it.
final class ProgramRun: Sendable {
    enum Ending: Sendable, Equatable {
        case exited(Int)
        case signalled(Int)
        case refused(Int32, isDirectory: Bool)
        /// The program guard was killed, and the program with it.
        case lost
    }

    /// The time between SIGTERM and SIGKILL.
    static let grace = TimeAmount.seconds(5)

    let id: UInt64
    /// Resolved when the program has ended.
    let ending = Promise<Ending, Never>()
    /// Resolved when its process group has ended.
    let end = Promise<Void, Never>()
    /// The process id, once it is known.
    let process = Mutex<pid_t?>(nil)
    /// Whether it was told to end.
    let isStopping = Atomic(false)

    init(id: UInt64) { self.id = id }

    /// Whether the program has ended, but not its process group.
    var hasRemains: Bool { ending.deferred.isResolved && !end.deferred.isResolved }

    /// The whole run ends, as the guard could not start the program, or was lost.
    func end(with ending: Ending) {
        self.ending.succeed(ending)
        end.succeed(())
    }
}
