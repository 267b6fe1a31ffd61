import Foundation
import Glibc

/// A PostgreSQL server of the bench, with its data on the disk and Debian's settings.
final class PostgreSQLServer {
    /// The programs of the newest version that is installed.
    private static let programs: String = {
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? []
        return "/usr/lib/postgresql/\(versions.compactMap { Int($0) }.max() ?? 0)/bin"
    }()

    private let data: String
    private let sockets: String
    private var databases = 0

    init(_ bench: Bench) throws {
        let directory = try bench.onDisk()
        data = "\(directory)/data"
        sockets = try bench.inMemory()
        if geteuid() == 0 {
            guard let user = getpwnam("postgres")?.pointee else { throw BenchError("There is no user postgres.") }
            for directory in [directory, sockets] { chown(directory, user.pw_uid, user.pw_gid) }
        }
        try asServer("initdb", ["-A", "trust", "-U", "deferd", "-E", "UTF8", "--locale=C"])
        let options = "-k \(sockets) -c listen_addresses="
        try asServer("pg_ctl", ["-l", "\(directory)/log", "-w", "-o", options, "start"])
    }

    deinit { stop() }

    func stop() { try? asServer("pg_ctl", ["-m", "immediate", "stop"]) }

    /// The name of a new, empty database.
    func makeDatabase() throws -> String {
        databases += 1
        let name = "bench\(databases)"
        try sql("CREATE DATABASE \(name)", in: "postgres")
        return name
    }

    func address(of database: String) -> String { "postgresql:///\(database)?host=\(sockets)&user=deferd" }

    /// What a statement gives, as text.
    @discardableResult
    func sql(_ statement: String, in database: String) throws -> String {
        try call("psql", ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement], in: database)
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// The output of one of the server's client programs.
    func call(_ program: String, _ arguments: [String], in database: String) throws -> String {
        try ChildProcess.output(
            of: ["\(Self.programs)/\(program)", "-h", sockets, "-U", "deferd"] + arguments + [database])
    }

    /// Keeps a snapshot of a database until the server's function `pg_terminate_backend` ends its session.
    func pinSnapshot(of database: String) throws -> ChildProcess {
        let pin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM deferd.jobs; SELECT pg_sleep(3600)"
        let process = try ChildProcess(
            ["\(Self.programs)/psql", "-X", "-q", "-h", sockets, "-U", "deferd", "-c", pin, database])
        let isPinned = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
        while try sql(isPinned, in: database) == "0" { usleep(10_000) }
        return process
    }

    func releaseSnapshot(_ process: ChildProcess) throws {
        try sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'", in: "postgres")
        try process.wait()
    }

    /// Runs a program with the server's data; PostgreSQL refuses to run as root.
    private func asServer(_ program: String, _ arguments: [String]) throws {
        let user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        _ = try ChildProcess.output(
            of: (geteuid() == 0 ? user : []) + ["\(Self.programs)/\(program)", "-D", data] + arguments)
    }
}
