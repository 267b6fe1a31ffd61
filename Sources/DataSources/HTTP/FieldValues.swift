import JobModel

/// Dates in HTTP fields (RFC 9110, section 5.6.7).
enum HTTPDate {
    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// `Sun, 06 Nov 1994 08:49:37 GMT`, without a fraction of a second.
    static func text(_ time: Timestamp) -> String {
        let text = Array(time.description.utf8)
        func part(_ range: Range<Int>) -> String { String(decoding: text[range], as: UTF8.self) }
        let sinceEpoch = Int(saturating: (Double(time.milliseconds) / 86_400_000).rounded(.down))
        // 1970-01-01 was a Thursday.
        let day = days[((sinceEpoch + 4) % 7 + 7) % 7]
        let month = months[(Int(part(5..<7)) ?? 1) - 1]
        return "\(day), \(part(8..<10)) \(month) \(part(0..<4)) \(part(11..<19)) GMT"
    }

    /// Reads any of the three forms that HTTP allows.
    static func time(_ text: String) -> Timestamp? {
        // In RFC 850's form, hyphens join the parts of a date.
        let words = text.split { " ,".contains($0) }.flatMap {
            $0.split(separator: "-", omittingEmptySubsequences: false)
        }
        .map(String.init)
        switch words.count {
        case 6 where words[5] == "GMT" || words[5] == "UTC":
            return time(day: words[1], month: words[2], year: words[3], clock: words[4])
        case 5: return time(day: words[2], month: words[1], year: words[4], clock: words[3])
        default: return nil
        }
    }

    private static func time(day: String, month: String, year: String, clock: String) -> Timestamp? {
        guard let month = months.firstIndex(of: month), let day = Decimal.number(day), var year = Decimal.number(year)
        else { return nil }
        // RFC 850 has two digits; no file on the web is older than 1970.
        if year < 100 { year += year < 70 ? 2000 : 1900 }
        func padded(_ number: some BinaryInteger, _ width: Int) -> String {
            String(repeating: "0", count: max(0, width - String(number).count)) + String(number)
        }
        return Timestamp(rfc3339: "\(padded(year, 4))-\(padded(month + 1, 2))-\(padded(day, 2))T\(clock)Z")
    }
}

/// The header field that asks for a pause between requests.
enum RetryAfter {
    /// Seconds from `now`; nil if the value is neither a number of seconds nor a date.
    static func seconds(_ value: String, now: Timestamp) -> Double? {
        let value = value.drop { $0 == " " }
        if !value.isEmpty, value.utf8.allSatisfy({ (48...57).contains($0) }) { return Double(value) }
        return HTTPDate.time(String(value)).map { max(0, $0.seconds(since: now)) }
    }
}

/// Numbers in HTTP fields: digits only.
enum Decimal {
    /// Reads a number; nil if it is not valid or too large. `Int64` alone would accept signs.
    static func number(_ text: some StringProtocol) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (48...57).contains($0) }) else { return nil }
        return Int64(text)
    }
}
