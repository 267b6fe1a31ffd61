import Foundation
import Glibc
import Testing

@testable import JobModel

/// The times of calendars in zones, compared with those that a look at each minute finds: the C library says what clocks
/// show, and the rules are applied to that by their words alone.
///
/// Around some changes of the clocks in 20 years; `make test-schedules` compares around all of them and on days between,
/// and `DEFERD_SCHEDULES=all` every minute of the 20 years, which takes hours.
@Suite struct CalendarZoneTests {
    static let zones = [
        "Europe/Berlin", "Europe/London", "Europe/Dublin", "Europe/Lisbon", "Europe/Istanbul", "Europe/Moscow",
        "America/New_York", "America/St_Johns", "America/Santiago", "America/Asuncion", "America/Sao_Paulo",
        "America/Havana", "America/Nuuk", "America/Caracas", "America/Los_Angeles", "Africa/Casablanca", "Africa/Cairo",
        "Africa/Juba", "Asia/Tehran", "Asia/Gaza", "Asia/Beirut", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Pyongyang",
        "Asia/Tokyo", "Australia/Lord_Howe", "Australia/Adelaide", "Pacific/Apia", "Pacific/Chatham",
        "Antarctica/Troll",
        "Pacific/Easter", "Asia/Amman",
    ]

    /// What one minute of local time is, by its fields.
    struct Minute {
        let minute, hour, day, month, weekday: Int
    }

    /// An expression, and the same in other words.
    static let calendars: [(text: String, admits: @Sendable (Minute) -> Bool)] = [
        ("30 2 * * *", { $0.minute == 30 && $0.hour == 2 }),
        ("0 0 * * *", { $0.minute == 0 && $0.hour == 0 }),
        ("0,15,30,45 1-3 * * *", { $0.minute % 15 == 0 && (1...3).contains($0.hour) }),
        ("*/15 * * * *", { $0.minute % 15 == 0 }),
        ("10 */2 * * *", { $0.minute == 10 && $0.hour % 2 == 0 }),
        ("5 0-23 * * *", { $0.minute == 5 }),
        ("0 3 * * sun", { $0.minute == 0 && $0.hour == 3 && $0.weekday == 0 }),
        ("15 1 1,31 * mon", { $0.minute == 15 && $0.hour == 1 && ($0.day == 1 || $0.day == 31 || $0.weekday == 1) }),
        (
            "45 23 */2 3,10 sun",
            {
                $0.minute == 45 && $0.hour == 23 && $0.day % 2 == 1 && [3, 10].contains($0.month) && $0.weekday == 0
            }
        ),
        ("0 12 29 2 *", { $0.minute == 0 && $0.hour == 12 && $0.day == 29 && $0.month == 2 }),
    ]

    private static let start: Int64 = 1_262_304_000  // 2010
    private static let end: Int64 = 1_893_456_000  // 2030

    @Test func times_areThoseThatEachMinuteGives() async {
        // In a process of its own, as the C library takes the zone from the environment, which belongs to the whole process
        // and is read by others.
        await #expect(processExitsWith: .success) {
            for zone in CalendarZoneTests.zones { try CalendarZoneTests().compare(zone) }
        }
    }

    private func compare(_ zone: String) throws {
        let rules = try ZoneRules(tzif: zoneFile(zone))
        setenv("TZ", zone, 1)
        tzset()
        for range in try ranges() { try compare(rules, zone, range) }
    }

    /// The spans of time that are looked at.
    private func ranges() throws -> [Range<Int64>] {
        let wanted = ProcessInfo.processInfo.environment["DEFERD_SCHEDULES"]
        guard wanted != "all" else { return [Self.start..<Self.end] }
        var ranges: [Range<Int64>] = []
        var offset = shown(Self.start).offset
        for day in stride(from: Self.start, to: Self.end, by: 43_200) {
            let next = shown(day + 43_200).offset
            if next != offset { ranges.append(day - 7_200..<day + 43_200 + 93_600) }
            offset = next
        }
        // Changes come in pairs, so an odd step sees those of spring and those of autumn.
        guard wanted == "changes" else {
            return stride(from: 0, to: ranges.count, by: max(1, ranges.count / 4 | 1)).map { ranges[$0] }
        }
        for day in stride(from: Self.start, to: Self.end, by: 211 * 86_400) { ranges.append(day..<day + 86_400) }
        return ranges
    }

    /// What clocks show at a time, in seconds since the local 1970, and how far that is ahead of UTC.
    private func shown(_ time: Int64) -> (local: Int64, offset: Int64, fields: Minute) {
        var (time, fields) = (time_t(time), tm())
        localtime_r(&time, &fields)
        let minute = Minute(
            minute: Int(fields.tm_min), hour: Int(fields.tm_hour), day: Int(fields.tm_mday),
            month: Int(fields.tm_mon) + 1, weekday: Int(fields.tm_wday))
        let offset = Int64(fields.tm_gmtoff)
        return (Int64(timegm(&fields)), offset, minute)
    }

    /// The fields of a local time that no clock shows.
    private func skipped(_ local: Int64) -> Minute {
        var (time, fields) = (time_t(local), tm())
        gmtime_r(&time, &fields)
        return Minute(
            minute: Int(fields.tm_min), hour: Int(fields.tm_hour), day: Int(fields.tm_mday),
            month: Int(fields.tm_mon) + 1, weekday: Int(fields.tm_wday))
    }

    private func compare(_ rules: ZoneRules, _ zone: String, _ range: Range<Int64>) throws {
        var expected: [[Int64]] = Array(repeating: [], count: Self.calendars.count)
        // What was shown before, a day back, which a change can show again.
        var latest = Int64.min
        for time in stride(from: range.lowerBound - 86_400, to: range.lowerBound, by: 60) {
            latest = max(latest, shown(time).local)
        }
        for time in stride(from: range.lowerBound, to: range.upperBound, by: 60) {
            let (local, _, fields) = shown(time)
            for (index, calendar) in Self.calendars.enumerated() {
                var isDue = calendar.admits(fields)
                if calendar.text.split(separator: " ")[1].first != "*" {
                    if local <= latest { isDue = false }
                    for missing in stride(from: latest + 60, to: local, by: 60) where calendar.admits(skipped(missing))
                    {
                        isDue = true
                    }
                }
                if isDue { expected[index].append(time) }
            }
            latest = max(latest, local)
        }
        for (index, calendar) in Self.calendars.enumerated() {
            let expression = try CalendarExpression(calendar.text)
            var found: [Int64] = []
            var after = Timestamp(milliseconds: range.lowerBound * 1000 - 1)
            while let next = expression.next(after: after, in: rules), next.milliseconds < range.upperBound * 1000 {
                found.append(next.milliseconds / 1000)
                after = next
            }
            let text = "\(calendar.text) in \(zone) from \(Timestamp(milliseconds: range.lowerBound * 1000))"
            #expect(found == expected[index], Comment(rawValue: text))
        }
    }
}
