import Glibc

/// A running redis-server with its own directories, which syncs its log before each answer.
final class Redis {
    private static let durability = ["--appendonly", "yes", "--appendfsync", "always"]
    static let options = (durability + ["--save \"\"", "--port 0", "--unixsocket PATH"]).joined(separator: " ")

    let socketPath: String
    private let process: ChildProcess

    init(_ bench: Bench) throws {
        let directory = try bench.directories.inMemory()
        socketPath = "\(directory)/redis.sock"
        process = try ChildProcess(
            [
                "redis-server", "--port", "0", "--unixsocket", socketPath, "--dir", try bench.directories.onDisk(),
                "--save", "", "--daemonize", "no",
            ] + Self.durability,
            output: "\(directory)/redis.log")
        // It accepts connections before it has made its log.
        let socket = try LocalSocket(path: socketPath, patience: 10)
        var answer = try socket.ask(Self.line("PING"))
        while answer.hasPrefix("-LOADING") {
            usleep(1000)
            answer = try socket.ask(Self.line("PING"))
        }
        guard answer.hasPrefix("+PONG") else { throw BenchError("redis-server answered \(answer)") }
    }

    var pid: pid_t { process.pid }

    func connect() throws -> LocalSocket { try LocalSocket(path: socketPath) }

    func stop() { process.stop() }

    /// A request to put a job of 200 bytes behind the others.
    static func push(_ id: String) -> String { line("RPUSH", "jobs", id + String(repeating: "x", count: 196)) }

    func pushes(connections: Int, depth: Int) throws -> PipelinedLoad {
        PipelinedLoad(
            connections: try (0..<connections).map { _ in try connect() }, depth: depth,
            requests: RequestBuffer(count: depth, Self.push), scanner: Self.answers)
    }

    static var answers: AnswerScanner { AnswerScanner(first: ":", refusal: "ERR") }

    private static func line(_ words: String...) -> String {
        "*\(words.count)\r\n" + words.map { "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()
    }
}
