import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// A hostile user gets the documented answers; another user is never refused and gets the right answers, over an
/// existing connection and over new ones.
@Suite(.serialized, .enabled(if: User.canBeOthers, "being several users needs root")) struct HostileUserTests {
    private static let info = #"{"jsonrpc":"2.0","id":1,"method":"server.info"}"# + "\n"
    private static let stranger = User(uid: 64_003, groups: [64_003])

    /// The user who is not hostile.
    private struct Other {
        let daemon: Daemon
        let wire: Wire

        /// Has to be served; as often as is asked for.
        func isServed(sourceLocation: SourceLocation = #_sourceLocation) async throws {
            let number = Int.random(in: 0...1 << 32)
            let job = try await wire.run(.value(JSON(number)))
            #expect(job["result"]?.int == number && job["owner"] == 64_002, sourceLocation: sourceLocation)
            let shown = try await wire.call("job.get", ["job": job["job"] ?? .null])
            #expect(shown["state"] == "succeeded", sourceLocation: sourceLocation)
            // Connections of two users at once.
            for user in [User.bob, HostileUserTests.stranger] {
                let new = try user.descriptor(to: daemon)
                defer { new.close() }
                new.write(Array(HostileUserTests.info.utf8))
                let answer = try JSON(parsing: Array(new.line().utf8))
                #expect(
                    answer["result"]?["you"] == ["uid": JSON(Int(user.uid)), "admin": false], "\(answer)",
                    sourceLocation: sourceLocation)
            }
        }
    }

    /// Runs `body` with a daemon that admits every user, and checks that nothing of the attack remains.
    private func run(_ limits: String = "", _ body: (Daemon, Other) async throws -> Void) async throws {
        try await Household.with { household in
            chmod(household.directory.path, 0o711)
            let daemon = try await household.start(
                configuration: "socket:\n  mode: \"0666\"\nlimits:\n  memoryPerUser: 8388608\n" + limits)
            let root = try daemon.connect()
            let other = Other(daemon: daemon, wire: try User.bob.connect(to: daemon))
            try await other.isServed()
            try await body(daemon, other)
            try await other.isServed()
            try await root.eventually {
                $0["connections"] == 2 && $0["watches"] == 0 && $0["jobs"]?["queued"] == 0
                    && $0["jobs"]?["running"] == 0
            }
            #expect(try await root.call("server.stats")["jobs"]?["failed"] == 0)
            try await daemon.stop()
        }
    }

    /// Runs work that waits for the daemon on a separate thread.
    private func apart<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: body()) }
        }
    }

    @Test func connectionsPastTheLimitOfAUser_areToldSoAndClosed() async throws {
        try await run("  connections: 1000\n  connectionsPerUser: 100\n") { daemon, other in
            let (count, crowd) = (Crowd.room(for: 2_000), Crowd())
            for _ in 0..<10 {
                try crowd.connect(count / 10, to: daemon, as: .ann)
                try await other.isServed()
            }
            for member in crowd.members.dropFirst(100) {
                let refusal = try JSON(parsing: Array(member.line().utf8))
                #expect(refusal["error"]?["code"] == -32003 && refusal["error"]?["data"]?["kind"] == "busy")
                #expect(refusal["id"] == .null && refusal["error"]?["data"]?["retryAfter"]?.double ?? 0 > 0)
                #expect(member.read() == nil, "it is closed")
            }
            crowd.send(Self.info)
            for member in crowd.members.prefix(100) { #expect(member.line().contains(#""result""#)) }
            crowd.leave()
        }
    }

    @Test func linesWithoutEnd_areEachAnswered_orTheirConnectionIsClosed() async throws {
        try await run("  outbound: 1048576\n") { daemon, other in
            let lines = [Self.info, Wire.request(2, "job.get", .job(999_999)) + "\n", "nonsense\n"].joined()
            let answers = [#""result""#, "-32001", "-32700", "-32003"]
            let flood = try Flood(daemon, as: .ann, String(repeating: lines, count: 300), answers: answers)
            // Another client reads nothing: its input is not read any more, or it is closed.
            let deaf = try User.ann.descriptor(to: daemon)
            let endless = Array(String(repeating: lines, count: 30_000).utf8)
            async let end: Void = apart { deaf.write(endless) }
            for _ in 0..<20 { try await other.isServed() }
            let (sent, counts) = try await flood.stop()
            #expect(counts.values.reduce(0, +) == sent && sent > 0)
            #expect(Set(counts.keys).isSubset(of: answers), "\(counts.keys)")
            deaf.shutDown()
            await end
            deaf.close()
        }
    }
}
