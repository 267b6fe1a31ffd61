import ArgumentParser
import FoundationEssentials
import Glibc
import JobClient
import JobModel

/// One run of the program: how to reach the daemon, and where to write.
struct Invocation: Sendable {
    let socket: String
    let search: SocketSearch
    let writesJSON: Bool
    let console: Console

    var connection: DaemonConnection { DaemonConnection(path: socket) { [console] in console.say($0) } }

    /// Connects, runs `body`, and closes the connection. If no daemon can be reached, the error says how to start one.
    func withDaemon<Value>(_ body: (JobClient) async throws -> Value) async throws -> Value {
        try await connect().closing(after: body)
    }

    private func connect() async throws(CommandFailure) -> JobClient {
        do {
            return try await JobClient.connect(path: socket)
        } catch {
            let failure = CommandFailure(error)
            switch error.code {
            case .unreachable:
                throw CommandFailure(.unreachable, "\(error.message) \(search.startHint(for: socket))")
            case .denied:
                let flag = search.location(flag: nil).path == socket ? "" : "--socket \(socket) "
                throw CommandFailure(failure.status, "\(failure.message) See what to do with: deferctl \(flag)doctor")
            default: throw failure
            }
        }
    }

    /// Writes values as lines of JSON with `--json`, else `lines`.
    @discardableResult
    func show(_ values: [JSON], as lines: @autoclosure () -> [String]) throws(CommandFailure) -> ExitStatus {
        if writesJSON {
            try console.lines(json: values)
        } else {
            try console.lines(lines())
        }
        return .ok
    }

    /// Writes a value as a line of JSON with `--json`, else `line`.
    @discardableResult
    func show(_ value: JSON, as line: @autoclosure () -> String) throws(CommandFailure) -> ExitStatus {
        try show([value], as: [line()])
    }

    func showSheet(_ ask: (JobClient) async throws -> JSON) async throws -> ExitStatus {
        let answer = try await withDaemon(ask)
        return try show([answer], as: Sheet.lines(answer, width: console.format.width))
    }

    /// Says why a job did not succeed, unless its JSON was written, and returns its exit status.
    func report(_ job: JobSnapshot, showsOutput: Bool = true) -> ExitStatus {
        switch job.state {
        case _ where writesJSON: break
        case "failed":
            console.say(JobText(job, now: .now).errorSentence)
            if showsOutput {
                for line in JobText(job, now: .now).lastLines { try? console.messages.show(line + "\n") }
            }
        case "cancelled": console.say("Job \(job.id) was cancelled; run it again with: deferctl retry \(job.id)")
        default: break
        }
        if !writesJSON, let sentence = JobText(job, now: .now).finallySentence { console.say(sentence) }
        return ExitStatus(jobState: job.state)
    }
}

protocol DaemonCommand: AsyncParsableCommand {
    var global: GlobalOptions { get }

    func perform(_ invocation: Invocation) async throws -> ExitStatus
}

extension DaemonCommand {
    mutating func run() async throws {
        if global.utc { setenv("TZ", "UTC0", 1) }
        let search = SocketSearch()
        let invocation = Invocation(
            socket: search.location(flag: global.socket).path, search: search, writesJSON: global.json,
            console: Console(color: global.color))
        let status = try await perform(invocation)
        if status != .ok { throw status }
    }
}

/// Finds the daemon's socket, as ``JobClient/defaultPath`` does, but says how.
struct SocketSearch: Sendable {
    static let systemPath = "/run/deferd/deferd.sock"

    var environment = ProcessInfo.processInfo.environment
    var isRoot = geteuid() == 0
    var exists: @Sendable (String) -> Bool = { access($0, F_OK) == 0 }

    /// The path, and how it was found: by the flag, by `DEFERD_SOCKET`, or as the user's own or the system's daemon.
    func location(flag: String?) -> (path: String, origin: String) {
        if let flag { return (flag, "set by --socket") }
        if let path = environment["DEFERD_SOCKET"], !path.isEmpty { return (path, "set by DEFERD_SOCKET") }
        if let own = ownPath, exists(own) { return (own, "of your own daemon") }
        return (Self.systemPath, "of the system's daemon, because you have none of your own")
    }

    private var ownPath: String? {
        guard let directory = environment["XDG_RUNTIME_DIR"], directory.hasPrefix("/") else { return nil }
        return directory + "/deferd/deferd.sock"
    }

    /// How to start the daemon that listens at `path`.
    func startHint(for path: String) -> String {
        switch isUserUnit(for: path) {
        case false? where isRoot: "Start it with: systemctl start deferd"
        case false?:
            "Start one of your own with: systemctl --user start deferd, or: deferd & (the system's is for administrators "
                + "to start, with: systemctl start deferd)"
        case true?: "Start it with: systemctl --user start deferd, or: deferd &"
        case nil: "Start it with: deferd --socket \(path)"
        }
    }

    /// Whether the systemd unit for `path` is a user's; nil if there is no unit for it.
    func isUserUnit(for path: String) -> Bool? { path == Self.systemPath ? false : path == ownPath ? true : nil }
}
