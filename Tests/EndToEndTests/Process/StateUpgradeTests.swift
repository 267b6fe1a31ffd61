import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// The state of a daemon that root ran, with all that can be in it, and the same daemon as an ordinary user from then on.
@Suite(.enabled(if: User.canBeOthers && Interposer.obstacle == nil, "this needs root, setpriv, socat and a C compiler"))
struct StateUpgradeTests {
    private static let service = "nobody"
    private static let configuration = "socket: {mode: \"0666\"}\nlimits: {inlineResult: 1000}\n"
    private static let flags = ["--instance", "system"]

    private func upgrade(
        _ household: Household, environment: [String: String] = [:]
    ) async throws -> (end: ChildProcess.End, output: String, errors: String) {
        try await ChildProcess.run(
            try Daemon.command(
                in: household.directory, configuration: Self.configuration,
                flags: Self.flags + ["--upgrade-state", Self.service]), environment: environment)
    }

    /// Each path below the directories with whose it is, and when that changed last.
    private func listing(_ household: Household) throws -> [String] {
        let find = try SystemProgram(
            ["/usr/bin/find"] + ["state", "downloads"].map { household.directory.path + "/" + $0 }
                + ["-printf", "%p %u %m %C@\n"])
        return find.outputText.split(separator: "\n").map(String.init).sorted()
    }

    @Test func state_isTheServicesUsers_howeverOftenTheUpgradeIsKilled() async throws {
        try await GuidedOrigin.run({ request, _ in request.path == "/body" ? .text(Self.body) : nil }) { origin in
            try await Household.with { household in
                let directory = household.directory.path
                try #require(chmod(directory, 0o755) == 0)
                let killing = try await Interposer(Interposer.killAtChown, in: household.directory)
                var daemon = try await household.start(configuration: Self.configuration, flags: Self.flags)
                var (root, ann) = (try daemon.connect(), try User.ann.connect(to: daemon))
                let body = try await root.submit(.fetch(origin.url("/body")))
                #expect(try await root.wait(body)["result"]?["spilled"] == true)
                let waiting = try await ann.submit(.value("later", ["delay": 100_000]))
                let every: JSON = ["schedule": "daily", "calendar": "@daily", "spec": .value("tick")]
                let schedule = try await ann.call("schedule.set", every)
                let job = try await ann.submit(.download(origin.url("/file"), to: "deep/file"))
                _ = try await ann.call("job.watch", ["job": JSON(job), "interval": 0.01])
                let first = try await origin.exchange("/file")
                first.sendHead("200 OK", [("Content-Length", "4000000"), ("ETag", "\"v1\"")])
                first.send(Array(Sample.large[..<3_000_000]))
                _ = try await ann.next("3,000,000 bytes") {
                    $0.json["params"]?["progress"]?["completed"]?.int == 3_000_000
                }
                _ = try await root.submit(.value(1))
                // What is not yet in the database is in the files beside it.
                try await daemon.crash()
                #expect(Files.exists(daemon.state + "/deferd.db-wal"))

                var kills = 0
                while true {
                    let run = try await upgrade(
                        household, environment: ["LD_PRELOAD": killing.path, "KILL_AT": "\(kills + 1)"])
                    if run.end == .code(0) { break }
                    #expect(run.end == .signal(SIGKILL), "\(run.errors)")
                    #expect(try Files.owner(of: daemon.state) == 0, "it is not done")
                    kills += 1
                    try #require(kills < 100)
                }
                #expect(kills >= 6, "the database, its files, the lock, bodies, downloads and what is in them")
                let given = try listing(household)
                #expect(given.allSatisfy { $0.contains(" \(Self.service) ") }, "\(given)")
                #expect(try await upgrade(household).end == .code(0))
                #expect(try listing(household) == given, "it is done once")

                let own = "chown \(Self.service) \"$0\" \"$NOTIFY_SOCKET\" && exec \"$@\""
                daemon = try await household.start(
                    configuration: Self.configuration, flags: Self.flags,
                    wrapper: [
                        "/bin/sh", "-c", own, directory, "/usr/bin/setpriv", "--reuid", Self.service, "--regid",
                        "nogroup", "--clear-groups",
                    ])
                #expect(try Files.owner(of: "/proc/\(daemon.pid)") != 0)
                (root, ann) = (try daemon.connect(), try User.ann.connect(to: daemon))
                let piece = try await root.call("job.result", ["job": JSON(body), "offset": 0])
                let read = piece["data"]?.string.flatMap { Data(base64Encoded: $0) } ?? Data()
                #expect(String(decoding: read, as: UTF8.self) == Self.body)
                #expect(try await ann.call("job.get", .job(waiting))["state"] == "scheduled")
                #expect(try await ann.call("schedule.get", ["schedule": "daily"])["next"] == schedule["next"])
                let second = try await origin.exchange("/file")
                let start = try #require(second.request.rangeStart, "it does not resume")
                second.answer(.partial(Sample.large, from: start, etag: "\"v1\""))
                let ended = try await ann.wait(job)
                #expect(ended["result"]?["sha256"]?.string == Sample.largeSHA256, "\(ended)")
                #expect(ended["result"]?["resumedFrom"]?.int == start)
                let file = directory + "/downloads/\(User.ann.uid)/deep/file"
                func mayRead(_ user: User) async throws -> Bool {
                    try await ChildProcess.run(user.command(["/usr/bin/head", "-c1", file])).end == .code(0)
                }
                #expect(try await mayRead(.ann))
                #expect(try await !mayRead(.bob))
                // Files from before are as good as new ones.
                _ = try await root.call("job.remove", .job(body))
                #expect(try await ann.succeed(.fetch(origin.url("/body")))["spilled"] == true)
                try await daemon.stop()
            }
        }
    }

    private static let body = String(repeating: "body ", count: 1000)

    @Test func verification_isDoneAsTheOwner_whenRootAsks() async throws {
        try await Household.with { household in
            let daemon = try await household.start()
            _ = try await daemon.connect().submit(.value(1, ["delay": 1000]))
            try await daemon.stop()
            let directory = household.directory.path
            let owner = try SystemProgram(["/usr/bin/chown", "-R", "64001:64001", daemon.state])
            #expect(owner.status == 0)
            func verify() async throws -> (end: ChildProcess.End, output: String, errors: String) {
                try await ChildProcess.run([
                    BuiltProgram.deferd, "--config", try household.directory.write("", to: "verify.yaml"),
                    "--verify-state", "--state-directory", daemon.state,
                ])
            }
            // Where only root may pass, it cannot look.
            try #require(chmod(directory, 0o700) == 0)
            #expect(try await verify().end != .code(0))
            try #require(chmod(directory, 0o755) == 0)
            let whole = try await verify()
            #expect(whole.end == .code(0) && whole.output.contains("whole: 1 job"), "\(whole)")
            // Nor can it read what the owner cannot.
            try #require(chown(daemon.state + "/deferd.db", 0, 0) == 0)
            try #require(chmod(daemon.state + "/deferd.db", 0o600) == 0)
            #expect(try await verify().end != .code(0))
        }
    }
}
