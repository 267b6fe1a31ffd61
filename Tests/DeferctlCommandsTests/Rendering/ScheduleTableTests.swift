import JobModel
import Testing

@testable import DeferctlCommands

@Suite struct ScheduleTableTests {
    @Test(
        arguments: [
            (["every": 1], "every 1 s"), (["every": 1.5], "every 1.5 s"), (["every": 59], "every 59 s"),
            (["every": 60], "every 1 min"), (["every": 90], "every 1 min 30 s"), (["every": 7200], "every 2 h"),
            (["every": 86_400], "every 1 d"), (["every": 864_000], "every 10 d"),
            (["every": 1e300], nil),
            (["calendar": "0 6 * * *"], "0 6 * * *"), ([:], "?"),
        ] as [(JSON, String?)])
    func times_areAsTheyWereSet(schedule: JSON, text: String?) {
        let times = ScheduleTable.times(schedule)
        if let text { #expect(times == text) } else { #expect(times.hasPrefix("every ")) }
    }

    @Test func next_isTheNextBoot_whereThatDecides() {
        let lines = ScheduleTable.lines([["schedule": "s", "calendar": "@reboot", "next": .null]])
        #expect(lines[1].contains("next boot"))
    }

    @Test func next_isInLocalTime() throws {
        let lines = ScheduleTable.lines([
            [
                "schedule": "s", "calendar": "0 6 * * *", "zone": "Europe/Berlin", "next": "2026-11-25T05:00:00.000Z",
                "last": .null, "submitted": 0, "skipped": 0,
            ]
        ])
        let next = try #require(Timestamp(rfc3339: "2026-11-25T05:00:00.000Z"))
        #expect(lines[1].contains("Europe/Berlin  \(Quantities.time(next))"))
    }
}
