import JobModel
import TestSupport
import Testing

/// Large numbers of clients or calls: all are answered or refused as documented, and other users are served meanwhile:
/// their calls are answered before the attack ends.
@Suite(.serialized) struct HostileCrowdTests {
    private static let info = #"{"jsonrpc":"2.0","id":1,"method":"server.info"}"# + "\n"

    /// Runs `body` with a daemon and a client that was connected before, and checks that nothing of the attack remains.
    private func run(
        _ configuration: String, most: Int = 90 << 20, _ body: (Daemon, Wire) async throws -> Void
    ) async throws {
        try await Daemon.run(configuration: configuration) { daemon, wire in
            _ = try await wire.run(.value(1))
            let (before, descriptors) = (
                try Memory.resident(of: daemon.pid), try Memory.descriptors(of: daemon.pid)
            )
            try await body(daemon, wire)
            try await wire.eventually { $0["connections"] == 1 && $0["watches"] == 0 }
            // The store may read over a few connections more than before.
            #expect(try Memory.descriptors(of: daemon.pid) <= descriptors + 16)
            let taken = try Memory.peak(of: daemon.pid) - before
            #expect(taken < most, "\(taken >> 20) MiB")
        }
    }

    @Test func connectionsPastTheLimit_areToldSoAndClosed_eachOfThem() async throws {
        try await run("limits:\n  connections: 64\n") { daemon, wire in
            let crowd = Crowd()
            try crowd.connect(400, to: daemon)
            try await wire.eventually { $0["connections"] == 64 }
            // They are admitted in the order in which they came.
            for member in crowd.members.dropFirst(63) {
                let refusal = try JSON(parsing: Array(member.line().utf8))
                #expect(refusal["error"]?["code"] == -32003 && refusal["id"] == .null)
                #expect(refusal["error"]?["data"]?["retryAfter"]?.double ?? 0 > 0)
                #expect(member.read() == nil, "it is closed")
            }
            crowd.send(Self.info)
            for member in crowd.members.prefix(63) { #expect(member.line().contains(#""result""#)) }
            crowd.leave()
        }
    }

    @Test func descriptors_boundTheConnections_whereThereAreFew() async throws {
        try await Household.with { household in
            let (daemon, wire) = try await household.serve(wrapper: ["/usr/bin/prlimit", "--nofile=200:200"])
            #expect(try await wire.call("server.info")["limits"]?["connections"] == 100)
            let crowd = Crowd()
            try crowd.connect(400, to: daemon)
            for member in crowd.members.dropFirst(99) { #expect(member.line().contains("-32003")) }
            // There are descriptors left for the work itself.
            #expect(try await wire.run(.value(1))["state"] == "succeeded")
            crowd.leave()
            try await wire.eventually { $0["connections"] == 1 }
            try await daemon.stop()
        }
    }

    @Test func clientsThatVanishInMidLine_leaveNothing() async throws {
        try await run("limits:\n  memoryPerUser: 2097152\n") { daemon, wire in
            let job = try await wire.submit(.value(1, ["delay": 1000]))
            let calls = ["job.wait", "job.watch"].map { Wire.request(1, $0, .job(job)) + "\n" }.joined()
            for _ in 0..<20 {
                let crowd = Crowd()
                try crowd.connect(100, to: daemon)
                for (index, member) in crowd.members.enumerated() {
                    // Some of them break off in the middle of a character.
                    let line = calls + #"{"jsonrpc":"2.0","id":2,"method":"job.submit","params":{"label":"# + "\"ä"
                    member.write(
                        Array(line.utf8).dropLast(index % 3)
                            + (index % 3 == 0 ? Array(repeating: 120, count: 9_000) : []))
                }
                crowd.leave()
                #expect(try await wire.call("server.info")["name"] == "deferd")
            }
            try await wire.eventually { $0["connections"] == 1 && $0["watches"] == 0 }
            // Their earlier input no longer counts.
            let large = JSON.string(String(repeating: "x", count: 1_000_000))
            #expect(try await wire.run(.value(large))["state"] == "succeeded")
            #expect(try await wire.call("job.cancel", .job(job))["state"] == "cancelled")
        }
    }
}
