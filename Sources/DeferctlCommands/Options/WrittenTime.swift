import ArgumentParser
import FoundationEssentials
import Glibc
import JobModel

/// A span of time as people write it: `90`, `90s`, `10m`, `1h30m`, `1.5h`, `2d`, `1w`.
struct WrittenDuration: ExpressibleByArgument, Sendable {
    let seconds: Double

    private static let units: [Character: Double] = ["s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800]
    /// More than any limit of the daemon.
    private static let longest = 1e11

    init?(argument: String) {
        var (sum, rest) = (0.0, argument[...])
        repeat {
            let number = rest.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
            rest = rest.dropFirst(number.count)
            let isPlain = number.count == argument.count
            guard let count = Double(number), let unit = isPlain ? 1 : rest.popFirst().flatMap({ Self.units[$0] })
            else { return nil }
            sum += count * unit
        } while !rest.isEmpty
        guard sum <= Self.longest else { return nil }
        seconds = sum
    }
}

/// A time as people write it, in the local time zone: `06:00`, `tomorrow 9:00`, `monday`, `2030-12-02 08:30`, RFC 3339, or
/// a duration from now, which needs a unit: `6` could be a time of day.
struct WrittenTime: ExpressibleByArgument, Sendable {
    /// The latest such time, for `--since` and `--before`; a duration counts back from now.
    let past: Timestamp
    /// The next such time, for `--at`; a duration counts from now.
    let future: Timestamp

    private static let weekdays = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"]

    init?(argument: String) { self.init(argument, now: .now) }

    init?(_ text: String, now: Timestamp) {
        if let time = Timestamp(rfc3339: text) {
            (past, future) = (time, time)
            return
        }
        if text.last?.isLetter == true, let duration = WrittenDuration(argument: text) {
            (past, future) = (now.adding(seconds: -duration.seconds), now.adding(seconds: duration.seconds))
            return
        }
        let isDate = text.first?.isNumber == true
        let words = text.split { $0 == " " || isDate && $0 == "T" }.map { $0.lowercased() }
        let clock = words.last.flatMap(Self.clock)
        guard words.count == 1 || words.count == 2 && clock != nil else { return nil }
        var day = Self.localDay(of: now)
        (day.tm_hour, day.tm_min, day.tm_sec) = clock ?? (0, 0, 0)
        // A time without a date comes again after `step` days.
        var step: Int32 = 0
        switch words.count == 1 && clock != nil ? nil : words[0] {
        case nil: step = 1
        case "yesterday": day.tm_mday -= 1
        case "today": break
        case "tomorrow": day.tm_mday += 1
        case let word?:
            if let weekday = Self.weekdays.firstIndex(where: { word.count >= 3 && $0.hasPrefix(word) }) {
                day.tm_mday += (Int32(weekday) - day.tm_wday + 7) % 7
                step = 7
            } else {
                let parts = word.split(separator: "-").compactMap { Int32($0) }
                guard Timestamp(rfc3339: word + "T00:00:00Z") != nil, parts.count == 3 else { return nil }
                (day.tm_year, day.tm_mon, day.tm_mday) = (parts[0] - 1900, parts[1] - 1, parts[2])
            }
        }
        let time = Self.time(day, 0)
        future = time <= now ? Self.time(day, step) : time
        past = time > now ? Self.time(day, -step) : time
    }

    private static func localDay(of now: Timestamp) -> tm {
        var (seconds, day) = (time_t(now.milliseconds / 1000), tm())
        localtime_r(&seconds, &day)
        return day
    }

    private static func time(_ day: tm, _ days: Int32) -> Timestamp {
        var day = day
        day.tm_mday += days
        // The time zone decides whether daylight saving holds then.
        day.tm_isdst = -1
        return Timestamp(milliseconds: Int64(mktime(&day)) * 1000)
    }

    /// Reads `6:00`, `06:00` or `06:00:30`.
    private static func clock(_ word: String) -> (Int32, Int32, Int32)? {
        let parts = word.split(separator: ":", omittingEmptySubsequences: false)
        let numbers = parts.compactMap {
            $0.count <= 2 && $0.allSatisfy { $0.isASCII && $0.isNumber } ? Int32($0) : nil
        }
        guard (2...3).contains(numbers.count), numbers.count == parts.count, numbers[0] < 24,
            numbers.dropFirst().allSatisfy({ $0 < 60 })
        else { return nil }
        return (numbers[0], numbers[1], numbers.count == 3 ? numbers[2] : 0)
    }
}

/// Reads a time; the error says how times are written.
@Sendable func writtenTime<Time: ExpressibleByArgument>(_ text: String) throws -> Time {
    guard let time = Time(argument: text) else {
        throw ValidationError(
            "it must be a time, such as 06:00, 'tomorrow 9:00' or 2026-12-01, or a duration with its unit, such as 90s."
        )
    }
    return time
}

/// Reads the time of `--at`, which must not have passed.
@Sendable func nextTime<Time: ExpressibleByArgument>(_ text: String) throws -> Time {
    let now = Timestamp.now
    if let time = WrittenTime(text, now: now), time.future < now {
        throw ValidationError("it has passed; name a later time, such as 06:00 or 'tomorrow 9:00'.")
    }
    return try writtenTime(text)
}

/// The value of an option, or `none` or `default`, which take a value away.
struct Revocable<Value: ExpressibleByArgument & Sendable>: ExpressibleByArgument, Sendable {
    private let value: Value?

    init?(argument: String) {
        value = Value(argument: argument)
        guard value != nil || ["none", "default"].contains(argument) else { return nil }
    }

    func json(_ write: (Value) -> JSON) -> JSON { value.map(write) ?? .null }
}

/// So many in a time: `10/1s`, `100/m`.
struct StartRate: ExpressibleByArgument, Sendable {
    let json: JSON

    init?(argument: String) {
        let parts = argument.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 2, let count = Int(parts[0]), count > 0,
            let span = WrittenDuration(argument: parts[1]) ?? WrittenDuration(argument: "1" + parts[1])
        else { return nil }
        json = ["count": count.json, "seconds": span.seconds.json]
    }
}

/// The time zone of this process, as schedules name it.
enum LocalZone {
    /// The zone that TZ names, or else `local`, the daemon's word for the zone of the machine.
    static func name(variable: String?, root: String = "") throws(CommandFailure) -> String {
        var zone = variable ?? ""
        if zone.first == ":" { zone.removeFirst() }
        if zone.isEmpty || zone == "/etc/localtime" { return "local" }
        if let directory = zone.firstRange(of: "zoneinfo/") { zone.removeSubrange(..<directory.upperBound) }
        guard !zone.hasPrefix("/"), access(root + "/usr/share/zoneinfo/" + zone, R_OK) == 0 else {
            throw CommandFailure(.usage, "TZ names no time zone with \"\(zone)\"; name one with --zone.")
        }
        return zone
    }
}
