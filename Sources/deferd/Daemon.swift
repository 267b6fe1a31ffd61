import CoreMetrics
import SystemPackage
import CLinux
import DataSources
import Foundation
import Glibc
import JobCore
import JobEngine
import JobModel
import JobProtocol
import JobServer
import JobStore
import Logging
import MetricsRegistry
import NIOPosix
import ServiceLifecycle
import Systemd
import UnixSignals

/// The daemon, put together from its configuration.
struct Daemon {
    /// Why it cannot start: a sentence, and the exit code that tells what kind of trouble it is.
    struct StartError: Error {
        let code: ExitStatus
        let message: String
    }

    let configuration: Configuration
    let flags: Configuration.Flags
    let sockets: ListenSockets
    let level: LevelledLogHandler.Level
    let hangUps: UnixSignalsSequence
    let logger: Logger

    /// Runs until it is told to stop.
    func run() async throws {
        // Until requests are served, however many jobs there are to be read.
        let timeout = TimeoutExtension(logger: logger)
        timeout.begin()
        defer { timeout.end() }
        StartSignals.opensState()
        // It is the engine's until that has stopped.
        let store = try openStore()
        let clock = try clock(of: store)
        let startedAt = clock.wall()
        let group = MultiThreadedEventLoopGroup.singleton
        let settings = configuration.engine
        try makeDirectory(store.blobs)
        if configuration.downloads.isSystemInstance { makeDownloads(configuration.downloads.directory) }
        for warning in configuration.warnings { logger.warning("\(warning)") }
        let listener: Listener
        do {
            listener = try listen()
        } catch {
            throw StartError(code: error.code == .inUse ? .unavailable : .configuration, message: error.message)
        }
        let library: SourceLibrary
        do {
            // From here on it must be shut down.
            library = try SourceLibrary(settings: configuration.sources, group: group, logger: logger)
        } catch {
            throw StartError(code: .configuration, message: error.message)
        }
        let registry = MetricsRegistry(descriptions: EngineMetrics.descriptions)
        // What libraries count comes with it.
        MetricsSystem.bootstrap(registry)
        let engine = Engine(
            settings: settings, store: store, reader: store.reader, library: library, life: store.life,
            blobs: store.blobs, clock: clock, metrics: EngineMetrics(factory: registry), logger: logger)
        do {
            try await engine.start(store.isAfterCleanStop ? .clean : .crashed)
        } catch {
            await library.shutdown()
            throw StartError(error)
        }
        let server = JobServer(
            engine: engine, listener: listener, group: group,
            identity: ServerIdentity(version: ProductVersion.current, pid: Int(getpid()), startedAt: startedAt),
            adminGroup: configuration.adminGroup?.id, metrics: registry, logger: logger)
        let reload = Reload(
            of: configuration, flags: flags, engine: engine, server: server, level: level, logger: logger)
        let supervision = Supervision(
            engine: engine, group: group, reload: reload, hangUps: hangUps, timeout: timeout, logger: logger)
        logger.notice(
            "deferd \(ProductVersion.current) serves.",
            metadata: [
                "event": "\(CatalogEvent.serving.rawValue)",
                "socket": "\(listener.path ?? "passed by the service manager")",
                "state": "\(configuration.stateDirectory)",
            ])
        check(store)
        var plan = ServiceGroupConfiguration(
            services: [
                .init(service: supervision, successTerminationBehavior: .gracefullyShutdownGroup),
                .init(service: server, successTerminationBehavior: .gracefullyShutdownGroup),
            ],
            gracefulShutdownSignals: [.sigterm, .sigint],
            logger: Logger(label: "deferd.services") { _ in SwiftLogNoOpLogHandler() })
        plan.maximumGracefulShutdownDuration = .seconds(4)
        let services = ServiceGroup(configuration: plan)
        do {
            try await services.run()
        } catch {
            // A client that does not read must not keep the daemon from storing and closing the rest.
            logger.warning("Not every connection ended in time.", metadata: ["error": "\(error)"])
        }
        let isClean = await engine.stop()
        store.close(isClean: isClean)
        logger.notice(
            "deferd has stopped; every job is stored.",
            metadata: ["event": "\(CatalogEvent.stopped.rawValue)"])
    }

    /// Whatever the umask is: callers can reach their own directories through it, but not list it.
    private func makeDownloads(_ path: String) {
        // Where it cannot be made, the first download says so.
        guard mkdir(path, 0o711) == 0 else { return }
        let directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard directory >= 0 else { return }
        fchmod(directory, 0o711)
        close(directory)
    }

