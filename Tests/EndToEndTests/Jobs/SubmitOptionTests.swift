import JobModel
import Testing

/// The options of the verbs that submit, as the daemon takes them.
@Suite struct SubmitOptionTests {
    @Test func options_sayWhenAJobStarts_andWhenItsKeyIsFree() async throws {
        try await Daemon.run(flags: ["--instance", "user"]) { daemon, wire in
            func submit(_ options: String...) async throws -> JSON {
                let id = try await daemon.deferctl(["run"] + options + ["true"]).outputText.dropLast()
                return try await wire.call("job.get", ["job": JSON(try #require(Int(id)))])
            }
            #expect(try await submit("--held")["state"] == "held")
            let later = try await submit("--detach", "--at", "2099-12-01T08:30:00+01:00")
            #expect(later["state"] == "scheduled" && later["notBefore"] == "2099-12-01T07:30:00.000Z")
            #expect(try await submit("--detach", "--delay", "1h30m")["state"] == "scheduled")
            let keyed = try await submit("--detach", "--key", "k", "--key-until", "finished", "--timeout", "10m")
            _ = try await wire.wait(try #require(keyed["job"]?.int))
            let again = try await submit("--detach", "--key", "k", "--key-until", "finished", "--timeout", "10m")
            #expect(again["job"] != keyed["job"])
        }
    }

    @Test func node_isShown_andMustBeTheDaemon_withoutPostgreSQL() async throws {
        try await Daemon.run(configuration: "node: {name: ada}", flags: ["--instance", "user"]) { daemon in
            let wire = try daemon.connect()
            let id = try #require(
                Int(try await daemon.deferctl(["run", "--held", "--on", "ada", "true"]).outputText.dropLast()))
            #expect(try await wire.call("job.get", .job(id))["node"] == "ada")
            #expect(try await daemon.deferctl(["show", "\(id)"]).outputText.contains("node ada"))
            let spec = JSON.value(1, ["requires": ["node": "ada"]])
            #expect(try await wire.call("job.explain", spec)["requires"] == spec["requires"])
            #expect(try await wire.call("job.explain", .value(1))["requires"] == nil)
            let refused = try await daemon.deferctl(["run", "--on", "bob", "true"], end: .code(65)).errorText
            #expect(refused.contains("There is no node \"bob\""))
            let other: JSON = .value(1, ["requires": ["node": "bob"]])
            for (method, params, pointer) in [
                ("job.submit", other, "/requires/node"), ("job.explain", other, "/requires/node"),
                (
                    "schedule.set", ["schedule": "s", "every": 60, "spec": other], "/spec/requires/node"
                ),
            ] as [(String, JSON, String)] {
                let refusal = try await wire.refusal(method, params)
                #expect(refusal.code == -32602 && refusal.pointer == pointer, "\(method): \(refusal)")
            }
            let items: JSON = [
                "type": "each", "in": ["ada", "bob"], "job": .value(1, ["requires": ["node": "{{item}}"]]),
            ]
            let result = try await wire.wait(try await wire.submit(["source": items]))["result"]?.array ?? []
            #expect(result.map { $0["ok"] } == [true, false])
            #expect(result.last?["error"]?["message"]?.string?.contains("There is no node \"bob\"") == true)
        }
    }
}
