import Foundation
import Glibc
import Synchronization

/// A PostgreSQL server of a test, which syncs nothing to the disk. It ends with the test's process, however that ends.
package final class PostgreSQLCluster: Sendable {
    /// The newest installed programs of a server; nil if there are none.
    package static let programs: String? =
        ((try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? [])
        .compactMap { Int($0) }.sorted().last.map { "/usr/lib/postgresql/\($0)/bin" }

    /// The server that the tests of a process share; nil where PostgreSQL is not installed.
    package static let shared: PostgreSQLCluster? = programs.flatMap { _ in try? PostgreSQLCluster() }

    package let directory: TemporaryDirectory
    private let lastNumber = Atomic<Int>(0)
    /// The server ends, and its files go, once this is closed.
    private let keeper: Int32

    /// Makes and starts a server.
    package convenience init() throws {
        try self.init("initdb -D data -A trust -U postgres -E UTF8 --locale=C -N")
    }

    /// Makes and starts a standby of this server, which answers its commits from then on.
    package func makeStandby() throws -> PostgreSQLCluster {
        let source = "host=\(directory.path) user=postgres application_name=standby"
        let standby = try PostgreSQLCluster("pg_basebackup -D data -R -c fast -N -d \"\(source)\"")
        try sql("ALTER SYSTEM SET synchronous_standby_names = 'standby'", in: "postgres")
        try sql("SELECT pg_reload_conf()", in: "postgres")
        while try sql("SELECT sync_state FROM pg_stat_replication", in: "postgres") != "sync" { usleep(10_000) }
        return standby
    }

    /// Makes and starts a server with what a program makes.
    private init(_ program: String) throws {
        directory = try TemporaryDirectory()
        // PostgreSQL refuses to run as root.
        if geteuid() == 0 { try Self.run("chown postgres \(directory.path)", in: directory, asServer: false) }
        try Self.run("\(Self.programs ?? "")/\(program) >init.log 2>&1", in: directory)
        keeper = try Self.keeper(of: directory)
        try start()
    }

    /// Makes a server of a standby; returns once it accepts writes.
    package func promote() throws { try control("promote -t 600") }

    deinit { close(keeper) }

    /// Starts a program that waits until the returned descriptor is closed, at the latest with this process.
    private static func keeper(of directory: TemporaryDirectory) throws -> Int32 {
        var ends: [Int32] = [0, 0]
        // A program that starts at this moment must not keep the server.
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw SystemCallError(errno) }
        let (reading, writing) = (ends[0], ends[1])
        let script =
            "cat; \(programs ?? "")/pg_ctl -D data stop -m immediate >pg_ctl.log 2>&1; rm -rf \(directory.path)"
        let arguments = arguments(script, in: directory, asServer: true)
        let thread = Thread {
            _ = try? SystemProgram(arguments, input: reading)
            close(reading)
            withExtendedLifetime(directory) {}
        }
        thread.start()
        return writing
    }

    /// The address of a new, empty database, made with these `options`.
    package func makeDatabase(options: String = "") throws -> String {
        let name = "test\(lastNumber.add(1, ordering: .relaxed).newValue)"
        try sql("CREATE DATABASE \(name) STRATEGY file_copy \(options)", in: "postgres")
        return address(of: name)
    }

    package func address(of database: String) -> String {
        "postgresql:///\(database)?host=\(directory.path)&user=postgres"
    }

    /// Runs a statement in a database of this name or address; returns what it gives as text.
    @discardableResult
    package func sql(_ statement: String, in database: String) throws -> String {
        let psql = "\(Self.programs ?? "")/psql"
        let result = try SystemProgram([
            psql, "-X", "-q", "-A", "-t", "-h", directory.path, "-U", "postgres", "-d", database, "-c", statement,
        ])
        guard result.status == 0 else { throw Failure(message: result.errorText) }
        return result.outputText.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Starts the server; returns once it accepts connections. `disk` is the size of a file system that root mounts at the
    /// directory `disk`, for the server alone.
    package func start(environment: [String: String] = [:], disk: String? = nil) throws {
        let options = "-k \(directory.path) -c listen_addresses= -c fsync=off -c max_connections=300"
        var wrapper: [String] = []
        if let disk {
            let script = "mkdir $0; mount -t tmpfs -o size=\(disk) tmpfs $0 && chown postgres $0 && exec \"$@\""
            wrapper = ["/usr/bin/unshare", "-m", "/bin/sh", "-c", script, directory.path + "/disk"]
        }
        try control("start -t 600 -l server.log -o '\(options)'", environment, wrapper)
    }

    /// Ends the server without a checkpoint, as a crash does, and waits for its end.
    package func stop() throws { try control("stop -t 600 -m immediate") }

    /// Kills the server's processes at the same time, and waits for their end.
    package func kill() throws {
        let server = try process
        // It starts no more processes meanwhile.
        Glibc.kill(server, SIGSTOP)
        let processes = try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { pid_t($0) }
        let all = [server] + processes.filter { Self.parent(of: $0) == server }
        for process in all { Glibc.kill(process, SIGKILL) }
        for process in all { while Glibc.kill(process, 0) == 0 { usleep(1000) } }
    }

    /// The server's first process.
    package var process: Int32 {
        get throws {
            let lines = try String(contentsOfFile: directory.path + "/data/postmaster.pid", encoding: .utf8)
            guard let process = lines.split(separator: "\n").first.flatMap({ pid_t($0) }) else {
                throw Failure(message: "The server is not there.")
            }
            return process
        }
    }

    /// The parent of a process.
    private static func parent(of process: pid_t) -> pid_t? {
        let words = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
            .split(separator: ")").last?.split(separator: " ")
        guard let words, words.count > 1 else { return nil }
        return pid_t(words[1])
    }

    private func control(
        _ command: String, _ environment: [String: String] = [:], _ wrapper: [String] = []
    ) throws {
        try Self.run(
            "\(Self.programs ?? "")/pg_ctl -D data -w \(command)", in: directory, environment, wrapper)
    }

    private static func run(
        _ command: String, in directory: TemporaryDirectory, asServer: Bool = true,
        _ environment: [String: String] = [:], _ wrapper: [String] = []
    ) throws {
        let arguments = wrapper + arguments(command, in: directory, asServer: asServer)
        let result = try SystemProgram(arguments, environment: environment)
        guard result.status == 0 else {
            throw Failure(message: "\(command): \(result.errorText)\(result.outputText)")
        }
    }

    private static func arguments(_ command: String, in directory: TemporaryDirectory, asServer: Bool) -> [String] {
        let shell = ["/bin/sh", "-c", "cd \(directory.path) && \(command)"]
        guard asServer, geteuid() == 0 else { return shell }
        return ["/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] + shell
    }

    package struct Failure: Error, CustomStringConvertible {
        let message: String
        package var description: String { message }
    }
}
