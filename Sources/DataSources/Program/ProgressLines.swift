import JobModel

/// Separates lines of progress from the rest in a program's standard output.
struct ProgressLines {
    struct Progress: Equatable {
        var completed: Int64
        var total: Int64?
        var unit: JobModel.Progress.Unit
    }

    /// The longest line of progress; longer lines are part of the result.
    static let longestProgress = 4 << 10

    /// The part of the result that was not drained.
    private(set) var result: [UInt8] = []
    /// The beginning of a line that may become either.
    private var open: [UInt8] = []
    private var isResult = false

    /// Adds output; returns the last progress in it.
    mutating func append(_ bytes: UnsafeRawBufferPointer) -> Progress? {
        var latest: Progress?
        var rest = bytes[...]
        while !rest.isEmpty {
            let newline = rest.firstIndex(of: UInt8(ascii: "\n"))
            open += rest[..<(newline ?? rest.endIndex)]
            if isResult || open.count > Self.longestProgress { giveUp() }
            guard let newline else { break }
            open.append(UInt8(ascii: "\n"))
            if let progress = end() { latest = progress }
            rest = rest[(newline + 1)...]
        }
        return latest
    }

    mutating func drain() -> [UInt8] {
        defer { result = [] }
        return result
    }

    /// Ends the current line, which may lack its line feed at the end of the output; returns the progress in it.
    mutating func end() -> Progress? {
        defer { isResult = false }
        if !isResult, let progress = Self.progress(in: open) {
            open.removeAll(keepingCapacity: true)
            return progress
        }
        giveUp()
        return nil
    }

    private mutating func giveUp() {
        isResult = true
        result += open
        open.removeAll(keepingCapacity: true)
    }

    /// Reads a line `{"progress": {"completed", "total"?, "unit"?}}`; nil for any other line.
    private static func progress(in line: [UInt8]) -> Progress? {
        guard line.first(where: { $0 > 0x20 }) == UInt8(ascii: "{"),
            let object = try? JSON(parsing: line).object, object.members.count == 1,
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

    private static func count(_ json: JSON?) -> Int64? {
        guard case .number(let number)? = json, number.double >= 0, number.double < 9e18 else { return nil }
        return Int64(number.double.rounded(.down))
    }
}
