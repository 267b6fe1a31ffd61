import JobCore
import JobModel

/// Composes the outcome of a list from those of its children, which have all ended, as text that it does not parse. Blocks.
struct Gathering: Sendable {
    /// Children that are read at once.
    private static let page = 64

    let order: RunOrder
    let list: ListRow
    let engine: Engine

    func run() -> RunEnd {
        do throws(JobError) {
            return RunEnd(.success(try engine.stored(try text(), room: order.room)), bytes: list.bytes)
        } catch {
            return RunEnd(.failure(error), bytes: list.bytes)
        }
    }

    private func text() throws(JobError) -> [UInt8] {
        if let decided = list.decided { return try text(decidedBy: decided) }
        var result = Text(limit: engine.limits.body)
        var error = JobError(.list, "None of the \(list.made) children succeeded; see failures.")
        var size = 0
        error.failures = []
        try result.append("[")
        var index = 0
        while index < list.made {
            for child in try children(from: index, limit: Self.page) {
                if list.mode == .first {
                    error.add(failure: Self.failure(of: child), listed: &size)
                } else {
                    if index > 0 { try result.append(",") }
                    try append(child, to: &result)
                }
                index += 1
            }
        }
        if list.mode == .first { throw error }
        try result.append("]")
        return result.bytes
    }

    private func append(_ child: ChildOutcome, to result: inout Text) throws(JobError) {
        switch (list.mode, child.carried) {
        case (.settled, .success(let value)?):
            try result.append(#"{"ok":true,"value":"#)
            try append(value, to: &result)
            try result.append("}")
        case (.settled, _):
            try result.append(#"{"ok":false,"error":"#)
            try result.append(Self.failure(of: child).json.utf8)
            try result.append("}")
        case (_, .success(let value)?): try append(value, to: &result)
        default: try result.append("null")
        }
    }

    private func append(_ value: StoredValue, to result: inout Text) throws(JobError) {
        // Checked before a long file is read.
        try result.admit(value.size)
        try result.append(try engine.blobs.text(of: value))
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
        var result = Text(limit: engine.limits.body)
        try result.append(#"{"index":\#(index),"value":"#)
        try append(value, to: &result)
        try result.append("}")
        return result.bytes
    }

    /// Children from an index on: at least one, and without gaps.
    private func children(from index: Int, limit: Int) throws(JobError) -> [ChildOutcome] {
        let found: [ChildOutcome]
        do throws(StoreError) {
            found = try engine.reader.outcomes(of: list.job, list: list.id, from: index, limit: limit)
        } catch {
            throw JobError(
                .storage, "The children of job \(list.job) cannot be read: \(error.message)",
                retryable: error.mayPass)
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

/// A JSON text of limited size.
private struct Text {
    let limit: Int
    private(set) var bytes: [UInt8] = []

    init(limit: Int) { self.limit = limit }

    mutating func append(_ text: String) throws(JobError) { try append(Array(text.utf8)) }

    mutating func append(_ text: [UInt8]) throws(JobError) {
        try admit(Int64(text.count))
        bytes += text
    }

    /// Throws if there is no room for so many bytes.
    func admit(_ count: Int64) throws(JobError) {
        guard Int64(bytes.count).saturatingAdding(count) > Int64(limit) else { return }
        throw JobError(.tooLarge, "The results of the list are larger than \(limit) bytes; select less of each.")
    }
}
