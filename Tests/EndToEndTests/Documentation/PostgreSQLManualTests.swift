import Foundation
import JobModel
import TestSupport
import Testing

/// The examples of deferd-machines(7) work, and the rights that it asks for are enough.
@Suite(
    .enabled(
        if: PostgreSQLCluster.programs != nil && Files.exists("/usr/include/postgresql/libpq-fe.h"),
        "PostgreSQL or libpq-dev is not installed; the manual of several machines is not tested."))
struct PostgreSQLManualTests {
    private static let manual: String = {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        return (try? String(contentsOf: root.appending(path: "config/man/deferd-machines.7"), encoding: .utf8)) ?? ""
    }()

    /// The display behind the comment with this name.
    private static func example(_ name: String) throws -> String {
        let start = try #require(manual.range(of: ".\\\" run: \(name)\n.Bd -literal -offset indent\n"))
        let end = try #require(manual.range(of: "\n.Ed", range: start.upperBound..<manual.endIndex))
        return String(manual[start.upperBound..<end.lowerBound])
    }

    private static func run(_ example: String, on cluster: PostgreSQLCluster, in database: String) throws {
        for statement in try Self.example(example).split(separator: "\n") {
            try cluster.sql(String(statement), in: database)
        }
    }

    /// The configuration in the manual, for a database of the cluster, a role and a node.
    private static func configuration(
        _ cluster: PostgreSQLCluster, _ database: String = "deferd", role: String = "deferd", node: String = "ada"
    ) throws -> String {
        let address = cluster.address(of: database).replacing("user=postgres", with: "user=\(role)")
        let example = try Self.example("yaml")
        #expect(example.contains("postgresql://deferd@db.example.org/deferd") && example.contains("name: ada"))
        return example.replacing(/postgresql:\S+/, with: "\"\(address)\"").replacing("name: ada", with: "name: \(node)")
    }

    @Test func roles_haveEnoughRights_whereTheManualIsFollowed() async throws {
        let cluster = try PostgreSQLCluster()
        try Self.run("sql", on: cluster, in: "postgres")
        try await Daemon.run(configuration: try Self.configuration(cluster)) { _, wire in
            #expect(try await wire.succeed(.value(1)) == 1)
            try Self.run("sql second", on: cluster, in: "postgres")
            let second = try Self.configuration(cluster, role: "deferd2", node: "bob")
            try await Daemon.run(configuration: second) { _, other in
                #expect(try await other.succeed(.value(2)) == 2)
                let nodes = try await wire.call("server.nodes")["nodes"]?.array ?? []
                #expect(nodes.map { $0["node"] } == ["ada", "bob"])
                // As a node does with one that stands still; this session does nothing but listen.
                let ended = try cluster.sql(
                    """
                    SET ROLE deferd; SELECT bool_and(pg_terminate_backend(pid)) FROM pg_stat_activity \
                    WHERE usename = 'deferd2' AND query = 'LISTEN deferd'
                    """, in: "deferd")
                #expect(ended == "t")
                #expect(try await wire.succeed(.value(3)) == 3)
            }
        }
        try cluster.sql("CREATE DATABASE other", in: "postgres")
        try Self.run("sql owned", on: cluster, in: "other")
        try await Daemon.run(configuration: try Self.configuration(cluster, "other")) { _, wire in
            let result = try await wire.succeed(.value(4))
            #expect(result == 4)
        }
    }

    @Test func jobs_areThere_afterABackupWasRestored() async throws {
        let cluster = try PostgreSQLCluster()
        try Self.run("sql", on: cluster, in: "postgres")
        try await Household.with { household in
            let configuration = try Self.configuration(cluster)
            func shell(_ example: String) async throws {
                let (end, _, errors) = try await ChildProcess.run(
                    ["/bin/sh", "-e", "-c", try Self.example(example)],
                    environment: [
                        "PATH": "\(PostgreSQLCluster.programs ?? ""):/usr/bin:/bin", "PGUSER": "deferd",
                        "PGHOST": cluster.directory.path,
                    ], directory: household.directory.path)
                #expect(end == .code(0), "\(errors)")
            }
            var (daemon, wire) = try await household.serve(configuration: configuration)
            let done = try await wire.submit(.value("kept"))
            _ = try await wire.wait(done)
            let held = try await wire.submit(.value("held", ["held": true]))
            try await shell("shell backup")
            _ = try await wire.call("job.remove", .job(done))
            try await daemon.stop()

            try await shell("shell restore")
            (daemon, wire) = try await household.serve(configuration: configuration)
            #expect(try await wire.call("job.get", .job(done))["result"] == "kept")
            _ = try await wire.call("job.release", .job(held))
            #expect(try await wire.wait(held)["result"] == "held")
            try await daemon.stop()
        }
    }
}
