import Glibc
import JobModel

/// Sizes, rates and times as text.
enum Quantities {
    private static let units = ["kB", "MB", "GB", "TB", "PB", "EB"]

    /// Bytes in decimal units: `999 B`, `1.2 kB`, `12.3 MB`.
    static func size(_ bytes: some BinaryInteger) -> String {
        guard bytes >= 1000 else { return "\(max(0, bytes)) B" }
        var value = Double(bytes)
        var unit = -1
        // A value that would be rounded to 1000 belongs to the next unit.
        while value >= 999.95, unit < units.count - 1 {
            value /= 1000
            unit += 1
        }
        return "\(fixed(value)) \(units[unit])"
    }

    static func rate(_ bytes: Double) -> String { size(Int64(clamping: bytes)) + "/s" }

    static func fixed(_ value: Double) -> String {
        let tenths = Int64(clamping: value * 10)
        return "\(tenths / 10).\(abs(tenths % 10))"
    }

    /// A span of time: `0.4 s`, `42 s`, `3 min 05 s`, `2 h 03 min`, `3 d 4 h`.
    static func span(_ seconds: Double) -> String {
        let seconds = max(0, seconds)
        if seconds < 9.95 { return "\(fixed(seconds)) s" }
        let whole = Int64(clamping: seconds)
        switch whole {
        case ..<60: return "\(whole) s"
        case ..<3600: return "\(whole / 60) min \(padded(whole % 60)) s"
        case ..<86400: return "\(whole / 3600) h \(padded(whole / 60 % 60)) min"
        default: return "\(whole / 86400) d \(whole / 3600 % 24) h"
        }
    }

    /// A span in one unit, for tables: `4s`, `12m`, `3h`, `5d`.
    static func age(_ seconds: Double) -> String {
        let whole = Int64(clamping: max(0, seconds))
        switch whole {
        case ..<100: return "\(whole)s"
        case ..<6000: return "\(whole / 60)m"
        case ..<172_800: return "\(whole / 3600)h"
        default: return "\(whole / 86400)d"
        }
    }

    /// The remaining time: `0:05`, `12:30`, `1:02:03`.
    static func clock(_ seconds: Double) -> String {
        let whole = Int64(clamping: max(0, seconds).rounded(.up))
        let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60)
        return hours > 0 ? "\(hours):\(padded(minutes)):\(padded(rest))" : "\(minutes):\(padded(rest))"
    }

    private static func padded(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }

    /// A fraction in per cent, 100 only if it is complete.
    static func percent(_ fraction: Double) -> String {
        "\(fraction >= 1 ? 100 : Int64(clamping: (max(0, fraction) * 100).rounded(.down))) %"
    }

    /// The local time, which is UTC with `--utc`.
    static func time(_ timestamp: Timestamp) -> String { local(timestamp, "%Y-%m-%d %H:%M:%S") }

    /// The name of the local time zone at that time.
    static func zone(_ timestamp: Timestamp) -> String { local(timestamp, "%Z") }

    private static func local(_ timestamp: Timestamp, _ format: String) -> String {
        var (seconds, parts) = (time_t(timestamp.milliseconds / 1000), tm())
        localtime_r(&seconds, &parts)
        var text = [CChar](repeating: 0, count: 64)
        let count = strftime(&text, text.count, format, &parts)
        return String(decoding: text[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

extension Int64 {
    /// The nearest whole number, or a limit if there is none; 0 for NaN.
    fileprivate init(clamping value: Double) {
        self = Int64(exactly: value.rounded()) ?? (value > 0 ? .max : value < 0 ? .min : 0)
    }
}
