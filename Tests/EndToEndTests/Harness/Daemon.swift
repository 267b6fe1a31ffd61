import Foundation
import Glibc
import JobModel
import Testing

/// The built `deferd`, with a socket and folders of its own.
final class Daemon: Sendable {
    /// Where its things lie.
    let folder: TemporaryFolder
    let process: ChildProcess
    private let readiness: Readiness

    var pid: pid_t { process.pid }
    var socket: String { Self.socket(in: folder) }
    var state: String { folder.path + "/state" }
    /// The folder of this user's downloads.
    var downloads: String { Self.downloads(in: folder) }

    static func socket(in folder: TemporaryFolder) -> String { folder.path + "/socket" }

    static func downloads(in folder: TemporaryFolder, of user: uid_t = geteuid()) -> String {
        folder.path + "/downloads" + (geteuid() == 0 ? "/\(user)" : "")
    }

    /// Starts the program in `folder`, through the program `wrapper` if there is one, and returns once it is ready.
    init(
        in folder: TemporaryFolder, configuration: String = "", environment: [String: String] = [:],
        flags: [String] = [], wrapper: [String] = []
    ) async throws {
        self.folder = folder
        readiness = try Readiness(in: folder)
        process = try ChildProcess(
            wrapper + (try Self.command(in: folder, configuration: configuration, flags: flags)),
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

    /// The command line of a daemon in `folder`.
    static func command(
        in folder: TemporaryFolder, configuration: String = "", flags: [String] = []
    ) throws -> [String] {
        [
            BuiltProgram.deferd, "--config", try folder.write(configuration, to: "deferd.yaml"),
            "--socket", socket(in: folder), "--state-directory", folder.path + "/state",
            "--downloads-directory", folder.path + "/downloads",
        ] + flags
    }

    /// Waits until it says something with `text` in it of itself to the service manager.
    func status(containing text: String) async throws {
        _ = try await readiness.statuses.take("status with \"\(text)\"") { $0.contains(text) }
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
        configuration: String = "", environment: [String: String] = [:], flags: [String] = [], alone: Bool = false,
        sourceLocation: SourceLocation = #_sourceLocation, _ body: (Daemon) async throws -> Value
    ) async throws -> Value {
        try await Household.with(alone: alone) { household in
            let daemon = try await household.start(
                configuration: configuration, environment: environment, flags: flags)
            let value = try await body(daemon)
            try await daemon.stop(sourceLocation: sourceLocation)
            return value
        }
    }
}

/// A folder in which daemons run one after the other, as across restarts.
final class Household {
    let folder: TemporaryFolder
    private var daemons: [Daemon] = []

    private init(_ folder: TemporaryFolder) {
        self.folder = folder
    }

    /// Starts a daemon; it is ended with the household at the latest.
    func start(
        configuration: String = "", environment: [String: String] = [:], flags: [String] = [],
        wrapper: [String] = []
    ) async throws -> Daemon {
        let daemon = try await Daemon(
            in: folder, configuration: configuration, environment: environment, flags: flags, wrapper: wrapper)
        daemons.append(daemon)
        return daemon
    }

    /// Runs `body` with a folder that is gone afterwards, and with it all that was started.
    static func with<Value>(alone: Bool = false, _ body: (Household) async throws -> Value) async throws -> Value {
        try await Stage.with(alone: alone) {
            try await TemporaryFolder.with { folder in
                let household = Household(folder)
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
