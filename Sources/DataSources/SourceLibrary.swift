import Glibc
import SystemPackage
package import DeferredKit
package import JobModel
package import Logging
package import LoopTasks
package import NIOCore
import Synchronization

/// Makes the sources of jobs and links, and checks beforehand what they may reach.
package final class SourceLibrary: Sendable {
    /// The rules for transfers that start now; a running transfer keeps those that it started with.
    private let rulesNow: Mutex<SourceRules>
    let shared: SharedServices
    let group: any EventLoopGroup
    /// Threads for requests and answers.
    private let requestQueue: FileQueue
    private let programs: ProgramHost
    let running = RunningTransfers()

    /// How long a stop waits for file operations of transfers.
    private static let patience = TimeAmount.seconds(3)
    /// How long a stop waits for programs, which get SIGKILL five seconds after SIGTERM.
    private static let programPatience = ProgramRun.grace + .seconds(1)
    private static let requestThreads = 4

    /// Throws if a setting is not valid. ``shutdown()`` must be called in the end.
    package init(
        settings: SourceSettings, group: any EventLoopGroup, timers: (any EventLoop)? = nil, logger: Logger,
        files: FileOperations = .real, lookup: @escaping NameResolver.Lookup = NameResolver.system
    ) throws(JobError) {
        self.group = group
        executor = LoopExecutor(group.next())
        let isShared = settings.downloads.isSystemInstance
        shared = SharedServices(
            lookup: lookup, timers: timers, files: files,
            userFiles: FileQueue(isShared: isShared), ownFiles: FileQueue(isShared: isShared),
            documents: DocumentBudget(limit: settings.limits.documents, perUser: settings.limits.memoryPerUser),
            logger: logger)
        requestQueue = FileQueue(isShared: isShared, threads: Self.requestThreads)
        programs = ProgramHost(
            guardProgram: settings.programs.guardProgram, executor: executor, queue: shared.ownFiles,
            logger: logger)
        rulesNow = Mutex(try SourceRules(settings, directories: try DownloadDirectories(settings.downloads), shared))
    }

    // MARK: - Settings

    /// Applies other settings, except for directories, to transfers that start from now on; throws if one is not valid.
    package func configure(_ settings: SourceSettings) throws(JobError) {
        let changed = try SourceRules(settings, directories: rules.directories, shared)
        rulesNow.withLock { $0 = changed }
        shared.documents.configure(limit: settings.limits.documents, perUser: settings.limits.memoryPerUser)
    }

    package var rules: SourceRules { rulesNow.withLock(\.self) }

    // MARK: - Sources

    /// Starts the source that `parameters` describe, if that is not one which the engine carries out itself.
    package func start(_ parameters: SourceParameters, _ context: SourceContext) -> Deferred<JSON, any Error> {
        switch parameters {
        case .url(let spec):
            document(spec, context) { document async throws(JobError) in try await document.response().json }
        case .json(let spec, let pointer):
            document(spec, context) { document async throws(JobError) in try await document.value(at: pointer) }
        case .download(let spec): download(spec, context)
        case .upload(let spec):
            start(context) { transfer async throws(JobError) in try await transfer.upload(spec) }
        case .program(let spec): program(spec, context)
        case .value, .error, .timer, .list, .each, .job: preconditionFailure("The engine carries these out itself.")
        }
    }

    /// Requests a document; `receive` makes the output of it.
    func document<Output: Sendable>(
        _ spec: HTTPRequestSpec, _ context: SourceContext,
        _ receive: @escaping @Sendable (DocumentTransfer) async throws(JobError) -> Output
    ) -> Deferred<Output, any Error> {
        var rest = spec
        rest.body = nil
        let body = Handover(spec.body)
        return start(context) { [rest] transfer async throws(JobError) in
            try await receive(DocumentTransfer(spec: rest, body: body, transfer: transfer))
        }
    }

    /// Fetches a file into `directories`, by default those of the settings.
    func download(
        _ spec: DownloadSpec, below directories: DownloadDirectories? = nil, _ context: SourceContext
    ) -> Deferred<JSON, any Error> {
        start(context) { transfer async throws(JobError) in
            try await DownloadAttempt(spec, below: directories ?? transfer.rules.directories, transfer).run()
        }
    }

    /// Runs a program; if it is cancelled, it ends with its process group.
    private func program(_ spec: ProgramSpec, _ context: SourceContext) -> Deferred<JSON, any Error> {
        let command: ProgramCommand
        do throws(JobError) {
            command = try ProgramCommand(spec, context, rules.settings)
        } catch {
            return .failed(error)
        }
        var rest = spec
        rest.input = nil
        let input = Handover(spec.input)
        // With a typed failure, a cancelled transfer fails once its steps have ended.
        let work = start(context, timeout: command.timeout) { [programs, rest] transfer async throws(JobError) in
            try await ProgramAttempt(
                spec: rest, input: input, command: command, host: programs, transfer: transfer
            ).run()
        } failure: {
            $0
        }
        return work.erased()
    }

    // MARK: - Threads for the engine

    /// An executor for tasks that belong to no transfer.
    package let executor: LoopExecutor

    /// Threads for work on behalf of `owner` that is slow or blocks, but uses no file of a user.
    package func threads(for owner: UInt32) -> FileQueue { requestQueue.of(owner) }

    /// Threads for work that may wait for the file systems of `owner`.
    package func fileThreads(of owner: UInt32) -> FileQueue { shared.userFiles.of(owner) }

    // MARK: - What an earlier daemon left

    /// Removes the files of programs of an earlier daemon, and logs an error if no program can be started.
    package func removeForgottenPrograms() {
        let settings = rules.settings.programs
        if settings.allowsAny || !settings.entries.isEmpty, access(settings.guardProgram, X_OK) != 0 {
            shared.logger.error(
                "No program can be started, because \(settings.guardProgram) cannot: \(Errno(rawValue: errno)); install it beside deferd."
            )
        }
        programs.removeRemains(in: settings.directory)
    }

    /// Removes the `.part` of an unfinished download of `owner` whose job is not running and will not retry.
    package func discard(_ checkpoint: JSON, of owner: UInt32) async {
        guard let checkpoint = DownloadCheckpoint(checkpoint) else { return }
        await shared.discardPart(of: checkpoint, owner: owner, below: rules.directories)
    }

    // MARK: - End

    /// Stops all transfers, closes all connections and ends the threads.
    ///
    /// Transfers fail with kind `cancelled`; downloads keep what a later run resumes. The store must accept their
    /// checkpoints meanwhile.
    package func shutdown() async {
        let left = await running.stop(
            patience: programs.isAtWork ? Self.programPatience : Self.patience, by: shared.timers ?? group.next())
        if left > 0 {
            shared.logger.warning(
                "Some transfers did not end in time and were abandoned.", metadata: ["transfers": "\(left)"])
        }
        endConnections()
        await requestQueue.shutdown()
        // Threads that a file system blocks cannot be waited for.
        guard left == 0 else { return }
        await shared.ownFiles.shutdown()
        await shared.userFiles.shutdown()
    }

    /// The same without waiting, for a library in which nothing runs.
    func end() {
        endConnections()
        for queue in [shared.userFiles, shared.ownFiles, requestQueue] { queue.end() }
    }

    private func endConnections() {
        rules.pool.close()
        programs.end()
        shared.names.end()
    }
}

