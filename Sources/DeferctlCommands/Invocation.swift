import ArgumentParser
import JobClient
import JobModel

/// One run of the program: how to reach the daemon, and where to write.
struct Invocation: Sendable {
    let socket: String
    let search: SocketSearch
    let writesJSON: Bool
    let console: Console

    /// The connection of a verb that outlives a restart of the daemon.
    var connection: DaemonConnection { DaemonConnection(path: socket) { [console] in console.say($0) } }

    /// Connects, runs `body`, and closes the connection. Where no daemon can be reached, the error says how to start one.
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
                let flag = (try? search.path(flag: nil)) == socket ? "" : "--socket \(socket) "
                throw CommandFailure(
                    failure.status, "\(failure.message) What to do about it says: deferctl \(flag)doctor")
            default: throw failure
            }
        }
    }

    /// Writes values as lines of JSON where that was asked for, else `lines` for people.
    func show(_ values: [JSON], as lines: @autoclosure () -> [String]) throws(CommandFailure) {
        if writesJSON {
            try console.data.write(Array(values.map { $0.utf8 + [UInt8(ascii: "\n")] }.joined()))
        } else {
            try console.lines(lines())
        }
    }

    /// Writes a value as a line of JSON where that was asked for, else a line for people.
    func show(_ value: JSON, as line: @autoclosure () -> String) throws(CommandFailure) {
        try show([value], as: [line()])
    }

    /// Shows an object of the daemon's, member by member.
    func showSheet(_ ask: (JobClient) async throws -> JSON) async throws -> ExitStatus {
        let answer = try await withDaemon(ask)
        try show([answer], as: Sheet.lines(answer, width: console.format.width))
        return .ok
    }

    /// Says why a job did not succeed, unless its object was written, and returns its exit status.
    func report(_ job: JobSnapshot) -> ExitStatus {
        switch job.state {
        case _ where writesJSON: break
        case "failed":
            console.say(JobText(job, now: .now).errorSentence)
            if let text = job.error?["program"]?["stderr"]?.string { console.show(standardError: text) }
        case "cancelled": console.say("Job \(job.id) was cancelled; run it again with: deferctl retry \(job.id)")
        default: break
        }
        return ExitStatus(jobState: job.state)
    }
}

/// A verb that talks to the daemon.
protocol DaemonCommand: AsyncParsableCommand {
    var global: GlobalOptions { get }

    /// Does the verb's work.
    func perform(_ invocation: Invocation) async throws -> ExitStatus
}

extension DaemonCommand {
    mutating func run() async throws {
        let search = SocketSearch()
        let invocation = Invocation(
            socket: try search.path(flag: global.socket), search: search, writesJSON: global.json,
            console: Console(color: global.color))
        let status = try await perform(invocation)
        if status != .ok { throw ExitCode(status.rawValue) }
    }
}
