import JobModel

/// The five fields of a calendar, and the times that they come to.
///
/// An input is a calendar; behind a NUL the bytes of a zone's file may follow.
package enum CalendarBody {
    /// Start times: near changes of clocks, leap days and the limits of timestamps.
    private static let starts: [Int64] = [
        -62_167_219_200_000, -1, 0, 951_782_399_999, 1_743_296_399_000, 1_761_440_400_000, 4_107_542_399_000,
        253_402_300_799_999,
    ]

    package static func check(_ input: [UInt8]) throws(Finding) {
        let parts = input.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
        guard let text = parts.first else { return }
        let calendar: CalendarExpression
        do { calendar = try CalendarExpression(String(decoding: text, as: UTF8.self)) } catch {
            return try Finding.unless(!error.reason.isEmpty, "A calendar is refused without a reason.")
        }
        var zone = ZoneRules.utc
        if parts.count > 1 {
            do { zone = try ZoneRules(tzif: Array(parts[1])) } catch {
                return try Finding.unless(!error.reason.isEmpty, "A zone is refused without a reason.")
            }
        }
        for start in starts { try check(calendar, zone, after: Timestamp(milliseconds: start)) }
    }

    /// Each time lies behind the one before, and is the next one from anywhere between.
    private static func check(
        _ calendar: CalendarExpression, _ zone: ZoneRules, after start: Timestamp
    ) throws(Finding) {
        var time = start
        for _ in 0..<4 {
            guard let next = calendar.next(after: time, in: zone) else { return }
            // After the last valid timestamp, there is no later time.
            guard next.milliseconds < starts[starts.count - 1] else { return }
            try Finding.unless(next > time, "\(next) comes after \(time).")
            let between = Timestamp(milliseconds: time.milliseconds + (next.milliseconds - time.milliseconds) / 2)
            for earlier in [between, Timestamp(milliseconds: next.milliseconds - 1)] where earlier >= time {
                try Finding.unless(
                    calendar.next(after: earlier, in: zone) == next,
                    "\(next) is next after \(time), not after \(earlier).")
            }
            time = next
        }
    }
}
