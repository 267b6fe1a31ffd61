import Glibc
import JobModel
import TestOrigin
import Testing

/// Clients that try to fill the daemon's memory, with small limits.
@Suite struct HostileClientTests {
    private static let bounds = "limits:\n  memoryPerUser: 8388608\n  documents: 8388608\n"
    /// The memory that the daemon may use in addition: the limit on requests and answers, the limit on documents,
    /// current work, and the caches of its allocator and the database.
    private static let most = 90 << 20

    /// Runs `body` with a daemon, which must not have taken more than it may in the end.
    private func run(_ more: String = "", _ body: (Daemon) async throws -> Void) async throws {
        try await Daemon.run(configuration: Self.bounds + more) { daemon, wire in
            _ = try await wire.call("server.info")
            let before = try Memory.resident(of: daemon.pid)
            try await body(daemon)
            let taken = try Memory.peak(of: daemon.pid) - before
            #expect(taken < Self.most, "\(taken >> 20) MiB")
        }
    }

    private func largeJob(_ wire: Wire) async throws -> Int {
        let id = try await wire.submit(.value(.string(String(repeating: "x", count: 900_000))))
        _ = try await wire.wait(id)
        return id
    }

    @Test func unfinishedLines_areNotReadOn_pastTheBound() async throws {
        try await run { daemon in
            let part =
                #"{"jsonrpc":"2.0","id":1,"method":"job.explain","params":{"source":{"type":"value","value":""#
                + String(repeating: "x", count: 900_000)
            let end = "\"}}}\n"
            var open: [Wire] = []
            for _ in 0..<20 {
                let wire = try daemon.connect()
                wire.send(raw: part)
                open.append(wire)
            }
            // Short requests are answered meanwhile, and long lines one after the other once they end.
            let other = try daemon.connect()
            for _ in 0..<20 { #expect(try await other.call("server.info")["name"] == "deferd") }
            for wire in open { wire.send(raw: end) }
            for wire in open { #expect(try await wire.answer(1)["result"]?["source"]?["type"] == "value") }
        }
    }

    @Test func connectionsThatNeverRead_areClosed_whileOthersAreServed() async throws {
        try await run { daemon in
            let reader = try daemon.connect()
            let id = try await largeJob(reader)
            // Without any free memory, connections with the most unread data are closed first; the reader is never one
            // of them.
            let small = try await reader.submit(.value(.string(String(repeating: "x", count: 200_000))))
            _ = try await reader.wait(small)
            var idle: [Wire] = []
            for _ in 0..<20 {
                let wire = try daemon.connect(reads: false)
                for _ in 0..<8 { wire.send("job.get", .job(id)) }
                idle.append(wire)
            }
            // They make the reader's requests be refused for a while, but not for ever.
            var served = 0
            while served < 30 {
                do {
                    _ = try await reader.call("job.get", .job(small))
                    served += 1
                } catch let refusal as Wire.Refusal {
                    guard refusal.code == -32003 else { throw refusal }
                }
            }
            for wire in idle { wire.close() }
        }
    }

    @Test func waitsAndWatches_areRefused_pastTheBound() async throws {
        try await run { daemon in
            let wire = try daemon.connect()
            let id = try await wire.submit(["source": ["type": "timer", "seconds": 3600]])
            // An id is in memory for as long as its wait.
            wire.send(
                raw:
                    #"{"jsonrpc":"2.0","id":"\#(String(repeating: "i", count: 5000))","method":"job.wait","params":{"job":\#(id)}}"#
                    + "\n")
            #expect(try await wire.next()?.json["error"]?["code"] == -32600)
            let many = JSON.array(Array(repeating: JSON(id), count: 20_000))
            var refused = 0
            for _ in 0..<40 {
                do {
                    _ = try await wire.call("job.watch", ["jobs": many])
                } catch let refusal as Wire.Refusal {
                    #expect(refusal.code == -32003)
                    refused += 1
                }
            }
            #expect(refused > 0 && refused < 40)
            // Released memory is available again, even for requests that arrive together with the one that releases it.
            var watch: JSON = "w1"
            for _ in 0..<50 {
                wire.send("job.unwatch", ["watch": watch])
                watch = try #require(try await wire.call("job.watch", ["jobs": many])["watch"])
            }
        }
    }

    @Test func lineOfTinyValues_isRefused() async throws {
        try await run { daemon in
            let wire = try daemon.connect()
            for text in [#"{"":0}"#, "[]", "0"] {
                let values = String(repeating: text + ",", count: 1_000_000 / (text.utf8.count + 1)) + "0"
                wire.sendLine(
                    #"{"jsonrpc":"2.0","id":1,"method":"job.submit","params":{"source":{"type":"value","value":["#
                        + values + "]}}}")
                let answer = try #require(try await wire.next())
                #expect(answer.json["error"]?["code"] == -32600)
                #expect(answer.json["error"]?["data"]?["kind"] == "too-large")
            }
            #expect(try await wire.run(.value(1))["state"] == "succeeded")
        }
    }

    /// Reading and closing happen at the same moment, and the submissions are still stored.
    @Test func submissions_areCarriedOut_whenTheirClientIsGone() async throws {
        try await Daemon.run { daemon, wire in
            // It finds the lines and the end of the connection at the same moment.
            daemon.process.send(signal: SIGSTOP)
            for number in 0..<20 {
                let gone = try daemon.connect(reads: false)
                gone.send("job.submit", .value(JSON(number)))
                gone.closeAfterSending()
            }
            daemon.process.send(signal: SIGCONT)
            try await wire.eventually { $0["jobs"]?["succeeded"] == 20 }
        }
    }
}