/// The objects that a library has once, whatever its settings are.
struct SharedServices: Sendable {
    let lookup: NameResolver.Lookup
    /// Threads for lookups of names. A lookup does not start if its transfer has given up.
    let names = FileQueue(threads: NameResolver.total, perUser: NameResolver.perUser)
    /// The event loop that measures time in tests; nil for the loop of each connection.
    let timers: (any EventLoop)?
    let reservations = FileReservations()
    /// The bytes that running downloads still expect, by the number of the disk.
    let expected = LeaseBook<UInt64>()
    let files: FileOperations
    /// Threads for users' files. Slow file systems may block all of them, so other work has its own threads.
    let userFiles: FileQueue
    /// Threads for the daemon's own files: documents, programs and certificates.
    let ownFiles: FileQueue
    let documents: DocumentBudget
    /// The bytes of request bodies, inputs and output of programs in files, by the user.
    let spills = LeaseBook<UInt32>()
    let logger: Logger
}

extension SharedServices {
    /// Removes the `.part` that a checkpoint describes.
    func discardPart(
        of checkpoint: DownloadCheckpoint, owner: UInt32, below directories: DownloadDirectories
    ) async {
        guard let path = try? checkpoint.path(of: owner, below: directories) else { return }
        do throws(Errno) {
            try await userFiles.of(owner).run { [files] () throws(Errno) in
                try DownloadTarget.discardPart(path, checkpoint, files)
            }
        } catch {
            logger.warning(
                "The file of an unfinished download could not be removed.",
                metadata: ["path": "\(path.absolute(checkpoint.name))", "error": "\(error)"])
        }
    }
}
