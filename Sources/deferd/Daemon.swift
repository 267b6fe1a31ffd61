import DataSources
import Dispatch
import FoundationEssentials
import Glibc
import JobCore
import JobEngine
import JobModel
import JobProtocol
import JobServer
import JobStore
#if canImport(PostgreSQLStore)
    import PostgreSQLStore
#endif
import Logging
import NIOPosix
import ServiceLifecycle
import SystemPackage
import Systemd
import UnixSignals

/// The daemon, assembled from its configuration.
struct Daemon {
    /// Why it cannot start: an exit code, and a sentence.
    struct StartError: Error {
        let code: ExitStatus
        let message: String
    }

    let configuration: Configuration
    let flags: Configuration.Flags
    let sockets: [ListenSocket]
    let level: DaemonLogHandler.Level
    let hangUps: UnixSignalsSequence
    let logger: Logger

    /// Runs until it is told to stop.
    func run() async throws {
        StartSignals.opensState()
        let store = try openStore()
        let clock = try clock(of: store)
        let startedAt = clock.wall()
        let group = MultiThreadedEventLoopGroup.singleton
        try makeDirectory(store.blobs)
        if configuration.downloads.isSystemInstance { makeDownloads(configuration.downloads.directory) }
        for warning in configuration.warnings { logger.warning("\(warning)") }
        let listener = try listen()
        // It must be shut down from here on.
        let library = try SourceLibrary(settings: configuration.sources, group: group, logger: logger)
        let engine: Engine
        do {
            engine = try Engine(
                settings: configuration.engine, store: store, reader: store.jobReader, library: library,
                blobs: store.blobs, archive: store.blobArchive, clock: clock, logger: logger)
            try await engine.start(store.isAfterCleanStop || store.isAfterBoot ? .clean : .crashed)
        } catch {
            await library.shutdown()
            throw error
        }
        let state = ServerState(
            version: ProductVersion.current, startedAt: startedAt, adminGroup: configuration.adminGroupID,
            logger: logger)
        let server = JobServer(engine: engine, listener: listener, group: group, state: state)
        let reload = Reload(
            present: configuration, flags: flags, store: store, engine: engine, server: state, level: level,
            logger: logger)
        let supervision = Supervision(
            engine: engine, group: group, reload: reload, hangUps: hangUps, logger: logger)
        logger.notice(
            "deferd \(ProductVersion.current) serves.",
            metadata: [
                "event": "\(CatalogEvent.serving.name)",
                "socket": "\(listener.path ?? "passed by the service manager")",
                "state": "\(configuration.stateDirectory)", "store": "\(engine.settings.store.rawValue)",
            ])
        if let store = store as? SQLiteStore { check(store) }
        // Without names, each is printed with all that it refers to, which takes a third of the start.
        var plan = ServiceGroupConfiguration(
            services: [
                .init(
                    service: supervision, successTerminationBehavior: .gracefullyShutdownGroup,
                    serviceName: "supervision"),
                .init(service: server, successTerminationBehavior: .gracefullyShutdownGroup, serviceName: "server"),
            ],
            gracefulShutdownSignals: [.sigterm, .sigint],
            logger: Logger(label: "deferd.services") { _ in SwiftLogNoOpLogHandler() })
        plan.maximumGracefulShutdownDuration = .seconds(4)
        do {
            try await ServiceGroup(configuration: plan).run()
        } catch {
            // A client that does not read must not keep the daemon from storing and closing the rest.
            logger.warning("Not all connections ended in time.", metadata: ["error": "\(error)"])
        }
        let isClean = await engine.stop()
        store.close(isClean: isClean)
        // This does not wait for a copy of the state: closing the store has ended it.
        engine.blobs.removals.sync {}
        logger.notice(
            isClean
                ? "deferd has stopped; every job is stored."
                : "deferd has stopped, but could not store everything; the next start repeats the rest, as after a crash.",
            metadata: ["event": "\(CatalogEvent.stopped.name)"])
    }

