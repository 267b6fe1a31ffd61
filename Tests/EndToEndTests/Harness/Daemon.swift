import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// The built `deferd`, with a socket and directories of its own.
final class Daemon: Sendable {
    /// Where its things lie.
    let directory: TemporaryDirectory
    let process: ChildProcess
    private let readiness: Readiness

    var pid: pid_t { process.pid }
    var socket: String { Self.socket(in: directory) }
    var state: String { directory.path + "/state" }
    /// The directory of this user's downloads.
    var downloads: String { Self.downloads(in: directory) }

    static func socket(in directory: TemporaryDirectory) -> String { directory.path + "/socket" }

    static func downloads(in directory: TemporaryDirectory, of user: uid_t = geteuid()) -> String {
        directory.path + "/downloads" + (geteuid() == 0 ? "/\(user)" : "")
    }

    /// Starts the program in `directory`, through the program `wrapper` if there is one, and returns once it is ready.
    init(
        in directory: TemporaryDirectory, configuration: String = "", environment: [String: String] = [:],
        flags: [String] = [], wrapper: [String] = []
    ) async throws {
        self.directory = directory
        readiness = try Readiness(in: directory)
        process = try ChildProcess(
            wrapper + (try Self.command(in: directory, configuration: configuration, flags: flags)),
            environment: environment.merging(["NOTIFY_SOCKET": readiness.path]) { $1 })
        // A program that ends instead lets the readiness fail at once.
        let (process, readiness) = (process, readiness)
        let watcher = Task {
            _ = try? await process.end()
            readiness.close()
        }
        defer { watcher.cancel() }
        guard try await readiness.isReached() else {
            process.send(signal: SIGKILL)
            Issue.record("The daemon did not start: \(process.errorText)")
            throw Wire.Ended(awaited: "the daemon")
        }
    }

    /// The command line of a daemon in `directory`.
    static func command(
        in directory: TemporaryDirectory, configuration: String = "", flags: [String] = []
    ) throws -> [String] {
        [
            BuiltProgram.deferd, "--config", try directory.write(configuration, to: "deferd.yaml"),
            "--socket", socket(in: directory), "--state-directory", directory.path + "/state",
            "--downloads-directory", directory.path + "/downloads",
        ] + flags
    }

    /// Runs deferctl with these arguments; it has to end so.
    func deferctl(_ arguments: [String], end: ChildProcess.End = .code(0)) async throws -> ChildProcess {
        let process = try ChildProcess([BuiltProgram.deferctl, "--socket", socket] + arguments)
        #expect(try await process.end() == end, "\(arguments): \(process.errorText)")
        return process
    }

    /// Waits until it says something with `text` in it of itself to the service manager.
    func status(containing text: String) async throws {
        _ = try await readiness.statuses.next("status with \"\(text)\"") { $0.contains(text) }
    }

    /// Has it read another configuration, and returns once that is taken over, or refused where `isRefused`.
    func reload(_ configuration: String, isRefused: Bool = false) async throws {
        try directory.write(configuration, to: "deferd.yaml")
        process.send(signal: SIGHUP)
        try await process.line(containing: isRefused ? "not applied" : "was reloaded")
    }

    /// A connection.
    func connect(reads: Bool = true) throws -> Wire { try Wire(socket, reads: reads) }

    /// Ends it as a power failure would.
    func crash() async throws {
        process.send(signal: SIGKILL)
        #expect(try await process.end() == .signal(SIGKILL))
        readiness.close()
    }

    /// Ends it as the service manager does.
    func stop(sourceLocation: SourceLocation = #_sourceLocation) async throws {
        process.send(signal: SIGTERM)
        let end = try await process.end()
        #expect(end == .code(0), "\(process.errorText.suffix(2000))", sourceLocation: sourceLocation)
        readiness.close()
    }

    fileprivate func abandon() async {
        process.send(signal: SIGKILL)
        _ = try? await process.end()
        readiness.close()
    }

    /// Runs `body` with a daemon that must end in order afterwards.
    static func run<Value>(
        configuration: String = "", environment: [String: String] = [:], flags: [String] = [],
        sourceLocation: SourceLocation = #_sourceLocation, _ body: (Daemon) async throws -> Value
    ) async throws -> Value {
        try await Household.with { household in
            let daemon = try await household.start(
                configuration: configuration, environment: environment, flags: flags)
            let value = try await body(daemon)
            try await daemon.stop(sourceLocation: sourceLocation)
            return value
        }
    }

    /// The same with a connection to it.
    static func run<Value>(
        configuration: String = "", environment: [String: String] = [:], flags: [String] = [],
        sourceLocation: SourceLocation = #_sourceLocation, _ body: (Daemon, Wire) async throws -> Value
    ) async throws -> Value {
        try await run(
            configuration: configuration, environment: environment, flags: flags,
            sourceLocation: sourceLocation
        ) { daemon in try await body(daemon, daemon.connect()) }
    }
}

/// A directory in which daemons run one after the other, as across restarts.
final class Household {
    let directory: TemporaryDirectory
    private var daemons: [Daemon] = []

    private init(_ directory: TemporaryDirectory) {
        self.directory = directory
    }

    /// Starts a daemon, in a `directory` of its own if it is given; it is ended with the household at the latest.
    func start(
        configuration: String = "", environment: [String: String] = [:], flags: [String] = [],
        wrapper: [String] = [], in directory: TemporaryDirectory? = nil
    ) async throws -> Daemon {
        let daemon = try await Daemon(
            in: directory ?? self.directory, configuration: configuration, environment: environment, flags: flags,
            wrapper: wrapper)
        daemons.append(daemon)
        return daemon
    }

    /// Starts a daemon and connects to it.
    func serve(
        configuration: String = "", environment: [String: String] = [:], flags: [String] = [], wrapper: [String] = []
    ) async throws -> (Daemon, Wire) {
        let daemon = try await start(
            configuration: configuration, environment: environment, flags: flags, wrapper: wrapper)
        return (daemon, try daemon.connect())
    }

    /// Runs `body` with a directory that is removed afterwards, together with all processes started in it.
    static func with<Value>(_ body: (Household) async throws -> Value) async throws -> Value {
        try await Stage.with {
            try await TemporaryDirectory.with { directory in
                let household = Household(directory)
                do {
                    let value = try await body(household)
                    await household.end()
                    return value
                } catch {
                    for daemon in household.daemons where !daemon.process.errorText.isEmpty {
                        print("What the daemon said:\n\(daemon.process.errorText.suffix(4000))")
                    }
                    await household.end()
                    throw error
                }
            }
        }
    }

    private func end() async {
        for daemon in daemons { await daemon.abandon() }
    }
}
