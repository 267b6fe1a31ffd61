import ArgumentParser
import JobClient
import JobModel
import Testing

@testable import DeferctlCommands

@Suite struct JobSelectionTests {
    private func jobs(_ arguments: String...) async throws -> JobClient.Selection {
        try await CancelCommand.asyncParse(arguments).options.selection.jobs
    }

    private func filter(_ change: (inout JobClient.Filter) -> Void) -> JobClient.Selection {
        var filter = JobClient.Filter()
        change(&filter)
        return .matching(filter)
    }

    @Test func jobs_areIDs_orOneRange_orConditions() async throws {
        #expect(try await jobs("7") == .jobs([7]))
        #expect(try await jobs("7", "3-5", "4", "7") == .jobs([7, 3, 4, 5]))
        #expect(try await jobs("3-9") == filter { $0.ids = 3...9 })
        #expect(try await jobs("1-9223372036854775807") == filter { $0.ids = 1...Int64.max })
        #expect(
            try await jobs("1-9223372036854775807", "--state", "held")
                == filter {
                    ($0.ids, $0.states) = (1...Int64.max, ["held"])
                })
        #expect(try await jobs("--all") == .matching(JobClient.Filter()))
        #expect(
            try await jobs("--tag", "t", "--label", "l", "--queue", "q", "--key", "k", "--owner", "5")
                == filter {
                    ($0.tag, $0.label, $0.queue, $0.key, $0.owner) = ("t", "l", "q", "k", 5)
                })
        #expect(
            try await jobs("--owner", "root", "--before", "2026-12-01T00:00:00Z")
                == filter {
                    ($0.owner, $0.before) = (0, "2026-12-01T00:00:00.000Z")
                })
    }

    @Test(arguments: [
        [], ["--dry-run"], ["5-3"], ["0"], ["0-3"], ["-5"], ["3-"], ["a"], ["--all", "3"],
        ["3", "4", "--state", "failed"],
        ["1-10001", "20000"], ["1-9223372036854775807", "1-9223372036854775807"], ["--owner", "no such user"],
        ["--since", "someday"],
    ])
    func jobs_areRefused(arguments: [String]) async {
        await #expect(throws: (any Error).self) { try await CancelCommand.asyncParse(arguments) }
    }

    @Test func set_takesValuesAway() async throws {
        let set = try await SetCommand.asyncParse([
            "3", "--delay", "none", "--deadline", "1h30m", "--label", "", "--tag", "", "--rate", "2k", "--no-notify",
            "--priority", "-5",
        ])
        let members: JSONObject = [
            "priority": -5, "delay": .null, "deadline": 5400, "rate": 2000, "label": .null, "tags": .null,
            "notify": false,
        ]
        #expect(set.members == members)
        await #expect(throws: (any Error).self) { try await SetCommand.asyncParse(["3"]) }
        await #expect(throws: (any Error).self) {
            try await SetCommand.asyncParse(["3", "--delay", "1", "--at", "06:00"])
        }
    }

    @Test func queueSet_givesBackWhatIsNotNamed() async throws {
        let set = try await QueueSetCommand.asyncParse(["q", "--start-rate", "10/m", "--byte-rate", "default"])
        #expect(set.settings == ["startRate": ["count": 10, "seconds": 60], "byteRate": .null])
        let some = try await QueueSetCommand.asyncParse(["q", "--concurrency", "3", "--default"])
        #expect(
            some.settings == [
                "concurrency": 3, "perUser": .null, "startRate": .null, "byteRate": .null, "suspended": .null,
            ])
        for wrong in [["q"], ["q", "--start-rate", "10"], ["q", "--start-rate", "0/s"], ["q", "--concurrency", "x"]] {
            await #expect(throws: (any Error).self) { try await QueueSetCommand.asyncParse(wrong) }
        }
    }
}