    /// Users can pass through the directory to their own, but not list it, whatever the umask is.
    private func makeDownloads(_ path: String) {
        // If this fails, the first download reports it.
        try? FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o711])
    }

    private func openStore() throws -> any StateStore {
        let logger = logger
        let report: @Sendable (StoreError) -> Void = { error in
            if error.code == .damaged { return Self.reportDamage(error.message, logger) }
            logger.error(
                "A stored job cannot be read.",
                metadata: ["event": "\(CatalogEvent.jobUnreadable.name)", "error": "\(error.message)"])
        }
        #if canImport(PostgreSQLStore)
            if let address = configuration.store {
                let store = try PostgreSQLStore(address: address, configuration, report: report)
                if store.isPooled {
                    logger.notice(
                        """
                        This node reaches PostgreSQL through a pooler, so it asks twice a second for changes of \
                        other nodes, and does not show progress there; connect to the server itself to change that.
                        """)
                }
                return store
            }
        #endif
        return try SQLiteStore(path: configuration.stateDirectory, report: report) { error in
            guard let error else { return logger.notice("The log can be written into the database again.") }
            logger.warning(
                "The log cannot be written into the database, so it grows.",
                metadata: ["event": "\(CatalogEvent.logStuck.name)", "error": "\(error.message)"])
        }
    }

    /// Checks the database in the background if the last daemon did not close it.
    private func check(_ store: SQLiteStore) {
        guard store.wasLeftOpen else { return }
        store.reader.check { [logger] flaws in
            for flaw in flaws { Self.reportDamage(flaw, logger) }
            if flaws.isEmpty { logger.notice("The last daemon did not close its database; a check found it whole.") }
        }
    }

    private static func reportDamage(_ flaw: String, _ logger: Logger) {
        logger.error(
            "The database is damaged.",
            metadata: ["event": "\(CatalogEvent.stateDamaged.name)", "error": "\(flaw)"])
    }

    /// A steady clock that continues within a boot; after another boot, it starts from the time of day.
    private func clock(of store: any StateStore) throws -> EngineClock {
        let sinceBoot = EngineClock.system(steadyAnchor: 0)
        let fresh = sinceBoot.wall().milliseconds - sinceBoot.steady()
        return .system(steadyAnchor: try store.steadyAnchor(boot: FileOperations.systemBootID, fresh: fresh))
    }

    private func listen() throws(ListenerError) -> Listener {
        let stored = sockets.filter { $0.name == Self.storedName }
        let passed = sockets.filter { $0.name != Self.storedName }
        guard passed.count(where: { $0.name == "deferd" }) <= 1 else {
            throw ListenerError(
                "The service manager passed several sockets to listen on; leave one ListenStream= in deferd.socket.")
        }
        if let passed = passed.first(where: { $0.name == "deferd" }) ?? passed.first {
            forget(stored)
            return Listener(adopting: passed.descriptor)
        }
        let (path, mode, group) = (configuration.socketPath, configuration.socketMode, configuration.socketGroup)
        if let socket = stored.first {
            let resumed = try Listener(resuming: socket.descriptor, path: path, mode: mode, group: group)
            if let resumed { return resumed }
            forget(stored)
        }
        try? makeDirectory("/" + path.split(separator: "/").dropLast().joined(separator: "/"), mode: 0o755)
        var listener = try Listener(path: path, mode: mode, group: group)
        listener.isKept = store(listener.descriptor)
        return listener
    }

    /// The name of the daemon's own socket in the service manager's store.
    private static let storedName = "listener"

    /// Stores the socket for the next daemon, so that clients can connect meanwhile; returns whether it was stored.
    private func store(_ descriptor: Int32) -> Bool {
        // systemd 254 and later set this variable; for earlier versions, the unit does.
        let room = ProcessInfo.processInfo.environment["FDSTORE"].flatMap { Int($0) } ?? 0
        guard room > 0, ServiceNotifier().isActive else { return false }
        do {
            try ServiceNotifier().storeDescriptor(descriptor, name: Self.storedName)
            return true
        } catch {
            logger.warning("The service manager did not store the socket.", metadata: ["error": "\(error)"])
            return false
        }
    }

    /// Closes the sockets of an earlier daemon that this one does not use.
    private func forget(_ stored: [ListenSocket]) {
        guard !stored.isEmpty else { return }
        for socket in stored { close(socket.descriptor) }
        try? ServiceNotifier().removeDescriptors(name: Self.storedName)
    }

    private func makeDirectory(_ path: String, mode: mode_t = 0o700) throws(StartError) {
        guard mkdir(path, mode) == 0 || errno == EEXIST else {
            throw StartError(
                code: [ENOSPC, EDQUOT, EIO].contains(errno) ? .tryAgain : .configuration,
                message:
                    "The directory \(path) cannot be created: \(Errno(rawValue: errno)); check the directory above it.")
        }
    }
}

extension Daemon.StartError {
    init(of error: any Error) {
        switch error {
        case let error as Daemon.StartError: self = error
        case let error as StoreError: self.init(code: Self.code(of: error), message: error.message)
        case let error as ListenerError:
            self.init(code: error.isInUse ? .unavailable : .configuration, message: error.message)
        case let error as JobError: self.init(code: .configuration, message: error.message)
        default: self.init(code: .configuration, message: "\(error)")
        }
    }

    private static func code(of error: StoreError) -> ExitStatus {
        switch error.code {
        case .damaged: .badData
        case .otherVersion: .configuration
        case .locked: .unavailable
        case .write, .read, .closed: error.isLasting ? .configuration : .tryAgain
        }
    }
}
