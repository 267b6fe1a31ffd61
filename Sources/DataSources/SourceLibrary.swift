import Glibc
import SystemPackage
package import DeferredKit
package import JobModel
package import Logging
import LoopTasks
package import NIOCore
import Synchronization

/// Makes the sources that jobs and links run, and checks beforehand what they may reach.
package final class SourceLibrary: Sendable {
    /// What transfers go by that start now; one that runs goes on with what it started with.
    private let rules: Mutex<SourceRules>
    private let shared: SharedServices
    private let group: any EventLoopGroup
    private let timers: (any EventLoop)?
    /// One for each loop, used in turn.
    private let executors: [LoopExecutor]
    private let turn = Atomic<Int>(0)
    /// For requests and answers.
    private let ownQueue: FileQueue
    private let programs: ProgramHost
    private let running = RunningTransfers()

    /// How long a stop waits for what the transfers do with files.
    private static let patience = TimeAmount.seconds(3)
    /// How long it waits for programs, which have five seconds from SIGTERM to SIGKILL.
    private static let programPatience = ProgramRun.grace + .seconds(1)

    /// Throws where a setting is not valid. ``shutdown()`` must be called in the end.
    ///
    /// Timeouts of attempts, idle connections and the source `timer` go by the time of `timers`, or of the group's loops without it.
    package init(
        settings: SourceSettings, group: any EventLoopGroup, timers: (any EventLoop)? = nil, logger: Logger,
        files: FileOperations = .real, lookup: @escaping NameResolver.Lookup = NameResolver.system
    ) throws(JobError) {
        self.group = group
        self.timers = timers
        executors = group.makeIterator().map(LoopExecutor.init)
        let isShared = settings.downloads.isSystemInstance
        shared = SharedServices(
            resolver: NameResolver(lookup: lookup), pool: ConnectionPool(timers: timers), files: files,
            queue: FileQueue(isShared: isShared), stateQueue: FileQueue(isShared: isShared),
            documents: DocumentBudget(limit: settings.limits.documents, perUser: settings.limits.memoryPerUser),
            logger: logger)
        ownQueue = FileQueue(isShared: isShared, threads: FileQueue.ownThreads)
        programs = ProgramHost(
            guardProgram: settings.programs.guardProgram, executor: executors[0], queue: shared.stateQueue,
            logger: logger)
        rules = Mutex(try SourceRules(settings, directories: try DownloadDirectories(settings.downloads), shared))
    }

    // MARK: - Settings

    /// Has transfers that start from now on go by other settings, but for the directories, which stay; throws where one is not
    /// valid, and then nothing changes. Whatever runs goes on as it began: its next attempt goes by the new settings.
    package func configure(_ settings: SourceSettings) throws(JobError) {
        let changed = try SourceRules(settings, directories: policy.directories, shared)
        rules.withLock { $0 = changed }
        shared.documents.configure(limit: settings.limits.documents, perUser: settings.limits.memoryPerUser)
    }

    /// What may be reached now.
    package var policy: SourcePolicy { rules.withLock(\.policy) }

    /// The source that `parameters` describe. `list` and `each` are not among them: they are made of jobs.
    package func source(_ parameters: SourceParameters, _ context: SourceContext) -> any DataSource<JSON> {
        Source { self.start(parameters, context) }
    }

    /// What a job's spec describes, to be started.
    private struct Source: DataSource {
        let begin: @Sendable () -> Deferred<JSON, any Error>

        func start() -> Deferred<JSON, any Error> { begin() }
    }

    private func start(_ parameters: SourceParameters, _ context: SourceContext) -> Deferred<JSON, any Error> {
        switch parameters {
        case .url(let spec): response(spec, context) { $0.json }
        case .json(let spec, let pointer): value(spec, at: pointer, context)
        case .download(let spec): download(spec, context)
        case .upload(let spec): upload(spec, context)
        case .value(let value): .succeeded(value)
        case .error(let kind, let message): .failed(JobError(kind, message))
        case .timer(let seconds): timer(seconds)
        case .program(let spec): program(spec, context)
        case .list, .each: preconditionFailure("The engine runs lists itself.")
        }
    }

    // What follows is the one way to transfer something, for jobs and for ``URLSource``, ``JSONSource`` and
    // ``DownloadSource`` alike.

    /// Asks for a document; its status, headers and body, as `make` has them.
    func response<Output: Sendable>(
        _ spec: HTTPRequestSpec, _ context: SourceContext, _ make: @escaping @Sendable (DocumentResponse) -> Output
    ) -> Deferred<Output, any Error> {
        document(spec, context).response(make)
    }

    /// Asks for a document that is JSON; the value at `pointer` in it.
    func value(_ spec: HTTPRequestSpec, at pointer: JSONPointer, _ context: SourceContext) -> Deferred<JSON, any Error>
    {
        document(spec, context).value(at: pointer)
    }

    private func document(_ spec: HTTPRequestSpec, _ context: SourceContext) -> DocumentTransfer {
        var bodiless = spec
        bodiless.body = nil
        return DocumentTransfer(
            spec: bodiless, body: Handover(spec.body), rules: rules.withLock(\.self), shared: shared, context: context,
            task: task(context))
    }

    private func services(for owner: UInt32, below directories: DownloadDirectories? = nil) -> DownloadServices {
        let rules = rules.withLock(\.self)
        return DownloadServices(rules, shared, for: owner, below: directories ?? rules.policy.directories)
    }

    /// Fetches a file: into `directory`, or where the settings say.
    func download(
        _ spec: DownloadSpec, below directory: DownloadDirectories? = nil, _ context: SourceContext
    ) -> Deferred<JSON, any Error> {
        let services = services(for: context.owner, below: directory)
        return task(context).start { handle async throws(JobError) in
            try await DownloadAttempt(spec: spec, context: context, services: services, handle: handle).run()
        }
    }

    /// Sends a file.
    func upload(_ spec: UploadSpec, _ context: SourceContext) -> Deferred<JSON, any Error> {
        let services = services(for: context.owner)
        return task(context).start { handle async throws(JobError) in
            try await UploadTransfer(spec: spec, context: context, services: services, handle: handle).run()
        }
    }

    /// Runs a program. Cancelled, it ends when its group has.
    private func program(_ spec: ProgramSpec, _ context: SourceContext) -> Deferred<JSON, any Error> {
        let settings = rules.withLock(\.settings)
        let command: ProgramCommand
        do throws(JobError) {
            command = try ProgramCommand(spec, context, settings: settings.programs, limits: settings.limits)
        } catch {
            return .failed(error)
        }
        var rest = spec
        rest.input = nil
        let input = Handover(spec.input)
        return task(context, timeout: command.timeout).startAwaitingEnd { [self, rest] handle async throws(JobError) in
            try await ProgramAttempt(
                spec: rest, input: input, command: command, context: context, settings: settings, host: programs,
                shared: shared, handle: handle
            ).run()
        }
    }

    /// Removes what programs of an earlier daemon left behind, in the background; says so where none can be started.
    package func removeForgottenPrograms() {
        let settings = rules.withLock(\.settings.programs)
        if settings.allowsAny || !settings.entries.isEmpty, access(settings.guardProgram, X_OK) != 0 {
            shared.logger.error(
                "No program can be started, as their guard \(settings.guardProgram) cannot: \(Errno(rawValue: errno)); install it beside deferd."
            )
        }
        programs.removeRemains(in: settings.directory)
    }

    /// `null` after some seconds of an event loop's clock.
    private func timer(_ seconds: Double) -> Deferred<JSON, any Error> {
        let promise = Promise<JSON, any Error>()
        let timer = (timers ?? group.next()).scheduleTask(in: .seconds(saturating: seconds)) {
            _ = promise.succeed(.null)
        }
        promise.deferred.upon { _ in timer.cancel() }
        return promise.deferred
    }

    /// An event loop of the library's as an executor, for tasks that belong to nothing that runs on one.
    package var executor: any TaskExecutor { executors[0] }

    /// Runs what takes long or blocks, but names no file of a user's, among what is done for `owner`.
    package func blocking<Value: Sendable, Failure: Error>(
        for owner: UInt32, _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await ownQueue.of(owner).run(body)
    }

    /// The same without a task that waits for it.
    package func startBlocking(for owner: UInt32, _ body: @escaping @Sendable () -> Void) {
        ownQueue.of(owner).start(body)
    }

    /// Runs what may wait for the file systems of `owner`, among what is done with their files.
    package func startWithFiles(of owner: UInt32, _ body: @escaping @Sendable () -> Void) {
        shared.queue.of(owner).start(body)
    }

    private func task(_ context: SourceContext) -> TransferTask { task(context, timeout: context.timeout) }

    private func task(_ context: SourceContext, timeout: Double?) -> TransferTask {
        let executor = executors[turn.add(1, ordering: .relaxed).newValue % executors.count]
        return TransferTask(
            running: running, executor: executor, timers: timers ?? executor.loop, owner: context.owner,
            timeout: timeout)
    }

    /// The most transfers that ``keepFiles(of:)`` keeps the files of.
    package static let mostUnfinished = FileReservations.mostWaiting

    /// Keeps the files of downloads that an earlier daemon did not finish for their jobs.
    package func keepFiles(of transfers: [UnfinishedTransfer]) {
        for transfer in transfers {
            guard let checkpoint = DownloadCheckpoint(transfer.checkpoint),
                let path = try? checkpoint.path(of: transfer.owner, below: policy.directories)
            else { continue }
            shared.reservations.keep(
                path.key(path.name),
                for: FileReservations.Writer(job: transfer.job, owner: transfer.owner, link: transfer.link))
        }
    }

    /// Removes what an unfinished download of `owner` has kept, by its checkpoint, for a retry that will not come; for a job
    /// that is not running.
    package func discard(_ checkpoint: JSON, of job: JobID, owner: UInt32) async {
        defer { shared.reservations.endWaiting(of: job) }
        guard let checkpoint = DownloadCheckpoint(checkpoint) else { return }
        await services(for: owner).discardPart(of: checkpoint, owner: owner)
    }

    /// Breaks off what still runs, closes all connections and ends the threads.
    ///
    /// Transfers fail with kind `cancelled`, which is no outcome to keep: downloads have kept what a later run goes on
    /// with. The store must still accept their checkpoints meanwhile.
    package func shutdown() async {
        let clock = timers ?? group.next()
        let left = await running.stop(
            patience: programs.isAtWork ? Self.programPatience : Self.patience, by: clock)
        if left > 0 {
            shared.logger.warning(
                "Some transfers did not end in time, so they are left.", metadata: ["transfers": "\(left)"])
        }
        shared.pool.close()
        programs.end()
        shared.resolver.end()
        await ownQueue.shutdown()
        // Threads that a file system holds up cannot be waited for.
        if left == 0 {
            await shared.stateQueue.shutdown()
            await shared.queue.shutdown()
        }
    }

    /// The same without waiting, for one that nothing runs in any more.
    func end() {
        shared.pool.close()
        programs.end()
        shared.resolver.end()
        for queue in [shared.queue, shared.stateQueue, ownQueue] { queue.end() }
    }
}
