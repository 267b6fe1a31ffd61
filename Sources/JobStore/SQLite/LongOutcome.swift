import GRDB
import JobModel

/// What a job carries where its text is long: it stands in a table of its own, in parts. A column is always read and written
/// whole, and with it the row that it is in.
struct LongOutcome {
    /// Bytes of JSON beyond which what a job carries stands in parts. Those it may be looked for in count for more than that.
    static let threshold = 1 << 20
    /// Bytes of each part but the last. They are numbered from 0 on.
    static let partSize = 1 << 18

    /// Bytes that room is made for at once.
    private static let mostReserved = 64 << 20

    /// What stands around the result of a job that succeeded.
    static let resultHead = Array(#"{"ok":"#.utf8)
    static let resultTail = Array("}".utf8)

    private let job: JobID
    private let select: PreparedStatement
    /// Bytes of the whole text.
    let size: Int

    /// Nil where job `id` has none.
    init?(of job: JobID, in connection: Database) throws {
        let last = try PreparedStatement(
            "SELECT part, length(text) FROM long_outcomes WHERE job = ?1 ORDER BY part DESC LIMIT 1", on: connection)
        last.bind(job, at: 1)
        let size = try last.row { row in
            Int(row.integer(0)).saturatingMultiplied(by: Self.partSize).saturatingAdding(Int(row.integer(1)))
        }
        guard let size else { return nil }
        self.job = job
        self.size = size
        select = try PreparedStatement("SELECT text FROM long_outcomes WHERE job = ?1 AND part = ?2", on: connection)
    }

    /// Bytes of the result, of a job that succeeded.
    var resultSize: Int { max(0, size - Self.resultHead.count - Self.resultTail.count) }

    /// `length` bytes of the text from `offset` on, as far as there are.
    func bytes(offset: Int, length: Int) throws -> [UInt8] {
        let start = min(max(0, offset), size)
        let end = start + min(max(0, length), size - start)
        var bytes: [UInt8] = []
        // A damaged row can claim any size; then the first part that is not there ends this.
        bytes.reserveCapacity(min(end - start, Self.mostReserved))
        while start + bytes.count < end {
            let position = start + bytes.count
            select.bind(job, at: 1)
            select.bind(position / Self.partSize, at: 2)
            let isThere = try select.row { row in
                row.bytes(0) { part in
                    let first = position % Self.partSize
                    let part = part.dropFirst(first).prefix(end - position)
                    bytes.append(contentsOf: part)
                    return !part.isEmpty
                }
            }
            guard isThere == true else {
                throw StoreError(
                    .read,
                    "Job \(job) cannot be read from the database, as a part of its result is missing; remove the job."
                )
            }
        }
        return bytes
    }

    /// A part of the result of a job that succeeded.
    func result(offset: Int, length: Int) throws -> ResultPart {
        let start = min(max(0, offset), resultSize)
        return ResultPart(
            bytes: try bytes(offset: Self.resultHead.count + start, length: min(max(0, length), resultSize - start)),
            size: resultSize)
    }

    // MARK: Writing

    /// What a job carries, where it is long.
    static func json(of job: Job) -> JSON? {
        job.carriedSize > threshold ? job.carried?.json : nil
    }

    static func insert(_ outcome: JSON, of job: JobID, in connection: Database) throws {
        let insert = try PreparedStatement(
            "INSERT INTO long_outcomes (job, part, text) VALUES (?1, ?2, ?3)", on: connection)
        var part = 0
        try outcome.eachPart(ofSize: partSize) { text in
            insert.bind(job, at: 1)
            insert.bind(part, at: 2)
            insert.bind(bytes: text, at: 3)
            try insert.run()
            part += 1
        }
    }

    static func remove(of job: JobID, in connection: Database) throws {
        let delete = try PreparedStatement("DELETE FROM long_outcomes WHERE job = ?1", on: connection)
        delete.bind(job, at: 1)
        try delete.run()
    }
}
