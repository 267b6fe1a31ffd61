import JobModel
import Testing

/// The options of the verbs that submit, as the daemon takes them.
@Suite struct SubmitOptionTests {
    @Test func options_sayWhenAJobStarts_andWhenItsKeyIsFree() async throws {
        try await Daemon.run(flags: ["--instance", "user"]) { daemon in
            let wire = try daemon.connect()
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
}