    private func openStore() throws(StartError) -> SQLiteStore {
        let logger = logger
        do {
            return try SQLiteStore(path: configuration.stateDirectory) { error in
                if error.code == .damaged { return Self.tellOfDamage(error.message, logger) }
                logger.error(
                    "A stored job cannot be read.",
                    metadata: ["event": "\(CatalogEvent.jobUnreadable.rawValue)", "error": "\(error.message)"])
            } reportLog: { error in
                if let error {
                    logger.warning(
                        "The log cannot be written into the database, and grows.",
                        metadata: ["event": "\(CatalogEvent.logStuck.rawValue)", "error": "\(error.message)"])
                } else {
                    logger.notice("The log can be written into the database again.")
                }
            }
        } catch {
            throw StartError(error)
        }
    }

    /// Has the database checked where the last daemon did not close it, beside the work.
    private func check(_ store: SQLiteStore) {
        guard store.wasLeftOpen else { return }
        store.reader.check { [logger] flaws in
            for flaw in flaws { Self.tellOfDamage(flaw, logger) }
            if flaws.isEmpty { logger.notice("The last daemon did not close its database; a check finds it whole.") }
        }
    }

    private static func tellOfDamage(_ flaw: String, _ logger: Logger) {
        logger.error(
            "The database is damaged.",
            metadata: ["event": "\(CatalogEvent.stateDamaged.rawValue)", "error": "\(flaw)"])
    }

    /// The steady clock goes on where it was in this boot, or after another boot by the time of day.
    private func clock(of store: SQLiteStore) throws(StartError) -> EngineClock {
        let sinceBoot = EngineClock.system(steadyAnchor: 0)
        let fresh = sinceBoot.wall().milliseconds - sinceBoot.steady()
        do {
            return .system(
                steadyAnchor: try store.steadyAnchor(boot: String(cString: deferd_boot_id()), fresh: fresh))
        } catch {
            throw StartError(error)
        }
    }

    private func listen() throws(ListenerError) -> Listener {
        let stored = sockets.sockets.filter { $0.name == Self.storedName }
        let passed = sockets.sockets.filter { $0.name != Self.storedName }
        guard passed.count(where: { $0.name == "deferd" }) <= 1 else {
            throw ListenerError(
                code: .path,
                message:
                    "The service manager passed several sockets to listen on; leave one ListenStream= in deferd.socket."
            )
        }
        if let passed = passed.first(where: { $0.name == "deferd" }) ?? passed.first {
            forget(stored)
            return Listener(adopting: passed.descriptor)
        }
        if let socket = stored.first {
            let resumed = try Listener(
                resuming: socket.descriptor, path: configuration.socketPath, mode: configuration.socketMode,
                group: configuration.socketGroup)
            if let resumed { return resumed }
            forget(stored)
        }
        let directory = configuration.socketPath.split(separator: "/").dropLast().joined(separator: "/")
        try? makeDirectory("/" + directory, mode: 0o755)
        var listener = try Listener(
            path: configuration.socketPath, mode: configuration.socketMode, group: configuration.socketGroup)
        listener.isKept = store(listener.descriptor)
        return listener
    }

    /// Under which the service manager keeps a socket that the daemon made itself.
    private static let storedName = "listener"

    /// Has the service manager keep the socket for the next daemon, so that nobody who connects meanwhile is refused; false
    /// where it keeps nothing.
    private func store(_ descriptor: Int32) -> Bool {
        // systemd 254 and later says so by itself; before, the unit does.
        let room = ProcessInfo.processInfo.environment["FDSTORE"].flatMap { Int($0) } ?? 0
        guard room > 0, ServiceNotifier().isActive else { return false }
        do {
            try ServiceNotifier().storeDescriptor(descriptor, name: Self.storedName)
            return true
        } catch {
            logger.warning("The service manager does not keep the socket.", metadata: ["error": "\(error)"])
            return false
        }
    }

    /// Closes sockets that an earlier daemon listened on and this one does not.
    private func forget(_ stored: [ListenSockets.Socket]) {
        guard !stored.isEmpty else { return }
        for socket in stored { close(socket.descriptor) }
        try? ServiceNotifier().removeDescriptors(name: Self.storedName)
    }

    private func makeDirectory(_ path: String, mode: mode_t = 0o700) throws(StartError) {
        guard mkdir(path, mode) == 0 || errno == EEXIST else {
            let mayPass = [ENOSPC, EDQUOT, EIO].contains(errno)
            throw StartError(
                code: mayPass ? .tryAgain : .configuration,
                message:
                    "The directory \(path) cannot be made: \(Errno(rawValue: errno)); check the one above it."
            )
        }
    }
}

extension Daemon.StartError {
    init(_ error: StoreError) {
        switch error.code {
        case .damaged: self.init(code: .badData, message: error.message)
        case .otherVersion: self.init(code: .configuration, message: error.message)
        case .locked: self.init(code: .unavailable, message: error.message)
        case .write, .read, .closed:
            self.init(code: error.isLasting ? .configuration : .tryAgain, message: error.message)
        }
    }
}
