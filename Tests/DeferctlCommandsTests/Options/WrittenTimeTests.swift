import JobModel
import Testing

@testable import DeferctlCommands

@Suite struct WrittenTimeTests {
    @Test(arguments: [
        ("90", 90), ("0", 0), ("0.5", 0.5), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("2d", 172_800),
        ("1.5h", 5400), ("1w", 604_800),
    ])
    func duration_isReadAsWritten(text: String, seconds: Double) {
        #expect(WrittenDuration(argument: text)?.seconds == seconds)
    }

    @Test(arguments: [
        "", "-1", "m", "1h30", "1 h", "ten", "inf", "nan", "1e400", "0x10", ".", "1.2.3s", "٣s", "99999999999999d",
    ])
    func duration_isRefused(text: String) {
        #expect(WrittenDuration(argument: text) == nil)
    }

    /// 2026-11-26 is a Thursday; the machine's zone decides about the hours, so the days are compared.
    private static let now = WrittenTime("2026-11-26 12:00", now: Timestamp(milliseconds: 0))?.future

    @Test(arguments: [
        ("06:00", "2026-11-27 06:00", "2026-11-26 06:00"), ("18:30", "2026-11-26 18:30", "2026-11-25 18:30"),
        ("tomorrow 9:00", "2026-11-27 9:00", "2026-11-27 9:00"), ("today", "2026-11-26 0:00", "2026-11-26 0:00"),
        ("yesterday 8:00", "2026-11-25 8:00", "2026-11-25 8:00"), ("Monday 9:00", "2026-11-30 9:00", "2026-11-23 9:00"),
        ("thu 13:00", "2026-11-26 13:00", "2026-11-19 13:00"), ("thu 11:00", "2026-12-03 11:00", "2026-11-26 11:00"),
        ("2026-12-01", "2026-12-01 00:00:00", "2026-12-01T00:00"), ("2h", "2026-11-26 14:00", "2026-11-26 10:00"),
    ])
    func time_isTheNextOrTheLatest(text: String, future: String, past: String) throws {
        let now = try #require(Self.now)
        let time = try #require(WrittenTime(text, now: now))
        #expect(time.future == WrittenTime(future, now: now)?.future)
        #expect(time.past == WrittenTime(past, now: now)?.past)
    }

    @Test func time_isExact_withAnOffset() {
        let time = WrittenTime(argument: "2026-12-01T08:30:00+02:00")
        #expect(time?.future.description == "2026-12-01T06:30:00.000Z")
        #expect(time?.past == time?.future)
    }

    @Test(arguments: ["", "24:00", "6", "6:60", "tomorrow 9", "2026-02-30", "someday 9:00", "9:00 tomorrow", "mo 9:00"])
    func time_isRefused(text: String) {
        #expect(WrittenTime(argument: text) == nil)
    }
}
