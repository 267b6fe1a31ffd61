import ArgumentParser
import FoundationEssentials
import Glibc
import JobClient
import JobModel

/// One run of the program: how to reach the daemon, and where to write.
struct Invocation: Sendable {
    let socket: DaemonSocket
    let writesJSON: Bool
    let console: Console

    var connection: DaemonConnection { connection(until: nil) }

    func connection(until deadline: ContinuousClock.Instant?) -> DaemonConnection {
        DaemonConnection(path: socket.path, deadline: deadline) { [console] in console.say($0) }
    }

    /// Connects, runs `body`, and closes the connection. If no daemon can be reached, the error says how to start one.
    func withDaemon<Value>(_ body: (JobClient) async throws -> Value) async throws -> Value {
        try await connect().closing(after: body)
    }

    /// The same, until a signal interrupts it.
    func withDaemon<Value: Sendable>(
        _ interruption: Interruption, _ body: @Sendable @escaping (JobClient) async throws -> Value
    ) async throws -> Value {
        try await interruption.run { try await withDaemon(body) }
    }

    private func connect() async throws(CommandFailure) -> JobClient {
        do {
            return try await JobClient.connect(path: socket.path)
        } catch {
            let failure = CommandFailure(error)
            switch error.code {
            case .unreachable: throw CommandFailure(.unreachable, "\(error.message) \(socket.startHint())")
            case .denied:
                throw CommandFailure(
                    failure.status, "\(failure.message) See what to do with: \(socket.command) doctor")
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
        let status = ExitStatus(jobState: job.state)
        if writesJSON { return status }
        let text = JobText(job, now: .now)
        if job.state == "failed" {
            console.say(text.errorSentence)
            for line in showsOutput ? text.lastLines : [] { try? console.messages.show(line + "\n") }
        } else if job.state == "cancelled" {
            console.say("Job \(job.id) was cancelled; run it again with: \(socket.command) retry \(job.id)")
        }
        if let sentence = text.finallySentence { console.say(sentence) }
        return status
    }
}

protocol DaemonCommand: AsyncParsableCommand {
    var global: GlobalOptions { get }

    func perform(_ invocation: Invocation) async throws -> ExitStatus
}

extension DaemonCommand {
    mutating func run() async throws {
        if global.utc { setenv("TZ", "UTC0", 1) }
        let socket = DaemonSocket(flag: global.socket)
        do { try JobClient.check(path: socket.path) } catch { throw CommandFailure(.configuration, error.message) }
        let invocation = Invocation(
            socket: socket, writesJSON: global.json, console: Console(color: global.color))
        let status = try await perform(invocation)
        if status != .ok { throw status }
    }
}

/// The daemon's socket, and how it was found.
struct DaemonSocket: Sendable {
    static let systemPath = "/run/deferd/deferd.sock"

    let path: String
    let origin: String
    /// Whether the systemd unit for the socket is a user's; nil if there is no unit for it.
    let isUserUnit: Bool?
    /// How to call deferctl for this daemon, in sentences that say what to do next.
    let command: String

    init(flag: String?) {
        let variables = ProcessInfo.processInfo.environment
        path = flag ?? JobClient.defaultPath
        command = path == JobClient.defaultPath ? "deferctl" : "deferctl --socket \(path.shellQuoted)"
        let own = variables["XDG_RUNTIME_DIR", default: ""] + "/deferd/deferd.sock"
        isUserUnit = path == Self.systemPath ? false : path == own ? true : nil
        origin =
            switch isUserUnit {
            case _ where flag != nil: "set by --socket"
            case _ where !variables["DEFERD_SOCKET", default: ""].isEmpty: "set by DEFERD_SOCKET"
            case true: "of your own daemon"
            default: "of the system's daemon, because you have none of your own"
            }
    }

    func startHint(isRoot: Bool = geteuid() == 0) -> String {
        switch isUserUnit {
        case false? where isRoot: "Start it with: systemctl start deferd"
        case false?:
            "Start one of your own with: systemctl --user start deferd, or: deferd & (the system's is for administrators "
                + "to start, with: systemctl start deferd)"
        case true?: "Start it with: systemctl --user start deferd, or: deferd &"
        case nil: "Start it with: deferd --socket \(path.shellQuoted)"
        }
    }
}

extension String {
    /// The text as one word of a shell.
    var shellQuoted: String {
        let isPlain = !isEmpty && allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "/._-".contains($0)) }
        return isPlain ? self : "'\(replacing("'", with: #"'\''"#))'"
    }
}
