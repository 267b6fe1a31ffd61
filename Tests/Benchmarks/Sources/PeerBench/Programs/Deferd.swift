import Foundation
import Glibc

/// A running deferd with its own directories.
final class Deferd {
    /// Settings other than the defaults, as lines of its configuration file.
    struct Options {
        /// Jobs of the queue `default` that run at once.
        var concurrency = 16
        /// Connections of our user to one host.
        var perHost = 6
        /// Jobs that may wait.
        var queued = 1_000_000
        /// Whether jobs may give commands.
        var runsAnyProgram = false
        /// Schedules that a user may have.
        var schedules = 1000
        /// The address of a PostgreSQL database with the jobs; nil for a file.
        var database: String?
        /// The daemon's name among those that share the database.
        var node = ""
        /// Seconds after which these take over its jobs.
        var lease = 15

        /// The daemon of root keeps a quarter of the connections to each host for its other users.
        var yaml: String {
            """
            queues:
              default: {concurrency: \(concurrency), perUser: \(concurrency)}
            http:
              perHost: \(geteuid() == 0 ? (perHost * 4 + 2) / 3 : perHost)
            limits:
              queuedJobs: \(queued * 2)
              queuedJobsPerUser: \(queued)
              schedulesPerUser: \(schedules)
            programs:
              any: \(runsAnyProgram)
            state:
              store: \(database.map { "\"\($0)\"" } ?? "")
            node:
              name: \(node)
              lease: \(lease)
            """
        }
    }

    /// From exec to the first answer, in seconds.
    let startTime: Double
    let downloads: String
    let socketPath: String
    private let process: ChildProcess

    /// Starts the daemon and waits until it answers. State lies on the disk, downloads and the socket in memory.
    init(_ bench: Bench, _ options: Options = Options(), state: String? = nil) throws {
        let state = try state ?? bench.onDisk()
        let directory = try bench.inMemory()
        let configuration = "\(directory)/deferd.yaml"
        try options.yaml.write(toFile: configuration, atomically: false, encoding: .utf8)
        socketPath = "\(directory)/deferd.sock"
        downloads = "\(directory)/downloads"
        process = try ChildProcess(
            [
                bench.daemon, "--config", configuration, "--socket", socketPath, "--state-directory", state,
                "--downloads-directory", downloads,
            ],
            output: "\(directory)/deferd.log")
        do {
            _ = try LocalSocket(path: socketPath, patience: 30)
                .call(#"{"jsonrpc":"2.0","id":0,"method":"server.info"}"# + "\n")
        } catch {
            let log = (try? String(contentsOfFile: "\(directory)/deferd.log", encoding: .utf8)) ?? ""
            throw BenchError("\(error) It said: \(log.suffix(1000))")
        }
        startTime = process.age
    }

    var pid: pid_t { process.pid }

    func connect() throws -> LocalSocket { try LocalSocket(path: socketPath) }

    func stop() { process.stop() }

    /// A connection that watches all jobs, or those with a tag.
    func watcher(tag: String? = nil) throws -> LocalSocket {
        let socket = try connect()
        let selection = tag.map { #""tag":"\#($0)""# } ?? #""all":true"#
        _ = try socket.call(#"{"jsonrpc":"2.0","id":0,"method":"job.watch","params":{\#(selection)}}"# + "\n")
        return socket
    }

    /// Suspends the queue, so that all submitted jobs wait.
    func suspendQueue() throws {
        let set = #"{"jsonrpc":"2.0","id":0,"method":"queue.set","params":{"queue":"default","suspended":true}}"#
        _ = try connect().call(set + "\n")
    }

    /// The options of a daemon in which jobs wait as they would in beanstalkd without a worker.
    static let waiting = Options(concurrency: 1, queued: 4_000_000)

    /// The line that submits a job.
    static func request(_ id: String, spec: String) -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"method":"job.submit","params":\#(spec)}"# + "\n"
    }

    /// How every answer begins; other lines are notifications.
    static let answer = #"{"jsonrpc":"2.0","id":"#

    /// A request to submit a job whose spec has exactly 200 bytes.
    static func submission(_ id: Int) -> String {
        let head = #"{"source":{"type":"url","url":"http://127.0.0.1:9/jobs/\#(id)"},"label":""#
        let tail = #""}"#
        let label = String(repeating: "x", count: 200 - head.utf8.count - tail.utf8.count)
        return request(String(id), spec: head + label + tail)
    }

    /// A load of such submissions.
    func submissions(connections: Int, depth: Int = 128) throws -> Load {
        Load(
            try (0..<connections).map { _ in try connect() }, depth: depth,
            requests: (1000..<5000).map(Self.submission), answer: Self.answer)
    }

    /// Submits these jobs, 128 at a time, over a connection that watches them, until all have succeeded.
    static func run(_ specs: [String], over watcher: LocalSocket) throws -> Load.Outcome {
        let requests = specs.enumerated().map { request(String($0), spec: $1) }
        return try Load([watcher], depth: 128, requests: requests, answer: answer, isWatching: true).run()
    }
}

extension LocalSocket {
    /// Calls a method of deferd, which must not refuse it.
    func call(_ line: String) throws -> String {
        let answer = try ask(line)
        guard answer.contains(#""result""#) else { throw BenchError("The daemon refused: \(answer)") }
        return answer
    }
}
