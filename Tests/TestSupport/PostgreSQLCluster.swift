import Foundation
import Glibc
import Synchronization

/// A PostgreSQL server of a test, with a database of its own kind of durability: none. It ends with the test's process,
/// however that ends, as it waits for the end of a pipe.
package final class PostgreSQLCluster: Sendable {
    /// The newest installed programs of a server; nil if there are none.
    package static let programs: String? =
        ((try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? [])
        .compactMap { Int($0) }.sorted().last.map { "/usr/lib/postgresql/\($0)/bin" }

    /// The server that the tests of a process share; nil where PostgreSQL is not installed.
    package static let shared: PostgreSQLCluster? = programs.flatMap { _ in try? PostgreSQLCluster() }

    private let directory: TemporaryDirectory
    private let lastNumber = Atomic<Int>(0)
    /// The end of a pipe that keeps the present server, if it runs.
    private let keeper = Mutex<Int32?>(nil)

    /// Makes and starts a server.
    package init() throws {
        directory = try TemporaryDirectory()
        // PostgreSQL refuses to run as root.
        if geteuid() == 0 { try run("chown postgres \(directory.path)", asServer: false) }
        try run("\(Self.programs ?? "")/initdb -D data -A trust -U deferd -E UTF8 --locale=C -N >initdb.log 2>&1")
        try start()
    }

    deinit { stop() }

    /// The address of a new, empty database.
    package func makeDatabase() throws -> String {
        let name = "test\(lastNumber.add(1, ordering: .relaxed).newValue)"
        try sql("CREATE DATABASE \(name) STRATEGY file_copy", in: "postgres")
        return address(of: name)
    }

    package func address(of database: String) -> String {
        "postgresql:///\(database)?host=\(directory.path)&user=deferd"
    }

    /// Runs a statement in a database of this name or address; returns what it gives as text.
    @discardableResult
    package func sql(_ statement: String, in database: String) throws -> String {
        let psql = "\(Self.programs ?? "")/psql"
        let result = try SystemProgram([
            psql, "-X", "-q", "-A", "-t", "-h", directory.path, "-U", "deferd", "-d", database, "-c", statement,
        ])
        guard result.status == 0 else { throw Failure(message: result.errorText) }
        return result.outputText.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    package func start() throws {
        var ends: [Int32] = [0, 0]
        // A program that starts at this moment must not keep the server.
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw SystemCallError(errno) }
        let (reading, writing) = (ends[0], ends[1])
        let options = "-D data -k \(directory.path) -c listen_addresses='' -c fsync=off -c max_connections=300"
        let script = """
            \(Self.programs ?? "")/postgres \(options) >>server.log 2>&1 </dev/null & server=$!
            read -r kept; kill -QUIT $server; wait $server
            [ -n "$kept" ] || rm -rf \(directory.path)
            """
        let arguments = arguments(script, asServer: true)
        let directory = directory
        let thread = Thread {
            _ = try? SystemProgram(arguments, input: reading)
            close(reading)
            // The last of them removes the files.
            withExtendedLifetime(directory) {}
        }
        thread.start()
        keeper.withLock { $0 = writing }
        for _ in 0..<600 where !isReady { usleep(50_000) }
        guard isReady else { throw Failure(message: "PostgreSQL did not start.") }
    }

    private var isReady: Bool {
        (try? SystemProgram(["\(Self.programs ?? "")/pg_isready", "-q", "-h", directory.path]))?.status == 0
    }

    /// Kills the server, as a crash does, and waits for its end.
    package func stop() {
        let end = keeper.withLock { exchange(&$0, with: nil) }
        guard let end else { return }
        // Otherwise the files are removed, as with the process.
        _ = write(end, "k\n", 2)
        close(end)
        while isReady { usleep(20_000) }
    }

    private func run(_ command: String, asServer: Bool = true) throws {
        let result = try SystemProgram(arguments(command, asServer: asServer))
        guard result.status == 0 else { throw Failure(message: "\(command): \(result.errorText)") }
    }

    private func arguments(_ command: String, asServer: Bool) -> [String] {
        let shell = ["/bin/sh", "-c", "cd \(directory.path) && \(command)"]
        guard asServer, geteuid() == 0 else { return shell }
        return ["/usr/bin/setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] + shell
    }

    private func exchange<Value>(_ value: inout Value, with new: Value) -> Value {
        defer { value = new }
        return value
    }

    package struct Failure: Error, CustomStringConvertible {
        let message: String
        package var description: String { message }
    }
}
