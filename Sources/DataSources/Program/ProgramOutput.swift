import Glibc
import JobModel

/// Sorts what a program writes to its standard output: lines that tell its progress, and the result.
struct ProgramOutput {
    /// A line that tells how far the program has come.
    struct Progress: Equatable {
        var completed: Int64
        var total: Int64?
        var unit: JobModel.Progress.Unit
    }

    /// The longest line that can tell progress; a longer one is part of the result.
    static let longestProgress = 4 << 10

    /// What is part of the result and was not drained yet.
    private(set) var result: [UInt8] = []
    /// Bytes of the result so far.
    private(set) var size = 0
    /// The beginning of a line of which is not known yet what it is.
    private var open: [UInt8] = []
    /// Whether the line that has begun is part of the result.
    private var isResult = false

    /// Sorts `bytes`; gives the last progress in them.
    mutating func append(_ bytes: UnsafeRawBufferPointer) -> Progress? {
        var latest: Progress?
        var rest = bytes[...]
        while !rest.isEmpty {
            let newline = Self.newline(in: rest)
            open += rest[..<(newline ?? rest.endIndex)]
            if isResult || open.count > Self.longestProgress || !Self.mayBeObject(open) { giveUp() }
            guard let newline else { break }
            open.append(UInt8(ascii: "\n"))
            if let progress = endLine() { latest = progress }
            rest = rest[(newline + 1)...]
        }
        return latest
    }

    /// Whether a line that begins so can be an object.
    private static func mayBeObject(_ beginning: [UInt8]) -> Bool {
        let first = beginning.first { ![UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r")].contains($0) }
        return first ?? UInt8(ascii: "{") == UInt8(ascii: "{")
    }

    /// Ends the last line, which may lack its newline; gives the progress in it.
    mutating func end() -> Progress? { endLine() }

    /// Gives what is there of the result, and keeps nothing of it.
    mutating func drain() -> [UInt8] {
        defer { result = [] }
        return result
    }

    private mutating func endLine() -> Progress? {
        defer { isResult = false }
        if !isResult, let progress = Self.progress(in: open) {
            open.removeAll(keepingCapacity: true)
            return progress
        }
        giveUp()
        return nil
    }

    /// The line is no progress.
    private mutating func giveUp() {
        isResult = true
        size += open.count
        result += open
        open.removeAll(keepingCapacity: true)
    }

    private static func newline(in bytes: Slice<UnsafeRawBufferPointer>) -> Int? {
        let raw = UnsafeRawBufferPointer(rebasing: bytes)
        guard let base = raw.baseAddress, let found = memchr(base, Int32(UInt8(ascii: "\n")), raw.count) else {
            return nil
        }
        return bytes.startIndex + (UnsafeRawPointer(found) - base)
    }

    /// What a line of the form `{"progress": {"completed", "total"?, "unit"?}}` tells; nil for any other.
    private static func progress(in line: [UInt8]) -> Progress? {
        guard let object = try? JSON(parsing: line).object, object.members.count == 1,
            let told = object["progress"]?.object,
            told.members.allSatisfy({ ["completed", "total", "unit"].contains($0.name) }),
            let completed = count(told["completed"])
        else { return nil }
        var progress = Progress(completed: completed, unit: .items)
        if let total = told["total"], !total.isNull {
            guard let total = count(total) else { return nil }
            progress.total = total
        }
        if let unit = told["unit"], !unit.isNull {
            guard let word = unit.string, JobModel.Progress.Unit.isWellFormed(word) else { return nil }
            progress.unit = JobModel.Progress.Unit(rawValue: word)
        }
        return progress
    }

    /// A count that is not negative; a fraction of one is dropped.
    private static func count(_ json: JSON?) -> Int64? {
        guard case .number(let number)? = json, number.double >= 0, number.double < 9e18 else { return nil }
        return Int64(number.double.rounded(.down))
    }
}
