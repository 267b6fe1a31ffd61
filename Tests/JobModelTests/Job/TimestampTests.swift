import JobModel
import TestSupport
import Testing

@Suite struct TimestampTests {
    @Test(arguments: [
        (0, "1970-01-01T00:00:00.000Z"), (1, "1970-01-01T00:00:00.001Z"), (-1, "1969-12-31T23:59:59.999Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"), (951_868_800_000, "2000-03-01T00:00:00.000Z"),
        (1_709_164_800_000, "2024-02-29T00:00:00.000Z"), (1_735_689_599_999, "2024-12-31T23:59:59.999Z"),
        (4_107_542_400_000, "2100-03-01T00:00:00.000Z"), (4_107_456_000_000, "2100-02-28T00:00:00.000Z"),
        (2_147_483_648_000, "2038-01-19T03:14:08.000Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"), (-2_203_891_200_000, "1900-03-01T00:00:00.000Z"),
    ])
    func time_isWritten_andReadBack(_ milliseconds: Int64, _ text: String) {
        #expect(Timestamp(milliseconds: milliseconds).description == text)
        #expect(Timestamp(rfc3339: text)?.milliseconds == milliseconds)
    }

    @Test func time_readsBack_whateverItIs() {
        var generator = SeededGenerator(seed: 5)
        for _ in 0..<5000 {
            let time = Timestamp(
                milliseconds: .random(in: -62_167_219_200_000...253_402_300_799_999, using: &generator))
            #expect(Timestamp(rfc3339: time.description) == time)
            #expect(time.description.utf8.count == 24)
        }
    }

    @Test(arguments: [
        ("1985-04-12T23:20:50.52Z", "1985-04-12T23:20:50.520Z"),
        ("1996-12-19T16:39:57-08:00", "1996-12-20T00:39:57.000Z"),
        ("1937-01-01T12:00:27.87+00:20", "1937-01-01T11:40:27.870Z"),
        ("2024-02-29T00:00:00+23:59", "2024-02-28T00:01:00.000Z"),
        ("2024-01-01T00:00:00-00:00", "2024-01-01T00:00:00.000Z"), ("2024-01-01t00:00:00z", "2024-01-01T00:00:00.000Z"),
        ("2024-01-01T00:00:00.1Z", "2024-01-01T00:00:00.100Z"),
        ("2024-01-01T00:00:00.123999999Z", "2024-01-01T00:00:00.123Z"),
        ("1990-12-31T23:59:60Z", "1991-01-01T00:00:00.000Z"), ("1990-12-31T15:59:60-08:00", "1991-01-01T00:00:00.000Z"),
    ])
    func text_isRead_inEveryFormOfRFC3339(_ text: String, _ utc: String) {
        #expect(Timestamp(rfc3339: text)?.description == utc)
    }

    @Test(arguments: [
        "", "2024", "2024-01-01", "2024-01-01T00:00:00", "2024-01-01 00:00:00Z", "2024-1-1T00:00:00Z",
        "24-01-01T00:00:00Z", "2024-00-01T00:00:00Z", "2024-13-01T00:00:00Z", "2024-01-00T00:00:00Z",
        "2024-01-32T00:00:00Z", "2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2024-02-30T00:00:00Z",
        "2024-04-31T00:00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T00:60:00Z", "2024-01-01T00:00:61Z",
        "2024-01-01T00:00:00.Z", "2024-01-01T00:00:00,5Z", "2024-01-01T00:00:00+0000", "2024-01-01T00:00:00+00",
        "2024-01-01T00:00:00+24:00", "2024-01-01T00:00:00+00:60", "2024-01-01T00:00:00+00:00Z", "2024-01-01T00:00:00ZZ",
        "2024-01-01T00:00:00Z ", " 2024-01-01T00:00:00Z", "2024/01/01T00:00:00Z", "2024-01-01T00.00.00Z",
        "+024-01-01T00:00:00Z", "2024-01-01T00:00:00UTC", "2024-01-01T00:00:00.5", "-024-01-01T00:00:00Z",
        "\u{661}024-01-01T00:00:00Z", "2024-01-01T00:00:00\u{661}", "yesterday", "1700000000",
        // What UTC would write with a fifth digit or a sign.
        "0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "9999-12-31T23:59:60Z",
    ])
    func text_isRefused_whereItIsNoTime(_ text: String) {
        #expect(Timestamp(rfc3339: text) == nil)
    }

    @Test(
        arguments: [
            (0.0, 0), (1, 1000), (0.0005, 1), (0.001, 1), (-1, -1000), (60, 60_000), (1e300, 253_402_300_799_999),
            (-1e300, -62_167_219_200_000), (.infinity, 253_402_300_799_999), (.nan, 0),
        ] as [(Double, Int64)])
    func adding_staysWithinTheYearsThatCanBeWritten(_ seconds: Double, _ milliseconds: Int64) {
        #expect(Timestamp(milliseconds: 0).adding(seconds: seconds).milliseconds == milliseconds)
    }

    @Test func times_areThoseThatCanBeWritten_whateverTheNumber() {
        let (first, last) = (Timestamp(milliseconds: .min), Timestamp(milliseconds: .max))
        #expect(first.description == "0000-01-01T00:00:00.000Z")
        #expect(last.description == "9999-12-31T23:59:59.999Z")
        #expect(last.seconds(since: first) == 315_569_519_999.999)
        #expect(last.adding(seconds: .infinity) == last)
    }

    @Test func times_areCompared_andSubtracted() {
        let (earlier, later) = (Timestamp(milliseconds: 500), Timestamp(milliseconds: 2000))
        #expect(earlier < later && !(later < earlier))
        #expect(later.seconds(since: earlier) == 1.5)
        #expect(earlier.seconds(since: later) == -1.5)
    }
}
