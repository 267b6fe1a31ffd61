import Glibc

/// A time in milliseconds since 1970-01-01T00:00:00Z, without leap seconds, within the years 0 to 9999.
package struct Timestamp: Sendable, Hashable, Comparable {
    package let milliseconds: Int64

    /// Clamps the time to the range, so that differences always fit.
    package init(milliseconds: Int64) {
        self.milliseconds = min(max(milliseconds, Self.writable.lowerBound), Self.writable.upperBound)
    }

    /// The time of the system's clock. The core never reads it: times come to it with its inputs.
    package static var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }

    package static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }

    /// Returns the time `seconds` later, rounded up to a millisecond, within the years 0 to 9999.
    package func adding(seconds: Double) -> Timestamp {
        let sum = Double(milliseconds) + (seconds * 1000).rounded(.up)
        return sum.isNaN ? self : Timestamp(milliseconds: Int64(saturating: sum))
    }

    package func seconds(since earlier: Timestamp) -> Double { Double(milliseconds - earlier.milliseconds) / 1000 }

    /// The range of RFC 3339's four-digit years: 0 to 9999.
    private static let writable: ClosedRange<Int64> = -62_167_219_200_000...253_402_300_799_999
}

extension Timestamp: CustomStringConvertible {
    package var json: JSON { .string(description) }

    /// RFC 3339 in UTC with milliseconds: `2026-11-20T17:35:35.123Z`.
    ///
    /// Foundation's ISO8601FormatStyle takes three times as long.
    package var description: String {
        let days = Int(milliseconds.flooredQuotient(by: 86_400_000))
        let rest = Int(milliseconds) - days * 86_400_000
        let (year, month, day) = Self.civil(fromDays: days)
        return String(unsafeUninitializedCapacity: 24) { text in
            var offset = 0
            func write(_ number: Int, _ width: Int, _ end: StaticString) {
                var rest = number
                for digit in stride(from: offset + width - 1, through: offset, by: -1) {
                    text[digit] = UInt8(ascii: "0") + UInt8(rest % 10)
                    rest /= 10
                }
                text[offset + width] = end.utf8Start.pointee
                offset += width + 1
            }
            write(year, 4, "-")
            write(month, 2, "-")
            write(day, 2, "T")
            write(rest / 3_600_000, 2, ":")
            write(rest / 60_000 % 60, 2, ":")
            write(rest / 1000 % 60, 2, ".")
            write(rest % 1000, 3, "Z")
            return offset
        }
    }

    /// Parses an RFC 3339 time with any offset; fractions finer than milliseconds are truncated.
    package init?(rfc3339 text: String) {
        var rest = Array(text.utf8)[...]
        /// Takes `width` digits and, unless `ends` is empty, one of its characters.
        func number(_ width: Int, before ends: String) -> Int? {
            let digits = rest.prefix(width)
            rest = rest.dropFirst(width)
            guard digits.count == width, digits.allSatisfy(Self.isDigit),
                ends.isEmpty || rest.popFirst().map(ends.utf8.contains) == true
            else { return nil }
            return digits.reduce(0) { $0 * 10 + Int($1 - 48) }
        }
        guard let year = number(4, before: "-"), let month = number(2, before: "-"), let day = number(2, before: "Tt"),
            let hour = number(2, before: ":"), let minute = number(2, before: ":"), let second = number(2, before: ""),
            (1...12).contains(month), (1...Self.length(ofMonth: month, year: year)).contains(day), hour < 24,
            minute < 60, second < 61
        else { return nil }
        var fraction = 0
        if rest.first == UInt8(ascii: ".") {
            let digits = rest.dropFirst().prefix(while: Self.isDigit)
            guard !digits.isEmpty else { return nil }
            rest = rest[digits.endIndex...]
            fraction = (Array(digits.prefix(3)) + [48, 48]).prefix(3).reduce(0) { $0 * 10 + Int($1 - 48) }
        }
        var offset = 0
        switch rest.popFirst() {
        case UInt8(ascii: "Z"), UInt8(ascii: "z"): break
        case let sign where sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-"):
            guard let hours = number(2, before: ":"), let minutes = number(2, before: ""), hours < 24, minutes < 60
            else { return nil }
            offset = (hours * 60 + minutes) * (sign == UInt8(ascii: "-") ? -1 : 1)
        default: return nil
        }
        let days = Self.days(fromCivil: year, month, day)
        let minutes = (days * 24 + hour) * 60 + minute - offset
        // The number of digits is bounded above, so nothing can overflow.
        let milliseconds = Int64((minutes * 60 + second) * 1000 + fraction)
        guard rest.isEmpty, Self.writable.contains(milliseconds) else { return nil }
        self.init(milliseconds: milliseconds)
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

    static func length(ofMonth month: Int, year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Returns days since 1970-01-01 in the proleptic Gregorian calendar, counted from March so leap days come last.
    static func days(fromCivil year: Int, _ month: Int, _ day: Int) -> Int {
        let shifted = month <= 2 ? year - 1 : year
        let era = Int64(shifted).flooredQuotient(by: 400)
        let yearOfEra = shifted - Int(era) * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return Int(era) * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    static func civil(fromDays days: Int) -> (Int, Int, Int) {
        let shifted = days + 719_468
        let era = Int(Int64(shifted).flooredQuotient(by: 146_097))
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let month = (5 * dayOfYear + 2) / 153
        let year = yearOfEra + era * 400 + (month >= 10 ? 1 : 0)
        return (year, month < 10 ? month + 3 : month - 9, dayOfYear - (153 * month + 2) / 5 + 1)
    }
}

extension Int64 {
    /// Returns the quotient rounded down, so that the remainder is never negative.
    func flooredQuotient(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
