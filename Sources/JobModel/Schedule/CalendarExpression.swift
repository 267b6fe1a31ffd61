/// Times in crontab(5) notation: minute, hour, day of month, month and day of week.
///
/// A field is a list of `*`, numbers and ranges; months and days of the week have names, and a step follows `*` or a
/// range. `@hourly`, `@daily` (`@midnight`), `@weekly`, `@monthly` and `@yearly` (`@annually`) abbreviate five fields.
package struct CalendarExpression: Sendable, Hashable {
    /// The maximum size in bytes: each field may name all its values, with the longest names.
    package static let longest = 512

    /// One bit per value of a field.
    let minutes: UInt64
    let hours: UInt64
    let days: UInt64
    let months: UInt64
    /// Sunday is bit 0.
    let weekdays: UInt64
    /// Whether both day fields are restricted, so that either is enough.
    private let isEitherDayEnough: Bool
    /// Whether the hour field begins with `*`, so that times follow elapsed time across clock changes.
    let followsElapsedTime: Bool

    /// A syntax error, as a sentence.
    package struct Flaw: Error, Equatable {
        package let reason: String
    }

    private static let short = [
        "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *",
        "@yearly": "0 0 1 1 *", "@midnight": "0 0 * * *", "@annually": "0 0 1 1 *",
    ]

    package init(_ text: String) throws(Flaw) {
        guard text.utf8.count <= Self.longest else {
            throw Flaw(reason: "A calendar is at most \(Self.longest) bytes long.")
        }
        var words = Self.words(text)
        if words.count == 1, let long = Self.short[String(words[0])] { words = Self.words(long) }
        if let word = words.first, word.hasPrefix("@") {
            let known = (Self.short.keys + [ScheduleTiming.rebootName]).sorted().joined(separator: ", ")
            throw Flaw(reason: "There is no \"\(String(word).echoed)\"; known are \(known), or write five fields.")
        }
        guard words.count == 5 else {
            throw Flaw(
                reason:
                    "A calendar has five fields (minute, hour, day of month, month, day of week), not \(words.count).")
        }
        minutes = try CalendarField.minute.values(words[0])
        hours = try CalendarField.hour.values(words[1])
        days = try CalendarField.day.values(words[2])
        months = try CalendarField.month.values(words[3])
        let named = try CalendarField.weekday.values(words[4])
        weekdays = (named | named >> 7) & 0x7F
        isEitherDayEnough = !words[2].contains("*") && !words[4].contains("*")
        followsElapsedTime = words[1].hasPrefix("*")
    }

    package static func words(_ text: String) -> [Substring] { text.split { $0 == " " || $0 == "\t" } }

    /// Returns whether a day of a matching month matches.
    func admits(day: Int, weekday: Int) -> Bool {
        let isDay = days >> UInt64(day) & 1 == 1
        let isWeekday = weekdays >> UInt64(weekday) & 1 == 1
        return isEitherDayEnough ? isDay || isWeekday : isDay && isWeekday
    }
}

/// One of the five fields: its bounds and the names of its values.
private struct CalendarField {
    let name: String
    let range: ClosedRange<Int>
    /// The names of the values, from the first of `range` on.
    var names: [String] = []

    static let minute = CalendarField(name: "minute", range: 0...59)
    static let hour = CalendarField(name: "hour", range: 0...23)
    static let day = CalendarField(name: "day of month", range: 1...31)
    static let month = CalendarField(
        name: "month", range: 1...12,
        names: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"])
    /// 7 is also Sunday.
    static let weekday = CalendarField(
        name: "day of week", range: 0...7, names: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"])

    /// Returns one bit per value that the field's text names.
    func values(_ text: Substring) throws(CalendarExpression.Flaw) -> UInt64 {
        var values: UInt64 = 0
        for element in text.split(separator: ",", omittingEmptySubsequences: false) {
            values |= try one(element, of: text)
        }
        return values
    }

    private func one(_ element: Substring, of text: Substring) throws(CalendarExpression.Flaw) -> UInt64 {
        let parts = element.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        var (first, last) = (range.lowerBound, range.upperBound)
        if parts[0] != "*" {
            guard (1...2).contains(ends.count) else { throw flaw(text) }
            first = try value(ends[0], of: text)
            last = try ends.count == 2 ? value(ends[1], of: text) : first
            // Sunday ends a week as well as begins one.
            if ends.count == 2, last == 0, first > 0, ends[1].lowercased() == "sun" { last = 7 }
            guard first <= last else {
                throw CalendarExpression.Flaw(
                    reason: "The range \"\(String(parts[0]).echoed)\" of the field \(name) ends before it begins.")
            }
        }
        var step = 1
        if parts.count == 2 {
            guard parts[0] == "*" || ends.count == 2, let number = parts[1].number(in: 1...9999) else {
                throw CalendarExpression.Flaw(
                    reason:
                        "The field \(name) cannot be \"\(String(text).echoed)\": a step is a number from 1 on, behind "
                        + "\"*\" or a range.")
            }
            step = number
        }
        var values: UInt64 = 0
        for value in stride(from: first, through: last, by: step) { values |= 1 << UInt64(value) }
        return values
    }

    private func value(_ word: Substring, of text: Substring) throws(CalendarExpression.Flaw) -> Int {
        if let index = names.firstIndex(of: word.lowercased()) { return range.lowerBound + index }
        guard word.utf8.count <= 2, let number = word.number(in: range) else { throw flaw(text) }
        return number
    }

    private func flaw(_ text: Substring) -> CalendarExpression.Flaw {
        let words = names.isEmpty ? "" : " or names such as \(names[1])"
        return CalendarExpression.Flaw(
            reason: "The field \(name) cannot be \"\(String(text).echoed)\": it is \"*\", or a list of numbers from "
                + "\(range.lowerBound) to \(range.upperBound)\(words), and of ranges of these.")
    }
}
