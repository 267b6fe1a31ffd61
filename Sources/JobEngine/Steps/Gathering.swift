import JobCore
import JobModel

/// Composes the outcome of a list from those of its children, which have all ended, as text that it does not parse. Blocks.
struct Gathering: Sendable {
    /// Children that are read at once.
    private static let page = 64

    let order: RunOrder
    let list: ListRow
    let engine: Engine

    /// The most levels of a list's outcome: those of a value in as many lists as can be nested. Children that wait for
    /// other lists could add levels without end, and clients bound those of an answer.
    private static let deepest = TemplateExpansion.deepest + 64

    func value() throws(JobError) -> StoredValue {
        let text = try text()
        guard JSONParser.nests(text, atMost: Self.deepest) else {
            throw JobError(
                .tooLarge,
                "The results of the list nest deeper than \(Self.deepest) levels; select a part of each.")
        }
        return try engine.stored(text, room: order.room)
    }

    private func text() throws(JobError) -> [UInt8] {
        if let decided = list.decided { return try text(decidedBy: decided) }
        var result = Array("[".utf8)
        let reason =
            list.made == 0
            ? "The list has no children, so none could succeed; give it at least one."
            : "None of the \(list.made) children succeeded; see failures."
        var error = JobError(.list, reason)
        var size = 0
        error.failures = []
        var index = 0
        while index < list.made {
            for child in try children(from: index, limit: Self.page) {
                if list.mode == .first {
                    error.add(failure: Self.failure(of: child), listed: &size)
                } else {
                    if index > 0 { result += ",".utf8 }
                    try append(child, to: &result)
                }
                index += 1
            }
        }
        if list.mode == .first { throw error }
        return result + "]".utf8
    }

    private func append(_ child: ChildOutcome, to result: inout [UInt8]) throws(JobError) {
        switch (list.mode, child.carried) {
        case (.settled, .success(let value)?):
            result += #"{"ok":true,"value":"#.utf8
            try append(value, to: &result)
            result += "}".utf8
        case (.settled, _):
            result += #"{"ok":false,"error":"#.utf8
            try append(.inline(Self.failure(of: child).json.utf8), to: &result)
            result += "}".utf8
        case (_, .success(let value)?): try append(value, to: &result)
        default: result += "null".utf8
        }
    }

    private func append(_ value: StoredValue, to result: inout [UInt8]) throws(JobError) {
        let limit = engine.limits.body
        // Checked before a long file is read.
        guard Int64(result.count).saturatingAdding(value.size) <= Int64(limit) else {
            throw JobError(.tooLarge, "The results of the list are larger than \(limit) bytes; select less of each.")
        }
        result += try engine.text(of: value)
    }

    /// The outcome of a list that one child has decided.
    private func text(decidedBy index: Int) throws(JobError) -> [UInt8] {
        guard let child = try children(from: index, limit: 1).first else { throw gone(index) }
        guard list.mode == .first, case .success(let value)? = child.carried else {
            let cause = Self.failure(of: child)
            var error = JobError(
                .list, "Child \(index) (job \(child.job)) failed, and with it the list: \(cause.message)")
            error.cause = cause
            throw error
        }
        var result = Array(#"{"index":\#(index),"value":"#.utf8)
        try append(value, to: &result)
        return result + "}".utf8
    }

    /// Children from an index on: at least one, and without gaps.
    private func children(from index: Int, limit: Int) throws(JobError) -> [ChildOutcome] {
        let found = try engine.read("The children of job \(list.job)") { (reader) throws(StoreError) in
            try reader.outcomes(of: list.job, list: list.id, from: index, limit: limit)
        }
        guard !found.isEmpty else { throw gone(index) }
        for (offset, child) in found.enumerated() where child.index != index + offset { throw gone(index + offset) }
        return found
    }

    private func gone(_ index: Int) -> JobError {
        JobError(.storage, "Child \(index) of job \(list.job) is gone; retry the job.")
    }

    private static func failure(of child: ChildOutcome) -> JobError {
        var error = child.carried?.error ?? JobRow.Stop.cancelled.error
        error.job = child.job
        error.index = child.index
        return error
    }
}
