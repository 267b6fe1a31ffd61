import ArgumentParser
import JobClient
import JobModel

/// One run of the program: how to reach the daemon, and where to write.
struct Invocation: Sendable {
    let socket: String
    let search: SocketSearch
    let writesJSON: Bool
    let console: Console

    /// Connects. Where no daemon can be reached, the error says how to start one.
    func connect() async throws(CommandFailure) -> JobClient {
        do {
            return try await JobClient.connect(path: socket)
        } catch {
            let failure = CommandFailure(error)
            if error.code == .denied {
                let flag = (try? search.path(flag: nil)) == socket ? "" : "--socket \(socket) "
                throw CommandFailure(
                    failure.status, "\(failure.message) What to do about it says: deferctl \(flag)doctor")
            }
            guard error.code == .unreachable else { throw failure }
            throw CommandFailure(
                .unreachable, "\(error.message) \(search.startHint(for: socket))")
        }
    }

    /// Connects, runs `body`, and closes the connection.
    func withDaemon<Value>(_ body: (JobClient) async throws -> Value) async throws -> Value {
        let client = try await connect()
        do {
            let value = try await body(client)
            await client.close()
            return value
        } catch {
            await client.close()
            throw error
        }
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
        let search = SocketSearch(environment: ProcessEnvironment.variables) { FileSystem.exists($0) }
        let invocation = Invocation(
            socket: try search.path(flag: global.socket), search: search, writesJSON: global.json,
            console: Console(color: global.color))
        let status = try await perform(invocation)
        if status != .ok { throw ExitCode(status.rawValue) }
    }
}
