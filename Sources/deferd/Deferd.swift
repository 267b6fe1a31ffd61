import ArgumentParser
import DataSources
import Foundation
import JobModel
import JobProtocol
import Logging
import LoopTasks
import NIOPosix
import Systemd
import UnixSignals

@main
struct Deferd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "deferd",
        abstract: "Carries deferred jobs out that clients write down and send over a Unix socket.",
        discussion: """
            Without flags an ordinary user gets an instance of their own ($XDG_RUNTIME_DIR/deferd/deferd.sock), and root
            and the user deferd the system's (/run/deferd/deferd.sock). Settings come from the file, over these from variables such as
            DEFERD_LIMITS_LINE, over these from flags. SIGTERM stops the daemon, SIGHUP makes it read its file again.

            Exit: 0 stopped or checked, 64 usage, 65 damaged state, 69 another daemon runs, 75 no room, a failing disk or too few threads,
            78 configuration, or
            a state of another version.
            """,
        version: ProductVersion.current)

    @Option(help: ArgumentHelp("Read settings from this YAML file.", valueName: "file"))
    var config: String?

    @Option(
        help: ArgumentHelp(
            "Serve every user of the system, or only the one who runs it: system or user.", valueName: "kind"))
    var instance: Instance.Kind?

    @Option(help: ArgumentHelp("Listen on this Unix socket.", valueName: "path"))
    var socket: String?

    @Option(help: ArgumentHelp("Keep jobs in this directory.", valueName: "dir"))
    var stateDirectory: String?

    @Option(help: ArgumentHelp("Put downloads with a relative path into this directory.", valueName: "dir"))
    var downloadsDirectory: String?

    @Option(
        help: ArgumentHelp(
            "Log from this level on: trace, debug, info, notice, warning, error, critical.", valueName: "level"))
    var logLevel: String?

    @Flag(
        help:
            "Say what is wrong with the state directory, or with the backup that --state-directory names, and exit with 0 or 65."
    )
    var verifyState = false

    @Flag(help: "Read the configuration, say all that is wrong with it, and exit with 0 or 78.")
    var check = false

    /// Runs on the main actor and, whatever leaves it, on an event loop: libdispatch's pool, where tasks run otherwise, wakes
    /// up every second from its first task on.
    @MainActor static func main() async {
        // Who has just changed the file may say so before there is a handler, and the file is read after that. What the daemon
        // starts does not inherit it: the program guard has all signals do what they do by default.
        signal(SIGHUP, SIG_IGN)
        // The main queue's thread asks for a priority that only root may have, and libdispatch would complain in the journal.
        setenv("LIBDISPATCH_LOG", "NO", 0)
        Tuning.begin()
        do {
            // Help ends here, as an error.
            let command = try parseAsRoot()
            guard let deferd = command as? Deferd else {
                var command = command
                return try command.run()
            }
            // What starts no thread needs none, so it answers whatever the limits are.
            if deferd.check { return try deferd.checkConfiguration() }
            // The others that end by themselves have not done what they were asked for where a signal ends them.
            if !deferd.verifyState { StartSignals.begin() }
            do { try ThreadLimit.check() } catch {
                throw ended([error.message], error.code, JournalLogHandler.isJournal())
            }
            try await withTaskExecutorPreference(LoopExecutor(MultiThreadedEventLoopGroup.singleton.any())) {
                try await deferd.run()
            }
        } catch {
            exit(withError: error)
        }
    }

    /// Says whether the configuration is good, and ends with 78 where it is not.
    private func checkConfiguration() throws {
        let configuration = try loadConfiguration(JournalLogHandler.isJournal())
        for warning in configuration.warnings {
            FileHandle.standardError.write(Data("deferd: warning: \(warning)\n".utf8))
        }
        let file = config ?? Instance(instance, environment: ProcessInfo.processInfo.environment).configurationFile
        print(
            "The configuration is good; "
                + (file.map { "the file is \($0)." } ?? "there is no file, and the defaults hold."))
    }

    private var flags: Configuration.Flags {
        Configuration.Flags(
            config: config, instance: instance, socket: socket, stateDirectory: stateDirectory,
            downloadsDirectory: downloadsDirectory, logLevel: logLevel)
    }

    private func loadConfiguration(_ isJournal: Bool) throws -> Configuration {
        do {
            return try Configuration.load(
                flags, environment: ProcessInfo.processInfo.environment,
                needsSecrets: !check && !verifyState)
        } catch {
            throw Self.ended(error.errors.map(\.description), .configuration, isJournal)
        }
    }

    func run() async throws {
        // Before there are threads, as it changes the environment.
        let sockets = Result { () throws(SystemdError) in try ListenSockets() }
        // A client that goes away must not end the daemon.
        signal(SIGPIPE, SIG_IGN)
        // With the signal ignored, a limit on the size of files makes writing fail, which is reported like a full disk.
        signal(SIGXFSZ, SIG_IGN)
        // From here on one may come, by whoever has just changed the file.
        let hangUps = await UnixSignalsSequence(trapping: .sighup)
        let isJournal = JournalLogHandler.isJournal()
        var settings = try loadConfiguration(isJournal)
        let level = LevelledLogHandler.Level(settings.logLevel)
        LoggingSystem.bootstrap { _ in
            LevelledLogHandler(isJournal ? JournalLogHandler() : StandardErrorLogHandler(), level: level)
        }
        let logger = Logger(label: "deferd")
        settings.limits.connections = DescriptorLimit.raise(for: settings.limits.connections, logger)
        do {
            if verifyState { return try StateCheck.run(settings.stateDirectory) }
            let daemon = Daemon(
                configuration: settings, flags: flags, sockets: try sockets.get(), level: level, hangUps: hangUps,
                logger: logger)
            try await daemon.run()
        } catch let error as Daemon.StartError {
            throw Self.ended([error.message], error.code, isJournal)
        } catch let error as SystemdError {
            throw Self.ended([error.description], .configuration, isJournal)
        }
    }

    /// Says why the daemon ends, to the service manager, which has room for the first reason, and all of it in the journal or on
    /// standard error.
    private static func ended(_ messages: [String], _ status: ExitStatus, _ isJournal: Bool) -> ExitCode {
        // Nobody else can be told that this fails.
        try? ServiceNotifier().failed(
            status: messages.first ?? "", errorNumber: status.errorNumber, exitStatus: status.rawValue)
        for message in messages {
            if isJournal {
                Logger(label: "deferd") { _ in JournalLogHandler() }.critical(
                    "\(message)", metadata: ["event": "\(CatalogEvent.startFailed.rawValue)"])
            } else {
                FileHandle.standardError.write(Data("deferd: \(message)\n".utf8))
            }
        }
        return ExitCode(status.rawValue)
    }
}

/// What the daemon's exit code tells, by sysexits.h.
enum ExitStatus: Int32 {
    /// The database is damaged.
    case badData = 65
    /// Another daemon has the state directory or the socket.
    case unavailable = 69
    /// What keeps it from starting may pass: a full disk, or one that fails.
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
