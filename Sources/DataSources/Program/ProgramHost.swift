import CLinux
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
        var connection: ProgramGuard?
        /// How many guards were started, and which of them ended last.
        var guards = 0
        var endedGuard = 0
        var isStarting = false
        var waiting: [Delivery<Result<ProgramGuard, JobError>>] = []
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
    func connect(in directory: String, _ control: TransferControl) async throws(JobError) -> ProgramGuard {
        try await control.wait { delivery in
            let (connection, mustStart) = self.state.withLock { state -> (ProgramGuard?, Bool) in
                if let connection = state.connection { return (connection, false) }
                state.waiting.append(delivery)
                defer { state.isStarting = true }
                return (nil, !state.isStarting)
            }
            if let connection { delivery.deliver(.success(connection)) }
            guard mustStart else { return }
            // It ends by itself, and has delivered by then.
            Task(executorPreference: executor) { [self] in
                let result = await begin(in: directory)
                let waiting = state.withLock { state in
                    state.isStarting = false
                    defer { state.waiting = [] }
                    return state.waiting
                }
                for delivery in waiting { delivery.deliver(result) }
            }
        }
    }

    private func begin(in directory: String) async -> Result<ProgramGuard, JobError> {
        let lock: Int32
        do throws(Errno) { lock = try await prepare(directory) } catch {
            return .failure(JobError(storage: error, "prepared for programs", directory))
        }
        let number = state.withLock { state in
            state.guards += 1
            return state.guards
        }
        do throws(JobError) {
            let connection = try await ProgramGuard.start(
                guardProgram, lock: lock, on: executor.loop, queue: queue,
                received: { [weak self] in self?.received($0) }, ended: { [weak self] in self?.guardEnded(number) })
            // One that has ended meanwhile would be of no use to any program.
            state.withLock { if $0.endedGuard != number { $0.connection = connection } }
            return .success(connection)
        } catch {
            return .failure(error)
        }
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
                logger.warning("Programs of an earlier daemon have not ended; others are started all the same.")
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

    private func guardEnded(_ number: Int) {
        let (runs, isExpected) = state.withLock { state in
            state.connection = nil
            state.endedGuard = number
            defer { state.runs = [:] }
            return (Array(state.runs.values), state.isEnded)
        }
        if !isExpected {
            logger.error("The program guard has ended; the next program starts another.")
        }
        for run in runs {
            // The program was killed with the guard; the rest of its group is ended here.
            if let process = run.process { kill(-process, SIGKILL) }
            run.exited(.lost)
            run.ended()
        }
    }

    private func received(_ reports: [ProgramGuard.Report]) {
        for report in reports {
            guard let run = state.withLock({ $0.runs[report.id] }) else { continue }
            switch report.kind {
            case DEFERD_GUARD_STARTED: run.started(report.value)
            case DEFERD_GUARD_REFUSED, DEFERD_GUARD_NO_DIRECTORY:
                forget(run)
                run.exited(.refused(report.value, isDirectory: report.kind == DEFERD_GUARD_NO_DIRECTORY))
                run.ended()
            case DEFERD_GUARD_EXITED:
                run.exited(.exited(Int(report.value)))
            case DEFERD_GUARD_SIGNALLED:
                run.exited(.signalled(Int(report.value)))
            case DEFERD_GUARD_ENDED:
                forget(run)
                run.ended()
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
        guard let connection, !connection.send(number, to: id) else { return }
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
