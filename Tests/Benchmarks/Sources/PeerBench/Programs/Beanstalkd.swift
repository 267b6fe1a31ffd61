import Foundation
import Glibc

/// A running beanstalkd with its own directories.
final class Beanstalkd {
    /// How it writes to the disk.
    enum Binlog {
        case none
        /// A binlog that is synced before each answer.
        case always
        /// A binlog that is synced every 50 ms, as is its default.
        case often
    }

    /// From exec to the first answer, in seconds.
    let startTime: Double
    private let socketPath: String
    private let process: ChildProcess

    init(_ bench: Bench, _ binlog: Binlog, state: String? = nil) throws {
        let directory = try bench.inMemory()
        socketPath = "\(directory)/beanstalkd.sock"
        var arguments = ["beanstalkd", "-l", "unix:\(socketPath)"]
        if binlog != .none { arguments += ["-b", try state ?? bench.onDisk()] }
        if binlog == .always { arguments += ["-f", "0"] }
        process = try ChildProcess(arguments, output: "\(directory)/beanstalkd.log")
        let answer = try LocalSocket(path: socketPath, patience: 10).ask("use bench\r\n")
        startTime = process.age
        guard answer.hasPrefix("USING") else { throw BenchError("beanstalkd answered \(answer)") }
    }

    var pid: pid_t { process.pid }

    func connect() throws -> LocalSocket { try LocalSocket(path: socketPath) }

    func stop() { process.stop() }

    /// How the answer to each ``put(_:)`` begins.
    static let answer = "INSERTED"

    /// A request to store a job of 200 bytes.
    static func put(_ id: Int) -> String {
        "put 0 0 60 200\r\n\(id)" + String(repeating: "x", count: 196) + "\r\n"
    }

    func puts(connections: Int, depth: Int = 128) throws -> Load {
        Load(
            try (0..<connections).map { _ in try connect() }, depth: depth,
            requests: (1000..<5000).map(Self.put), answer: Self.answer)
    }
}
