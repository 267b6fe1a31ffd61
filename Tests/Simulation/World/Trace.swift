/// A hash over all events, and the last 50 entries in readable form.
struct Trace {
    enum Kind: UInt8 {
        case request, abandon, unsubscribe, run, cleaned, measured, prepared, tick, room, zones, configure, stop
        case commit, undone, unknown, probe, reset
        case answer, refused, start, proceed, yield, makeChildren, cancel, notify, prepare, removeFiles
        case measure, unlink, list, readZones, log
        case crash, cleanStop, clockSet, fault, settle, damaged, unreadable, broughtBack
    }

    struct Entry {
        var time: Int64
        var kind: Kind
        var first: Int64
        var second: Int64
    }

    static let length = 50
    private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    private(set) var count = 0
    private var last: [Entry] = []
    let prints: Bool

    init(prints: Bool) {
        self.prints = prints
        last.reserveCapacity(Self.length)
    }

    mutating func add(_ kind: Kind, at time: Int64, _ first: Int64 = 0, _ second: Int64 = 0) {
        mix(UInt64(bitPattern: time))
        mix(UInt64(kind.rawValue))
        mix(UInt64(bitPattern: first))
        mix(UInt64(bitPattern: second))
        let entry = Entry(time: time, kind: kind, first: first, second: second)
        if last.count < Self.length { last.append(entry) } else { last[count % Self.length] = entry }
        count += 1
        if prints { print(Self.line(entry)) }
    }

    private mutating func mix(_ value: UInt64) {
        hash = (hash ^ value) &* 0x9E37_79B9_7F4A_7C15
        hash ^= hash >> 29
    }

    /// The last entries, one per line, latest last.
    var lines: [String] {
        let start = count > Self.length ? count % Self.length : 0
        return (last[start...] + last[..<start]).map(Self.line)
    }

    private static func line(_ entry: Entry) -> String {
        "  \(text(ofTime: entry.time)) \(entry.kind) \(entry.first) \(entry.second)"
    }

    /// Returns simulated time as hours, minutes and seconds.
    static func text(ofTime time: Int64) -> String {
        func padded(_ number: Int64, _ width: Int) -> String {
            String(repeating: "0", count: max(0, width - String(number).count)) + String(number)
        }
        let (seconds, rest) = time.quotientAndRemainder(dividingBy: SimulatedClock.second)
        return "\(padded(seconds / 3600, 2)):\(padded(seconds / 60 % 60, 2)):\(padded(seconds % 60, 2))."
            + padded(rest, 6)
    }
}
