import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// The kernel identifies the owner of a job; for other users, the job does not exist.
@Suite(.enabled(if: User.canBeOthers, "being several users needs root")) struct OwnershipTests {
    /// Runs `body` with a daemon that every user may connect to.
    private func share(_ configuration: String = "", _ body: (Daemon) async throws -> Void) async throws {
        try await Household.with { household in
            chmod(household.directory.path, 0o711)
            let daemon = try await household.start(configuration: "socket:\n  mode: \"0666\"\n" + configuration)
            try await body(daemon)
            try await daemon.stop()
        }
    }

    @Test func whatIsForAdministrators_isForbidden_toOthers() async throws {
        try await share { daemon in
            let ann = try User.ann.connect(to: daemon)
            for (method, params) in [
                ("server.backup", [:]), ("server.backup", ["offset": 0]),
                ("queue.set", ["queue": "default", "suspended": true]), ("queue.set", ["queue": "new"]),
                ("server.stats", ["metrics": true]), ("job.list", ["owner": "all"]),
                ("job.cancel", ["select": ["all": true, "owner": 0]]),
            ] as [(String, JSON)] {
                let refusal = try await ann.refusal(method, params)
                #expect(refusal.code == -32002 && refusal.kind == "forbidden")
            }
            let admin = try daemon.connect()
            #expect(try await admin.call("queue.list")["queues"]?.array?.count == 1)
            #expect(try await admin.call("server.backup")["size"]?.int ?? 0 > 0)
            for (wire, isTold) in [(ann, false), (admin, true)] {
                let stats = try await wire.call("server.stats")
                #expect((stats["storage"]?["free"]?.int ?? 0 > 0) == isTold)
                #expect(stats["metrics"] == nil)
            }
        }
    }

    @Test func adminGroup_givesRights_byGroupsOfTheProcess_atEachCall() async throws {
        let games = try #require(getgrnam("games")?.pointee.gr_gid)
        try await share { daemon in
            let bob = try User.bob.connect(to: daemon)
            let job = try await bob.submit(.timer(1000))
            let members = try [[64_001, games], [games]].map { try User(uid: 64_001, groups: $0).connect(to: daemon) }
            for admin in members { #expect(try await admin.refusal("job.get", .job(job)).code == -32001) }
            try await daemon.reload("access:\n  adminGroup: games\n")
            for admin in members {
                #expect(try await admin.call("server.info")["you"] == ["uid": 64_001, "admin": true])
                #expect(try await admin.call("job.get", .job(job))["owner"] == 64_002)
                #expect(try await admin.call("server.stats")["jobs"]?["running"] == 1)
                _ = try await admin.call("queue.set", ["queue": "default", "concurrency": 3])
            }
            let ann = try User.ann.connect(to: daemon)
            #expect(try await ann.call("server.info")["you"]?["admin"] == false)
            #expect(try await ann.refusal("job.get", .job(job)).code == -32001)
            _ = try await members[0].call("job.watch", ["all": true])
            _ = try await members[1].call("job.watch", ["job": JSON(try await members[1].submit(.timer(1000)))])
            try await daemon.reload("")
            #expect(try await members[0].refusal("job.get", .job(job)).code == -32001)
            // What it still may see, it learns once it is connected again.
            _ = try await bob.call("job.cancel", .job(job))
            #expect(try await members[0].rest().allSatisfy { $0.json["params"]?["job"] != JSON(job) })
            #expect(try await members[1].call("server.info")["you"]?["admin"] == false)
        }
    }

    /// Whatever the databases of the system say of the user.
    @Test func groups_areThoseOfTheProcessThatSubmitted_alsoAfterACrash() async throws {
        try await GuidedOrigin.withHousehold({ _, _ in .whole(Sample.content, etag: "\"1\"") }) { origin, household in
            chmod(household.directory.path, 0o711)
            let shared = household.directory.path + "/shared"
            mkdir(shared, 0o700)
            chown(shared, 0, 64_100)
            chmod(shared, 0o770)
            let configuration = "socket: {mode: \"0666\"}\ndownloads: {roots: [\(shared)]}\n"
            var daemon = try await household.start(configuration: configuration)
            let member = try User(uid: 64_001, groups: [64_001, 64_100]).connect(to: daemon)
            func download(_ name: String, _ members: [String: JSON] = [:]) -> JSON {
                .download(origin.url("/f"), to: "\(shared)/\(name)", members: members)
            }
            _ = try await member.succeed(download("a"))
            _ = try await member.succeed(["source": ["type": "list", "mode": "all", "jobs": [download("b")]]])
            _ = try await member.call("schedule.set", ["schedule": "s", "every": 1000, "spec": download("c")])
            let delayed = try await member.submit(download("d", ["delay": 1]))
            // Others of the same user are not in that group.
            let refused = try await User.ann.connect(to: daemon).run(download("e"))
            #expect(refused["error"]?["kind"] == "policy", "\(refused)")
            try await daemon.crash()
            daemon = try await household.start(configuration: configuration)
            let ann = try User.ann.connect(to: daemon)
            #expect(try await ann.wait(delayed)["state"] == "succeeded")
            let scheduled = try await ann.call("schedule.run", ["schedule": "s"])["job"]?.int ?? 0
            #expect(try await ann.wait(scheduled)["state"] == "succeeded")
            #expect(Files.names(in: shared) == ["a", "b", "c", "d"])
            try await daemon.stop()
        }
    }

    @Test func instance_isTheUsers_whenAFlagSaysSo() async throws {
        try await GuidedOrigin.run({ _, _ in .whole(Sample.content, etag: "\"1\"") }) { origin in
            try await Daemon.run(flags: ["--instance", "user"]) { daemon in
                let result = try await daemon.connect().succeed(.download(origin.url("/f"), to: "file"))
                #expect(result["path"]?.string == daemon.directory.path + "/downloads/file")
            }
        }
    }

    @Test func userInstance_refusesOtherUsers_ofItsGroup() async throws {
        try await Household.with { household in
            chmod(household.directory.path, 0o711)
            let other = User(uid: 64_002, groups: [getegid()])
            for (configuration, isAdmitted) in [("", false), ("socket: {mode: \"0660\"}", true)] {
                let daemon = try await household.start(configuration: configuration, flags: ["--instance", "user"])
                let wire = try other.connect(to: daemon)
                let you = try? await wire.call("server.info")["you"]
                #expect(you == (isAdmitted ? ["uid": 64_002, "admin": false] : nil))
                try await daemon.stop()
            }
        }
    }

    @Test func ordinaryUser_runsAnInstanceOfTheirOwn() async throws {
        try await Stage.with {
            try await TemporaryDirectory.with { directory in
                chown(directory.path, 64_001, 64_001)
                let program = directory.path + "/deferd"
                // Where the user can reach it. Another process copies it: a file that this process writes could still
                // be open in a child that another test is just starting, and such a file cannot be executed.
                let (copied, _, _) = try await ChildProcess.run(["/bin/cp", BuiltProgram.deferd, program])
                try #require(copied == .code(0))
                chmod(program, 0o755)
                let readiness = try Readiness(in: directory)
                chmod(readiness.path, 0o777)
                let runtime = directory.path + "/run"
                mkdir(runtime, 0o700)
                chown(runtime, 64_001, 64_001)
                let process = try ChildProcess(
                    User.ann.command([program]),
                    environment: [
                        "HOME": directory.path, "XDG_RUNTIME_DIR": runtime,
                        "XDG_STATE_HOME": directory.path + "/.state",
                        "NOTIFY_SOCKET": readiness.path,
                    ])
                defer { process.send(signal: SIGKILL) }
                let isReady = try? await readiness.isReached()
                try #require(isReady == true, "\(process.errorText)")
                let wire = try Wire(runtime + "/deferd/deferd.sock")
                #expect(try await wire.call("server.info")["you"] == ["uid": 0, "admin": true])
                #expect(try await wire.succeed(.value(1)) == 1)
                #expect(Files.exists(directory.path + "/.state/deferd"))
                process.send(signal: SIGTERM)
                #expect(try await process.end() == .code(0))
                readiness.close()
            }
        }
    }
}
