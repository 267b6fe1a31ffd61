import JobModel
import Testing

/// Keys make submission idempotent, and finished jobs are removed in time.
@Suite struct KeyTests {
    @Test func environmentsOfPrograms_areNotCompared() async throws {
        try await Daemon.run(configuration: ProgramTests.anyProgram) { _, wire in
            func spec(_ environment: JSON, _ words: [JSON] = ["/bin/true"]) -> JSON {
                [
                    "key": "k",
                    "source": ["type": "program", "command": .array(words), "environment": environment],
                    "then": [
                        ["then": ["source": ["type": "program", "command": ["/bin/true"], "environment": environment]]]
                    ],
                ]
            }
            let id = try await wire.submit(spec(["A": "1"]))
            for environment in [["A": "2"], ["B": "1"], nil] as [JSON] {
                let joined = try await wire.call("job.submit", spec(environment))
                #expect(joined["job"]?.int == id && joined["created"] == false)
            }
            #expect(try await wire.refusal("job.submit", spec(["A": "1"], ["/bin/false"])).code == -32006)
        }
    }

    // MARK: - Retention

    @Test func finishedJobs_areRemoved_whenTheyAreTooOld() async throws {
        try await Household.with { household in
            var (daemon, wire) = try await household.serve()
            let old = try await wire.submit(.value(1, ["key": "k"]))
            _ = try await wire.wait(old)
            let open = try await wire.submit(.value(1, ["delay": 1000]))
            try await daemon.stop()
            (daemon, wire) = try await household.serve(configuration: "retention:\n  age: 0\n")
            try await wire.eventually { $0["jobs"]?["succeeded"] == 0 }
            #expect(try await wire.refusal("job.get", .job(old)).code == -32001)
            _ = try await wire.call("job.get", .job(open))
            #expect(
                try await wire.call("job.submit", .value(2, ["key": "k"]))["created"] == true, "the key is free again")
            try await daemon.stop()
        }
    }
}
