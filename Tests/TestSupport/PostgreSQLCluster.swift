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
    package init() throws {
        directory = try TemporaryDirectory()
        // PostgreSQL refuses to run as root.
        if geteuid() == 0 { try Self.run("chown postgres \(directory.path)", in: directory, asServer: false) }
        try Self.run(
            "\(Self.programs ?? "")/initdb -D data -A trust -U postgres -E UTF8 --locale=C -N >initdb.log 2>&1",
            in: directory)
        keeper = try Self.keeper(of: directory)
        try start()
    }

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

    /// The address of a new, empty database.
    package func makeDatabase() throws -> String {
        let name = "test\(lastNumber.add(1, ordering: .relaxed).newValue)"
        try sql("CREATE DATABASE \(name) STRATEGY file_copy", in: "postgres")
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

    /// Starts the server; returns once it accepts connections.
    package func start() throws {
        let options = "-k \(directory.path) -c listen_addresses= -c fsync=off -c max_connections=300"
        try control("start -t 600 -l server.log -o '\(options)'")
    }

    /// Kills the server, as a crash does, and waits for its end.
    package func stop() throws { try control("stop -t 600 -m immediate") }

    private func control(_ command: String) throws {
        try Self.run("\(Self.programs ?? "")/pg_ctl -D data -w \(command) >pg_ctl.log 2>&1 </dev/null", in: directory)
    }

    private static func run(_ command: String, in directory: TemporaryDirectory, asServer: Bool = true) throws {
        let result = try SystemProgram(arguments(command, in: directory, asServer: asServer))
        guard result.status == 0 else { throw Failure(message: "\(command): \(result.errorText)") }
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
