import CLinux
import Glibc
import JobModel

/// Dates in HTTP fields (RFC 9110, section 5.6.7).
enum HTTPDate {
    /// The three forms that HTTP allows, for strptime(3); the first is the one to write. The daemon keeps the locale `C`.
    private static let forms = ["%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"]

    /// `Sun, 06 Nov 1994 08:49:37 GMT`, without a fraction of a second.
    static func text(_ time: Timestamp) -> String {
        var (seconds, parts) = (time_t((Double(time.milliseconds) / 1000).rounded(.down)), tm())
        gmtime_r(&seconds, &parts)
        var text = [CChar](repeating: 0, count: 64)
        let count = strftime(&text, text.count, forms[0], &parts)
        return String(decoding: text.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    static func time(_ text: String) -> Timestamp? {
        for form in forms {
            var seconds: Int64 = 0
            if deferd_read_time(text, form, &seconds) { return Timestamp(milliseconds: seconds * 1000) }
        }
        return nil
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
