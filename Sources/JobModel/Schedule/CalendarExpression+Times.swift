/// The times of a calendar in a zone.
///
/// Between two clock changes local time is continuous, so each such period is searched by itself, day by day. A change
/// forward skips local times (a gap); a change back repeats some.
extension CalendarExpression {
    /// The number of years searched: February 29 may be eight years away, as 2100 has none.
    private static let years = 9

    /// Returns the first time after `time`, or nil if there is none in the next nine years.
    package func next(after time: Timestamp, in zone: ZoneRules) -> Timestamp? {
        let start = time.milliseconds.flooredQuotient(by: 1000) + 1
        let end = start + Int64(Self.years) * 31_622_400
        var period = zone.period(at: start)
        var earliest = start
        while earliest < end {
            if let found = first(from: earliest, before: min(end, period.end), period, in: zone) {
                return Timestamp(milliseconds: found * 1000)
            }
            guard period.end < end else { return nil }
            earliest = period.end
            period = zone.period(at: earliest)
        }
        return nil
    }

    /// Returns the first time of a period from `earliest` on, in seconds since 1970.
    private func first(
        from earliest: Int64, before end: Int64, _ period: ZoneRules.Period, in zone: ZoneRules
    ) -> Int64? {
        var local = earliest + period.offset
        if !followsElapsedTime, period.start != .min {
            let shown = Self.shown(before: period, in: zone)
            if earliest == period.start, shown < local, firstLocal(from: shown, before: local) != nil {
                // A time in the gap is due at the first moment after it.
                return earliest
            }
            // Local times shown before are not due again.
            local = max(local, shown)
        }
        return firstLocal(from: local, before: end + period.offset).map { $0 - period.offset }
    }

    /// Returns the latest local time that clocks showed before a period, in seconds.
    private static func shown(before period: ZoneRules.Period, in zone: ZoneRules) -> Int64 {
        var shown = Int64.min
        var start = period.start
        // Only changes within about a day of each other can show a time more than twice.
        while start != .min, start > period.start - 3 * 86_400 {
            let earlier = zone.period(at: start - 1)
            shown = max(shown, start + earlier.offset)
            start = earlier.start
        }
        return shown
    }

    /// Returns the first local minute from `start` on and before `end`, both in seconds since the local 1970.
    private func firstLocal(from start: Int64, before end: Int64) -> Int64? {
        let minute = (start + 59).flooredQuotient(by: 60)
        var day = minute.flooredQuotient(by: 1440)
        var (year, month, dayOfMonth) = Timestamp.civil(fromDays: Int(day))
        var earliest = Int(minute - day * 1440)
        while day * 86_400 < end {
            let length = Timestamp.length(ofMonth: month, year: year)
            if months >> UInt64(month) & 1 == 0 {
                day += Int64(length - dayOfMonth + 1)
                dayOfMonth = length
            } else {
                // 1970-01-01 was a Thursday.
                let weekday = Int(day + 4 - (day + 4).flooredQuotient(by: 7) * 7)
                if admits(day: dayOfMonth, weekday: weekday), let minute = firstMinute(from: earliest) {
                    let found = day * 86_400 + Int64(minute) * 60
                    return found < end ? found : nil
                }
                day += 1
            }
            earliest = 0
            dayOfMonth += 1
            if dayOfMonth > length {
                dayOfMonth = 1
                month = month == 12 ? 1 : month + 1
                if month == 1 { year += 1 }
            }
        }
        return nil
    }

    /// Returns the first minute of a day from `earliest` on.
    private func firstMinute(from earliest: Int) -> Int? {
        let hour = earliest / 60
        if hours >> UInt64(hour) & 1 == 1 {
            let left = minutes & (.max << UInt64(earliest % 60))
            if left != 0 { return hour * 60 + left.trailingZeroBitCount }
        }
        let later = hours & (.max << UInt64(hour + 1))
        return later == 0 ? nil : later.trailingZeroBitCount * 60 + minutes.trailingZeroBitCount
    }
}
