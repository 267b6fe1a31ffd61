import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// Temporary shortages of a running daemon: jobs are kept, and the daemon recovers by itself.
@Suite(.enabled(if: Files.exists("/usr/bin/prlimit"), "there is no prlimit")) struct ShortageTests {
    /// Changes the soft limit of the running daemon.
    private func limit(_ daemon: Daemon, _ limit: String) async throws {
        let (end, _, errors) = try await ChildProcess.run(["/usr/bin/prlimit", "--pid", "\(daemon.pid)", "--\(limit):"])
        try #require(end == .code(0), "\(errors)")
    }

    @Test func connections_wait_whileThereAreNoDescriptors() async throws {
        try await Daemon.run(environment: ["WATCHDOG_USEC": "200000"]) { daemon, wire in
            let running = try await wire.submit(.timer(3600))
            try await wire.eventually { $0["jobs"]?["running"] == 1 }
            let limits = try String(contentsOfFile: "/proc/\(daemon.pid)/limits", encoding: .utf8)
            let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max open files") })
            let most = try #require(line.split(separator: " ").compactMap { Int($0) }.last)
            for round in 1...2 {
                // The connections of the last round have gone there, too.
                try await wire.eventually { $0["connections"] == 1 }
                // The next descriptor gets the lowest free number.
                let used = Set(Files.names(in: "/proc/\(daemon.pid)/fd").compactMap { Int($0) })
                let free = try #require((0...used.count).first { !used.contains($0) })
                try await limit(daemon, "nofile=\(free)")
                let others = try (0..<40).map { _ in try daemon.connect() }
                let asked = others.map { $0.send("server.info") }
                for _ in 0..<12 { try await daemon.status(containing: "WATCHDOG=1") }
                #expect(others.contains { $0.waiting.isEmpty }, "all had descriptors")
                #expect(try await wire.succeed(.value(JSON(round))) == JSON(round))
                let failed = try await wire.fail(.fetch("http://127.0.0.1:9/", ["retry": ["max": 0]]))
                #expect(failed["kind"] == "connect", "\(failed)")
                #expect(try await wire.call("job.get", .job(running))["state"] == "running")
                try await limit(daemon, "nofile=\(most)")
                for (other, id) in zip(others, asked) { _ = try await other.result(id) }
            }
        }
    }

    @Test(.enabled(if: geteuid() == 0 && Files.exists("/usr/bin/unshare"), "mounting needs root and unshare"))
    func results_failWithStorage_whileTheStateHasNoInodes() async throws {
        try await GuidedOrigin.withHousehold(
            { _, _ in .text(String(repeating: "x", count: 5000)) }
        ) { origin, household in
            let state = household.directory.path + "/state"
            try #require(mkdir(state, 0o700) == 0)
            let script = "mount -t tmpfs -o size=256m,nr_inodes=16 tmpfs \"$0\" && exec \"$@\""
            let daemon = try await household.start(
                configuration: "limits: {inlineResult: 1000}\n",
                wrapper: ["/usr/bin/unshare", "-m", "/bin/sh", "-c", script, state])
            let wire = try daemon.connect()
            var done: [Int] = []
            var failed: JSON?
            while failed == nil, done.count < 20 {
                let job = try await wire.run(.fetch(origin.url("/x"), ["retry": ["max": 0]]))
                if job["state"] == "failed" { failed = job } else { done.append(try #require(job["job"]?.int)) }
            }
            #expect(!done.isEmpty && failed?["error"]?["kind"] == "storage", "\(failed ?? .null)")
            #expect(try await wire.succeed(.value(1)) == 1)
            let first = try #require(done.first)
            #expect(try await wire.call("job.get", .job(first))["state"] == "succeeded")
            for job in done { _ = try await wire.call("job.remove", .job(job)) }
            // The files go a little later.
            var again: JSON?
            for _ in 0..<1000 where again?["state"] != "succeeded" {
                again = try await wire.run(.fetch(origin.url("/x"), ["retry": ["max": 0]]))
            }
            #expect(again?["state"] == "succeeded", "\(again ?? .null)")
            try await daemon.stop()
        }
    }
}
