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
            let (count, crowd) = (Crowd.room(for: 10_000), Crowd())
            try crowd.connect(count, to: daemon)
            #expect(try await wire.call("server.stats")["connections"] == 64)
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

    @Test func connectionsWithinTheLimit_areAllServed() async throws {
        let count = Crowd.room(for: 10_000)
        let limits = "limits:\n  connections: \(count + 1)\n  connectionsPerUser: \(count + 1)\n"
        // Some 20 KiB for each connection.
        try await run(limits, most: 400 << 20) { daemon, wire in
            let crowd = Crowd()
            try crowd.connect(count, to: daemon)
            crowd.send(Self.info)
            #expect(try await wire.run(.value(1))["state"] == "succeeded")
            for member in crowd.members { #expect(member.line().contains(#""result""#)) }
            #expect(try await wire.call("server.stats")["connections"]?.int == count + 1)
            #expect(try Wire.descriptor(daemon.socket).line().contains("-32003"))
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

    @Test func linesThatComeByteForByte_areAnswered_andOthersServedInBetween() async throws {
        try await run("limits:\n  memoryPerUser: 1048576\n") { daemon, wire in
            let crowd = Crowd()
            try crowd.connect(200, to: daemon)
            for byte in Self.info {
                crowd.send(String(byte))
                #expect(try await wire.call("server.info")["name"] == "deferd")
            }
            for member in crowd.members { #expect(member.line().contains(#""result""#)) }
            crowd.leave()
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

    @Test(arguments: [
        ("server.info", "{}", #""result""#), ("job.get", #"{"job":999999}"#, "-32001"), ("none", "{}", "-32601"),
        ("job.cancel", #"{"job":1}"#, "-32004"),
    ])
    func linesWithoutEnd_areEachAnswered_andOthersServedInBetween(
        method: String, params: String, answer: String
    ) async throws {
        try await run("") { daemon, wire in
            let line = #"{"jsonrpc":"2.0","id":7,"method":"\#(method)","params":\#(params)}"# + "\n"
            let flood = try Flood(daemon, String(repeating: line, count: 1000), answers: [answer, "-32003"])
            // During the whole attack, others are served each time.
            for _ in 0..<20 { #expect(try await wire.run(.value(1))["state"] == "succeeded") }
            let (sent, answers) = try await flood.stop()
            #expect(answers.values.reduce(0, +) == sent)
            #expect(Set(answers.keys).isSubset(of: [answer, "-32003"]), "\(answers.keys.prefix(5))")
        }
    }

    @Test func cancelStorm_endsEachJobOnce_andOthersAreServedInBetween() async throws {
        let (rounds, count) = (8, 500)
        try await run("") { daemon, wire in
            let stormer = try daemon.connect()
            let first = try await stormer.submit(.value(1, ["delay": 1000]))
            var next = first + 1
            for _ in 0..<rounds {
                // Each is cancelled while others are being stored.
                for job in next..<next + count {
                    stormer.send("job.submit", .value(1, ["delay": 1000]))
                    stormer.send("job.cancel", .job(job))
                }
                next += count
                #expect(try await wire.call("server.info")["name"] == "deferd")
                var (created, cancelled) = (0, 0)
                for _ in 0..<2 * count {
                    let result = try #require(try await stormer.next()).json["result"]
                    if result?["created"] == true { created += 1 }
                    if result?["state"] == "cancelled" { cancelled += 1 }
                }
                #expect(created == count && cancelled == count)
            }
            // One job again and again: it ends once, and all others are told that it has.
            var codes: [JSON: Int] = [:]
            for _ in 0..<rounds {
                for _ in 0..<count { stormer.send("job.cancel", .job(first)) }
                #expect(try await wire.call("server.info")["name"] == "deferd")
                for _ in 0..<count {
                    codes[try #require(try await stormer.next()).json["error"]?["code"] ?? 0, default: 0] += 1
                }
            }
            #expect(codes == [0: 1, -32004: rounds * count - 1])
            #expect(try await wire.run(.value(1))["state"] == "succeeded")
            let jobs = try await wire.call("server.stats")["jobs"]
            #expect(jobs?["cancelled"]?.int == rounds * count + 1 && jobs?["scheduled"] == 0)
            stormer.close()
        }
    }
}
