import Glibc
import JobModel
import TestSupport
import Testing

/// How long one user's calls wait for other users.
@Suite(.enabled(if: User.canBeOthers, "being several users needs root")) struct SharingTests {
    /// A call that waits for a job does not delay other calls of its user.
    @Test func callsThatWait_keepNoOtherCallOfTheirUserWaiting() async throws {
        try await Household.with { household in
            chmod(household.directory.path, 0o711)
            let daemon = try await household.start(configuration: "socket: {mode: \"0666\"}\n")
            let other = try User.bob.connect(to: daemon)
            _ = try await other.call("server.info")
            let (waiting, asking) = (try User.ann.connect(to: daemon), try User.ann.connect(to: daemon))
            let job = try await waiting.submit(.value(1, ["delay": 1000]))
            let wait = waiting.send("job.wait", .job(job))
            let many = waiting.send("job.wait", ["jobs": [JSON(job)]])
            #expect(try await waiting.call("job.watch", .job(job))["watch"] == "w1")
            for wire in [waiting, asking] {
                #expect(try await wire.call("job.get", .job(job))["state"] == "scheduled")
                #expect(try await wire.call("job.list")["jobs"]?[0]?["job"]?.int == job)
                #expect(try await wire.call("server.stats")["watches"] == 1)
            }
            #expect(try await asking.call("job.cancel", .job(job))["state"] == "cancelled")
            #expect(try await waiting.result(wait)["state"] == "cancelled")
            #expect(try await waiting.result(many)["jobs"]?[0]?["state"] == "cancelled")
            try await daemon.stop()
        }
    }
}
