import Foundation
import Glibc

/// A running deferd with its own directories.
final class Deferd {
    /// Settings other than the defaults, as lines of its configuration file.
    struct Options {
        /// Jobs of the queue `default` that run at once.
        var concurrency = 16
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

        var yaml: String {
            """
            queues:
              default: {concurrency: \(concurrency), perUser: \(concurrency)}
            http:
              perHost: \(perHost)
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

    /// From exec to READY, in seconds.
    let startTime: Double
    let socketPath: String
    let stateDirectory: String
    let downloads: String
    private let process: ChildProcess
    private let ready: ReadySocket

    /// Starts the daemon and waits until it is ready. State lies on the disk, downloads and the socket in memory.
    init(_ bench: Bench, _ options: Options = Options(), state: String? = nil) throws {
        let stateDirectory = try state ?? bench.directories.onDisk()
        let directory = try bench.directories.inMemory()
        let configuration = "\(directory)/deferd.yaml"
        try options.yaml.write(toFile: configuration, atomically: false, encoding: .utf8)
        ready = try ReadySocket(path: "\(directory)/ready.sock")
        socketPath = "\(directory)/deferd.sock"
        self.stateDirectory = stateDirectory
        downloads = "\(directory)/downloads"
        process = try ChildProcess(
            [
                bench.settings.daemon, "--config", configuration, "--socket", socketPath, "--state-directory",
                stateDirectory, "--downloads-directory", downloads,
            ],
            output: "\(directory)/deferd.log", environment: ["NOTIFY_SOCKET": ready.path])
        do {
            try ready.wait(for: process)
        } catch {
            let log = (try? String(contentsOfFile: "\(directory)/deferd.log", encoding: .utf8)) ?? ""
            throw BenchError("\(error) It said: \(log.suffix(1000))")
        }
        startTime = process.age
    }

    var pid: pid_t { process.pid }

    func connect() throws -> LocalSocket { try LocalSocket(path: socketPath) }

    func stop() { process.stop() }

    /// Suspends the queue, so that all submitted jobs wait.
    func suspendQueue() throws {
        let set = #"{"jsonrpc":"2.0","id":9999,"method":"queue.set","params":{"queue":"default","suspended":true}}"#
        let answer = try connect().ask(set + "\n")
        guard answer.contains(#""result""#) else { throw BenchError("The daemon refused: \(answer)") }
    }

    /// The options of a daemon in which jobs wait as they would in beanstalkd without a worker.
    static func waiting(upTo queued: Int = 4_000_000) -> Options { Options(concurrency: 1, queued: queued) }

    /// The line that submits a job.
    static func request(_ id: String, spec: String) -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"method":"job.submit","params":\#(spec)}"# + "\n"
    }

    /// A request to submit a job whose spec has exactly 200 bytes.
    static func submission(_ id: String) -> String {
        let head = #"{"source":{"type":"url","url":"http://127.0.0.1:9/jobs/\#(id)"},"label":""#
        let tail = #""}"#
        let label = String(repeating: "x", count: 200 - head.utf8.count - tail.utf8.count)
        return request(id, spec: head + label + tail)
    }

    /// A load of such submissions.
    func submissions(connections: Int, depth: Int) throws -> PipelinedLoad {
        PipelinedLoad(
            connections: try (0..<connections).map { _ in try connect() }, depth: depth,
            requests: RequestBuffer(count: depth, Self.submission), scanner: Self.answers)
    }

    static var answers: AnswerScanner { AnswerScanner(first: "{", refusal: #""error":"#) }
}
