import ArgumentParser
import DataSources
import FoundationEssentials
import JobModel
import JobProtocol
import Logging
import LoopTasks
import NIOConcurrencyHelpers
import NIOPosix
import Systemd
import UnixSignals

@main
struct Deferd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "deferd",
        abstract: "Run deferred jobs that clients submit over a Unix socket.",
        discussion: """
            Without flags, an ordinary user runs an instance of their own ($XDG_RUNTIME_DIR/deferd/deferd.sock); root \
            and the user deferd run the system's (/run/deferd/deferd.sock). Variables such as DEFERD_LIMITS_LINE override \
            the file, and flags override variables. SIGTERM stops the daemon; SIGHUP makes it reload its file.

            Exit: 0 stopped or checked, 64 usage, 65 damaged state, 69 another daemon runs, 75 no room, a failing disk, \
            an unreachable database or too few threads, 78 configuration, or a state of another version.
            """,
        version: ProductVersion.current)

    @OptionGroup var flags: Configuration.Flags

    @Flag(help: "Check the state directory, or the backup that --state-directory names, and exit with 0 or 65.")
    var verifyState = false

    @Flag(help: "Check the configuration, print all errors, and exit with 0 or 78.")
    var check = false

    /// Runs on the main actor and event loops: libdispatch's pool would wake up every second after its first task.
    @MainActor static func main() async {
        // A SIGHUP before there is a handler must not end the process; the file is read later anyway. Programs do not inherit
        // this: the program guard resets all signals.
        signal(SIGHUP, SIG_IGN)
        // Only root may have the priority that the main queue's thread asks for, and libdispatch would log that.
        setenv("LIBDISPATCH_LOG", "NO", 0)
        do {
            // Help ends here, as an error.
            let command = try parseAsRoot()
            guard let deferd = command as? Deferd else {
                var command = command
                return try command.run()
            }
            // This check starts no thread, so it works whatever the limits are.
            if deferd.check { return try deferd.checkConfiguration() }
            // A state check that a signal ends must not look like a success.
            if !deferd.verifyState { StartSignals.begin() }
            do { try ThreadLimit.check() } catch { throw ended([error.message], error.code, .current()) }
            try await withTaskExecutorPreference(LoopExecutor(MultiThreadedEventLoopGroup.singleton.any())) {
                try await deferd.run()
            }
        } catch {
            exit(withError: error)
        }
    }

    private func checkConfiguration() throws {
        let configuration = try loadConfiguration(.current())
        for warning in configuration.warnings {
            StandardErrorLine.write("deferd: warning: \(warning)\n")
        }
        let instance = Instance(flags.instance, environment: ProcessInfo.processInfo.environment)
        let file = flags.config ?? instance.configurationFile
        print(
            "The configuration is good; "
                + (file.map { "the file is \($0)." } ?? "there is no file, and the defaults hold."))
    }

    private func loadConfiguration(_ destination: LogDestination) throws -> Configuration {
        do {
            return try Configuration.load(
                flags, environment: ProcessInfo.processInfo.environment,
                serves: !check && !verifyState)
        } catch {
            throw Self.ended(error.errors.map(\.description), .configuration, destination)
        }
    }

    func run() async throws {
        // Before starting threads, because it changes the environment.
        let sockets = Result { () throws(SystemdError) in try ListenSocket.passed() }
        // A client that goes away must not end the daemon.
        signal(SIGPIPE, SIG_IGN)
        // A limit on the size of files then makes writing fail, which is reported like a full disk.
        signal(SIGXFSZ, SIG_IGN)
        let hangUps = await UnixSignalsSequence(trapping: .sighup)
        let destination = LogDestination.current()
        var settings = try loadConfiguration(destination)
        let level = DaemonLogHandler.Level(settings.logLevel)
        LoggingSystem.bootstrap { _ in DaemonLogHandler(destination: destination, level: level) }
        let logger = Logger(label: "deferd")
        settings.limits.connections = DescriptorLimit.raise(for: settings.limits.connections, logger)
        do {
            if verifyState { return try StateCheck.run(settings.stateDirectory) }
            let daemon = Daemon(
                configuration: settings, flags: flags, sockets: try sockets.get(), level: level, hangUps: hangUps,
                logger: logger)
            try await daemon.run()
        } catch {
            let obstacle = Daemon.StartError(of: error)
            throw Self.ended([obstacle.message], obstacle.code, destination)
        }
    }

    /// Reports why the daemon ends: all reasons in the journal or on standard error, the first one to the service manager.
    private static func ended(_ messages: [String], _ status: ExitStatus, _ destination: LogDestination) -> ExitCode {
        // A failure to report cannot be reported.
        try? ServiceNotifier().failed(
            status: messages.first ?? "", errorNumber: status.errorNumber, exitStatus: status.rawValue)
        let logger = Logger(label: "deferd") { _ in
            DaemonLogHandler(destination: destination, level: DaemonLogHandler.Level(.info))
        }
        for message in messages {
            switch destination {
            case .journal:
                logger.critical("\(message)", metadata: ["event": "\(CatalogEvent.startFailed.name)"])
            case .standardError: StandardErrorLine.write("deferd: \(message)\n")
            }
        }
        return ExitCode(status.rawValue)
    }
}

/// The exit codes of the daemon, from sysexits.h.
enum ExitStatus: Int32 {
    /// The database is damaged.
    case badData = 65
    /// Another daemon has the state directory or the socket.
    case unavailable = 69
    /// The obstacle may pass: a full disk, or one that fails.
    case tryAgain = 75
    case configuration = 78

    /// The closest number of errno(3).
    var errorNumber: Int32 {
        switch self {
        case .configuration: EINVAL
        case .badData: EBADMSG
        case .unavailable: EADDRINUSE
        case .tryAgain: EAGAIN
        }
    }
}
