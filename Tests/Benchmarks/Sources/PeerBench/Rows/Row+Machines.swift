import Foundation
import Glibc

extension Row {
    /// Several daemons that share a PostgreSQL database.
    static var machines: Row {
        Row(name: "machines", title: "daemons that share a PostgreSQL database") { bench in
            let server = try PostgreSQLServer(bench)
            defer { server.stop() }
            try measureSubmissions(bench, server)
            try measureDraining(bench, server)
            try measureTakeover(bench, server)
            try measureSnapshot(bench, server)
            try measureBoundJobs(bench, server)
        }
    }

    /// A daemon that uses a database of the server.
    static func node(
        _ bench: Bench, _ server: PostgreSQLServer, _ database: String, named name: String = "ada",
        _ options: Deferd.Options = Deferd.Options()
    ) throws -> Deferd {
        var options = options
        (options.database, options.node) = (server.address(of: database), name)
        return try Deferd(bench, options)
    }

    // MARK: Submissions

    /// The submissions under way, and the rows that pgbench inserts in a commit.
    private static let group = 128

    private static func measureSubmissions(_ bench: Bench, _ server: PostgreSQLServer) throws {
        let database = try server.makeDatabase()
        let script = try insertScript(bench, server, database)
        let samples = try bench.rounds(
            5,
            [
                {
                    let daemon = try node(bench, server, try server.makeDatabase(), Deferd.waiting)
                    defer { daemon.stop() }
                    try daemon.suspendQueue()
                    let load = try daemon.submissions(connections: 1)
                    _ = try load.run(count: 2000)
                    return try load.run(seconds: 3).rate
                },
                {
                    try server.sql("TRUNCATE bench.jobs, bench.documents", in: database)
                    let report = try server.call(
                        "pgbench", ["-n", "-c", "1", "-T", "3", "-M", "prepared", "-f", script], in: database)
                    guard let rate = report.firstMatch(of: /tps = ([0-9.]+)/).flatMap({ Double($0.1) }) else {
                        throw BenchError("pgbench said: \(report)")
                    }
                    return rate * Double(group)
                },
            ])
        bench.add(
            "machines, submit", against: "pgbench, same rows", unit: "jobs/s", target: .atLeast(0.5),
            deferd: samples[0], peer: samples[1])
    }

    /// The path of a script that inserts the rows of as many submissions as are under way, with other ids each time.
    private static func insertScript(_ bench: Bench, _ server: PostgreSQLServer, _ database: String) throws -> String {
        let daemon = try node(bench, server, database, Deferd.waiting)
        try daemon.suspendQueue()
        _ = try daemon.submissions(connections: 1).run(count: group)
        daemon.stop()
        try server.sql("CREATE SCHEMA bench; CREATE SEQUENCE bench.ids", in: database)
        var inserts = ""
        for table in ["jobs", "documents"] {
            try server.sql(
                """
                CREATE TABLE bench.\(table) (LIKE deferd.\(table) INCLUDING ALL); \
                CREATE TABLE bench.sample AS SELECT * FROM deferd.\(table)
                """, in: database)
            let rows = ["--data-only", "--column-inserts", "--rows-per-insert=\(group)", "--table=bench.sample"]
            let dump = try server.call("pg_dump", rows, in: database)
            let insert = dump.split(separator: "\n").drop { !$0.hasPrefix("INSERT") }.prefix { !$0.hasPrefix("--") }
            inserts +=
                insert.joined(separator: "\n").replacing("bench.sample", with: "bench.\(table)")
                .replacing(/\n\t\([0-9]+,/, with: "\n\t(nextval('bench.ids'),") + "\n"
            try server.sql("DROP TABLE bench.sample", in: database)
        }
        let path = "\(try bench.inMemory())/insert.sql"
        try "BEGIN;\n\(inserts)COMMIT;\n".write(toFile: path, atomically: false, encoding: .utf8)
        return path
    }

    // MARK: Draining

    private static func measureDraining(_ bench: Bench, _ server: PostgreSQLServer) throws {
        let specs = [String](
            repeating: #"{"source":{"type":"program","command":["/bin/sleep","0.5"]}}"#, count: 480)
        var options = Deferd.Options()
        options.runsAnyProgram = true
        func rate(_ names: [String]) throws -> Double {
            let database = try server.makeDatabase()
            let nodes = try names.map { try node(bench, server, database, named: $0, options) }
            defer { for node in nodes { node.stop() } }
            return try Deferd.run(specs, over: nodes[0].watcher()).rate
        }
        let samples = try bench.rounds(3, [{ try rate(["ada", "bob", "cem"]) }, { try rate(["ada"]) }])
        bench.add(
            "machines, drain with 3", against: "itself with 1", unit: "jobs/s", target: .atLeast(1.5),
            deferd: samples[0], peer: samples[1])
    }

    // MARK: Takeover

    private static func measureTakeover(_ bench: Bench, _ server: PostgreSQLServer) throws {
        var options = Deferd.Options()
        (options.runsAnyProgram, options.lease) = (true, 3)
        let samples = try bench.rounds(
            3,
            [
                {
                    let database = try server.makeDatabase()
                    let dying = try node(bench, server, database, named: "ada", options)
                    let specs = [String](
                        repeating: #"{"source":{"type":"program","command":["/bin/sleep","100"]}}"#, count: 8)
                    let client = try dying.connect()
                    for spec in specs { _ = try client.call(Deferd.request("1", spec: spec)) }
                    let runs = "SELECT count(*) FROM deferd.jobs WHERE run_life = 1"
                    while try server.sql(runs, in: database) != "\(specs.count)" { usleep(10_000) }
                    let others = try ["bob", "cem"].map { try node(bench, server, database, named: $0, options) }
                    defer { for node in others { node.stop() } }
                    kill(dying.pid, SIGKILL)
                    let watch = Stopwatch()
                    while try server.sql(runs, in: database) != "0" {
                        usleep(20_000)
                        guard watch.seconds < 60 else { throw BenchError("The jobs were not taken over.") }
                    }
                    return watch.seconds
                }
            ])
        bench.add(
            "machines, takeover after kill -9", against: "–", unit: "s", figure: .own,
            target: .atMost(Double(options.lease) + 2), deferd: samples[0], peer: samples[0])
    }
}
