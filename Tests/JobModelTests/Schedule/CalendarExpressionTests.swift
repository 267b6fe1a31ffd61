import Testing

@testable import JobModel

struct CalendarExpressionTests {
    @Test(arguments: [
        ("* * * * *", [0, 1, 2, 3, 4, 5]), ("*/2 * * * *", [0, 2, 4]), ("1,3-5 * * * *", [1, 3, 4, 5]),
        ("0-5/3 * * * *", [0, 3]), ("5,5,05 * * * *", [5]), ("*/90 * * * *", [0]), ("1-4/2,0 * * * *", [0, 1, 3]),
        (" 1\t*  * * * ", [1]),
    ])
    func minutes_areThoseThatTheFieldNames(_ text: String, _ wanted: [Int]) throws {
        let expression = try CalendarExpression(text)
        #expect((0...5).filter { expression.minutes >> UInt64($0) & 1 == 1 } == wanted)
    }

    @Test func names_standForMonthsAndDays_inListsAndRanges() throws {
        #expect(
            try CalendarExpression("0 0 * jan,MAR-may * ").months == CalendarExpression("0 0 * 1,3-5 *").months)
        #expect(
            try CalendarExpression("0 0 * * mon-fri").weekdays == CalendarExpression("0 0 * * 1-5").weekdays)
        #expect(try CalendarExpression("0 0 * * 7").weekdays == CalendarExpression("0 0 * * sun").weekdays)
        #expect(try CalendarExpression("0 0 * * fri-sun").weekdays == CalendarExpression("0 0 * * 5-7").weekdays)
        #expect(try CalendarExpression("0 0 * * mon-fri/2").weekdays == CalendarExpression("0 0 * * 1,3,5").weekdays)
    }

    @Test(arguments: [
        ("@hourly", "0 * * * *"), ("@daily", "0 0 * * *"), (" @daily\t", "0 0 * * *"), ("@weekly", "0 0 * * 0"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 1 *"), ("@annually", "0 0 1 1 *"), ("@midnight", "0 0 * * *"),
    ])
    func shortForms_standForFiveFields(_ short: String, _ long: String) throws {
        #expect(try CalendarExpression(short) == CalendarExpression(long))
    }

    @Test(arguments: [
        "", "*", "* * * *", "* * * * * *", "60 * * * *", "-1 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *",
        "* * * 0 *", "* * * 13 *", "* * * * 8", "5/2 * * * *", "*/0 * * * *", "*/ * * * *", "*/-1 * * * *",
        "5-1 * * * *", "* * * * 5-0", "* * * * fri-mon", "1,,2 * * * *", ",1 * * * *", "1- * * * *", "-5 * * * *",
        "1-2-3 * * * *", "jan * * * *", "* * * mon *", "* * * * monday", "@reboot", "@Daily",
        "@hourly *", "? * * * *", "L * * * *", "* * L * *", "1.5 * * * *", "+1 * * * *", "001 * * * *",
        "1-5/2/2 * * * *",
        "** * * * *", "*-5 * * * *", "*/10000 * * * *", "\u{661} * * * *", "1\u{301} * * * *", "* * * * *\n",
    ])
    func anythingElse_isRefused(_ text: String) {
        #expect(throws: CalendarExpression.Flaw.self) { try CalendarExpression(text) }
    }

    @Test func text_isRefused_whereItIsTooLong() {
        let long = String(repeating: "1,", count: 300) + "1 * * * *"
        #expect(throws: CalendarExpression.Flaw.self) { try CalendarExpression(long) }
    }

    @Test func eitherDay_isEnough_whereBothAreRestricted() throws {
        // 2026-06-13 is a Saturday.
        let either = try CalendarExpression("0 0 13 * fri")
        #expect(either.admits(day: 13, weekday: 6) && either.admits(day: 12, weekday: 5))
        #expect(!either.admits(day: 14, weekday: 0))
        let both = try CalendarExpression("0 0 */2 * fri")
        #expect(
            both.admits(day: 13, weekday: 5) && !both.admits(day: 12, weekday: 5) && !both.admits(day: 13, weekday: 6))
        #expect(try CalendarExpression("0 0 13 * *").admits(day: 13, weekday: 6))
    }

    // MARK: - Times

    private func next(_ text: String, _ after: String, _ zone: ZoneRules = .utc) throws -> String? {
        let time = try #require(Timestamp(rfc3339: after))
        return try CalendarExpression(text).next(after: time, in: zone)?.description
    }

    @Test func next_isTheFirstTimeAfter() throws {
        #expect(try next("0 6 * * *", "2026-11-22T05:59:59.999Z") == "2026-11-22T06:00:00.000Z")
        #expect(try next("0 6 * * *", "2026-11-22T06:00:00Z") == "2026-11-23T06:00:00.000Z")
        #expect(try next("0 6 * * mon-fri", "2026-11-20T06:00:00Z") == "2026-11-23T06:00:00.000Z")
        #expect(try next("59 23 31 12 *", "2026-12-31T23:59:00Z") == "2027-12-31T23:59:00.000Z")
        #expect(try next("*/7 * * * *", "2026-11-22T05:56:30Z") == "2026-11-22T06:00:00.000Z")
    }

    @Test func next_isNone_whereNoDayFits_andTheLeapDayAfterEightYears() throws {
        #expect(try next("0 0 30 2 *", "2026-11-22T00:00:00Z") == nil)
        #expect(try next("0 0 31 4,6,9,11 *", "2026-11-22T00:00:00Z") == nil)
        #expect(try next("0 0 29 2 *", "2026-11-22T00:00:00Z") == "2028-02-29T00:00:00.000Z")
        #expect(try next("0 0 29 2 *", "2096-02-29T00:00:00Z") == "2104-02-29T00:00:00.000Z")
        #expect(try next("0 0 29 2 *", "2096-02-28T23:59:59Z") == "2096-02-29T00:00:00.000Z")
    }

    @Test func next_doesNotTrap_atTheEndsOfTime() throws {
        let all = try CalendarExpression("* * * * *")
        #expect(all.next(after: Timestamp(milliseconds: .min), in: .utc) != nil)
        let end = Timestamp(milliseconds: .max)
        _ = all.next(after: end, in: .utc)
        _ = try CalendarExpression("0 0 29 2 *").next(after: end, in: .utc)
    }
}
