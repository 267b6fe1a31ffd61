import Foundation
import TestSupport
import Testing

/// Daemons that share a PostgreSQL database as nodes of one queue, each with a directory of its own.
struct Nodes {
    /// Why there can be none here, or nil.
    static let obstacle: Comment? =
        PostgreSQLCluster.programs != nil && Files.exists("/usr/include/postgresql/libpq-fe.h")
        ? nil : "PostgreSQL or libpq-dev is not installed; several nodes are not tested."

    /// Whether tests may take minutes, as in `make test-machines`.
    static let mayTakeLong = ProcessInfo.processInfo.environment["DEFERD_MACHINES"] == "long"

    /// Seconds after which the others take over from a node.
    static let lease = 3

    let household: Household
    let address: String
    private let environments: [[String: String]]
    private(set) var directories: [TemporaryDirectory] = []
    private(set) var daemons: [Daemon] = []

    /// `environments` are of the first nodes.
    init(
        _ household: Household, _ address: String, count: Int, environments: [[String: String]] = []
    ) async throws {
        (self.household, self.address, self.environments) = (household, address, environments)
        for index in 0..<count {
            directories.append(try TemporaryDirectory())
            daemons.append(try await start(index))
        }
    }

    /// Node `index`, which is named a, b, …
    private func start(_ index: Int) async throws -> Daemon {
        try await household.start(
            configuration: configuration(of: index),
            environment: index < environments.count ? environments[index] : [:], in: directories[index])
    }

    private func configuration(of index: Int) -> String {
        """
        state: {store: "\(address)"}
        node: {name: \(Self.name(index)), lease: \(Self.lease), statementTimeout: 1}
        queues: {default: {concurrency: 4}}
        programs: {any: true, only-\(Self.name(index)): {command: [/bin/echo, \(Self.name(index))]}}
        """
    }

    static func name(_ index: Int) -> String { String(UnicodeScalar(UInt8(97 + index))) }

    mutating func restart(_ index: Int) async throws { daemons[index] = try await start(index) }

    func stop() async throws { for daemon in daemons { try await daemon.stop() } }

    /// Runs `body` with nodes of a new database, and a connection to each.
    static func with(
        _ count: Int, _ cluster: PostgreSQLCluster? = nil, _ body: (inout Nodes, [Wire]) async throws -> Void
    ) async throws {
        try await with(count, at: try #require(cluster ?? PostgreSQLCluster.shared).makeDatabase(), body)
    }

    static func with(
        _ count: Int, at address: String, environments: [[String: String]] = [],
        _ body: (inout Nodes, [Wire]) async throws -> Void
    ) async throws {
        try await Household.with { household in
            var nodes = try await Nodes(household, address, count: count, environments: environments)
            try await body(&nodes, try nodes.daemons.map { try $0.connect() })
        }
    }

    /// Polls until a condition holds that no notification reports.
    static func until(_ isSo: () async throws -> Bool) async throws {
        let end = ContinuousClock.now + .seconds(Patience.seconds)
        while try await !isSo() {
            guard ContinuousClock.now < end else {
                Issue.record("The condition never held.")
                return
            }
            try await Task.sleep(for: .milliseconds(5))
        }
    }
}
