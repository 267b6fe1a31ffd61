/// A zone's yearly rules in POSIX `TZ` notation: `CET-1CEST,M3.5.0,M10.5.0/3`.
///
/// Times of day range from -167 to 167 hours, as RFC 9636 extends POSIX.
struct ZoneFooter: Sendable, Hashable {
    /// A change on a weekday (Sunday is 0) in the given week of a month; the fifth is the last.
    struct Change: Sendable, Hashable {
        let month, week, weekday: Int
        /// Seconds since midnight at the start of the day.
        let time: Int64
    }

    /// The time of year with another offset.
    struct Summer: Sendable, Hashable {
        /// Seconds ahead of UTC.
        let offset: Int64
        let begin: Change
        let end: Change
    }

    /// The maximum offset from UTC in either direction, in seconds.
    static let largestOffset: Int64 = 26 * 3600

    /// Seconds ahead of UTC.
    let standard: Int64
    /// Nil if clocks never change.
    let summer: Summer?

    init(_ text: String) throws(ZoneRules.Flaw) {
        let fields = text.split(separator: ",", omittingEmptySubsequences: false)
        var rest = fields[0]
        guard Self.dropName(&rest), let standard = Self.takeOffset(&rest) else { throw Self.flaw(text) }
        self.standard = standard
        if rest.isEmpty, fields.count == 1 {
            summer = nil
            return
        }
        guard Self.dropName(&rest), let offset = rest.isEmpty ? standard + 3600 : Self.takeOffset(&rest), rest.isEmpty,
            fields.count == 3, let begin = Change(fields[1]), let end = Change(fields[2])
        else { throw Self.flaw(text) }
        summer = Summer(offset: offset, begin: begin, end: end)
    }

    private static func flaw(_ text: String) -> ZoneRules.Flaw {
        ZoneRules.Flaw(reason: "its last line \"\(text.echoed)\" is malformed")
    }

    /// Drops a zone's name: letters, or anything in angle brackets. Returns whether there was one.
    private static func dropName(_ text: inout Substring) -> Bool {
        let before = text.count
        guard text.first == "<" else {
            text = text.drop { $0.isASCII && $0.isLetter }
            return before - text.count >= 3
        }
        text = text.drop { $0 != ">" }
        return text.popFirst() != nil
    }

    /// Takes the seconds that a zone is behind UTC; returns those that it is ahead.
    private static func takeOffset(_ text: inout Substring) -> Int64? {
        let written = text.prefix { "+-:0123456789".contains($0) }
        text = text[written.endIndex...]
        guard let seconds = Change.seconds(written), abs(seconds) <= largestOffset else { return nil }
        return -seconds
    }

    /// Returns the period around `time`, which is after the last listed change `last` (`Int64.min` for none).
    /// `offset` applies from that change on.
    func period(at time: Int64, after last: Int64, offset: Int64) -> ZoneRules.Period {
        var period = ZoneRules.Period(start: last, end: .max, offset: last == .min ? standard : offset)
        guard let summer else { return period }
        let year = Timestamp.civil(fromDays: Int((time &+ standard).flooredQuotient(by: 86_400))).0
        // A year's changes can fall up to a week outside it.
        var changes: [(time: Int64, offset: Int64)] = []
        for year in year - 1...year + 1 {
            changes.append((Self.time(of: summer.begin, in: year) - standard, summer.offset))
            changes.append((Self.time(of: summer.end, in: year) - summer.offset, standard))
        }
        for change in changes.sorted(by: { $0.time < $1.time }) where change.time > last {
            if change.time > time {
                period.end = change.time
                break
            }
            period.start = change.time
            period.offset = change.offset
        }
        return period
    }

    /// Returns a change in local seconds since 1970, by the clock before the change.
    private static func time(of change: Change, in year: Int) -> Int64 {
        let start = Timestamp.days(fromCivil: year, change.month, 1)
        // 1970-01-01 was a Thursday.
        let wait = (change.weekday - (start + 4) % 7 + 14) % 7
        var day = wait + 7 * (change.week - 1)
        if day >= Timestamp.length(ofMonth: change.month, year: year) { day -= 7 }
        return Int64(start + day) * 86_400 + change.time
    }
}

extension ZoneFooter.Change {
    /// Reads `Mm.w.d[/time]`; no zone of tzdata has the other forms of POSIX.
    fileprivate init?(_ text: Substring) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let day = parts[0].dropFirst().split(separator: ".", omittingEmptySubsequences: false)
        guard text.first == "M", day.count == 3, let month = day[0].number(in: 1...12),
            let week = day[1].number(in: 1...5), let weekday = day[2].number(in: 0...6),
            let time = parts.count == 2 ? Self.seconds(parts[1]) : 7200
        else { return nil }
        self.init(month: month, week: week, weekday: weekday, time: time)
    }

    /// Reads `[+-]hh[:mm[:ss]]` in seconds.
    fileprivate static func seconds(_ text: Substring) -> Int64? {
        let sign = text.first == "-" ? -1 : 1
        let parts = text.dropFirst(text.first == "-" || text.first == "+" ? 1 : 0).split(
            separator: ":", omittingEmptySubsequences: false)
        var seconds = 0
        for (part, (unit, most)) in zip(parts, [(3600, 167), (60, 59), (1, 59)]) {
            guard let number = part.number(in: 0...most) else { return nil }
            seconds += number * unit
        }
        return parts.count <= 3 ? Int64(sign * seconds) : nil
    }
}

extension Substring {
    /// The number that the text writes in at most four digits.
    func number(in range: ClosedRange<Int>) -> Int? {
        guard (1...4).contains(utf8.count), utf8.allSatisfy({ (48...57).contains($0) }), let number = Int(self) else {
            return nil
        }
        return range.contains(number) ? number : nil
    }
}
