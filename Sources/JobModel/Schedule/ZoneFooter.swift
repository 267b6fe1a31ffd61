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

    init(_ text: [UInt8]) throws(ZoneRules.Flaw) {
        var reader = FooterReader(text)
        guard reader.skipName(), let standard = reader.offset(), abs(standard) <= Self.largestOffset else {
            throw Self.flaw(text)
        }
        self.standard = -standard
        if reader.isAtEnd {
            summer = nil
            return
        }
        guard reader.skipName() else { throw Self.flaw(text) }
        var offset = self.standard + 3600
        if !reader.isNext(",") {
            guard let written = reader.offset(), abs(written) <= Self.largestOffset else { throw Self.flaw(text) }
            offset = -written
        }
        guard reader.skip(","), let begin = reader.change(), reader.skip(","), let end = reader.change(), reader.isAtEnd
        else { throw Self.flaw(text) }
        summer = Summer(offset: offset, begin: begin, end: end)
    }

    private static func flaw(_ text: [UInt8]) -> ZoneRules.Flaw {
        ZoneRules.Flaw(reason: "its last line \"\(String(decoding: text, as: UTF8.self).echoed)\" is malformed")
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

/// Reads the parts of a footer in order.
private struct FooterReader {
    private let text: [UInt8]
    private var index = 0

    init(_ text: [UInt8]) { self.text = text }

    var isAtEnd: Bool { index == text.count }

    func isNext(_ character: Unicode.Scalar) -> Bool { index < text.count && text[index] == UInt8(ascii: character) }

    mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard isNext(character) else { return false }
        index += 1
        return true
    }

    /// Skips a zone's name: letters, or anything in angle brackets.
    mutating func skipName() -> Bool {
        let start = index
        if skip("<") {
            while index < text.count, !isNext(">") { index += 1 }
            return skip(">")
        }
        while index < text.count, (65...90).contains(text[index] & 0xDF) { index += 1 }
        return index - start >= 3
    }

    private mutating func number(in range: ClosedRange<Int>) -> Int? {
        var value = 0
        let start = index
        while index < text.count, (48...57).contains(text[index]), index - start < 3 {
            value = value * 10 + Int(text[index] - 48)
            index += 1
        }
        return index > start && range.contains(value) ? value : nil
    }

    /// Reads `[+-]hh[:mm[:ss]]` in seconds.
    mutating func offset() -> Int64? {
        let isNegative = skip("-")
        if !isNegative { _ = skip("+") }
        guard let hours = number(in: 0...167) else { return nil }
        var seconds = hours * 3600
        for unit in [60, 1] {
            guard skip(":") else { break }
            guard let part = number(in: 0...59) else { return nil }
            seconds += part * unit
        }
        return Int64(isNegative ? -seconds : seconds)
    }

    /// Reads `Mm.w.d[/time]`; no zone of tzdata has the other forms of POSIX.
    mutating func change() -> ZoneFooter.Change? {
        guard skip("M"), let month = number(in: 1...12), skip("."), let week = number(in: 1...5), skip("."),
            let weekday = number(in: 0...6), let time = skip("/") ? offset() : 7200
        else { return nil }
        return ZoneFooter.Change(month: month, week: week, weekday: weekday, time: time)
    }
}
