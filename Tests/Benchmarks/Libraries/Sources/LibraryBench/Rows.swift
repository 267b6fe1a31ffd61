import Foundation
import GRDB
import JobModel
import JobProtocol
@testable import JobStore

extension Row {
    static func all() throws -> [Row] {
        base64 + [try json(), jsonText, time, try storedRows(), try newRows(), notification]
    }

    private static func sum(_ times: Int, _ body: () -> Int) -> Int {
        var sum = 0
        for _ in 0..<times { sum &+= body() }
        return sum
    }

    /// Bytes as text and back, beside Foundation's.
    private static var base64: [Row] {
        [(24, "24 B"), (64 << 10, "64 KiB")].flatMap { count, size in
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ ($0 >> 3)) }
            let text = Base64.encode(bytes)
            return [
                Row(
                    name: "base64, write \(size)", ours: { sum($0) { Base64.encode(bytes).utf8.count } },
                    other: { sum($0) { Data(bytes).base64EncodedString().utf8.count } }),
                Row(
                    name: "base64, read \(size)", ours: { sum($0) { Base64.decode(text)?.count ?? 0 } },
                    other: { sum($0) { Data(base64Encoded: text).map { [UInt8]($0).count } ?? 0 } }),
            ]
        }
    }

    /// A request to submit a job, as bytes come in from a client.
    private static let line = Array(
        """
        {"jsonrpc":"2.0","id":17,"method":"job.submit","params":{"source":{"type":"download","url":\
        "https://example.org/files/release/1.2.3/tool.tar.gz","path":"tools/tool.tar.gz","headers":{"Accept":"*/*"}},\
        "then":[{"then":{"type":"json","url":"https://example.org/api/{{input/sha256}}","pointer":"/assets/0"}}],\
        "priority":5,"tags":["nightly","tools"],"timeout":30.5,"retry":{"max":3,"jitter":true}}}
        """.utf8)

    /// A document read, beside Foundation's, which loses the digits of numbers and has no bound on memory.
    private static func json() throws -> Row {
        let data = Data(line)
        return Row(
            name: "json, read 430 B",
            ours: { sum($0) { (try? JSON(parsing: line, maximumDepth: 64))?["params"]?.object?.members.count ?? 0 } },
            other: {
                sum($0) {
                    let value = try? JSONSerialization.jsonObject(with: data) as? [String: Any]
                    return (value?["params"] as? [String: Any])?.count ?? 0
                }
            })
    }

    /// A document written, beside Foundation's.
    private static var jsonText: Row {
        guard let value = try? JSON(parsing: line, maximumDepth: 64),
            let object = try? JSONSerialization.jsonObject(with: Data(line)) as? [String: Any]
        else { preconditionFailure("The line is JSON.") }
        return Row(
            name: "json, write 430 B", ours: { sum($0) { value.utf8.count } },
            other: { sum($0) { (try? JSONSerialization.data(withJSONObject: object))?.count ?? 0 } })
    }

    /// A time as RFC 3339 writes it, beside Foundation's.
    private static var time: Row {
        let time = Timestamp(milliseconds: 1_795_282_535_123)
        let date = Date(timeIntervalSince1970: 1_795_282_535.123)
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        return Row(
            name: "time, write", ours: { sum($0) { time.description.utf8.count } },
            other: { sum($0) { date.formatted(style).utf8.count } })
    }

    /// A line of a tick of progress whose start is there already, beside the same written whole.
    private static var notification: Row {
        let text =
            #","link":0,"links":2,"progress":{"completed":1048576,"total":4194304,"unit":"bytes"},"coalesced":1}}"#
        let body = Array(text.utf8) + [UInt8(ascii: "\n")]
        let head = NotificationHead(.progress, watch: "w1")
        let room = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 10, alignment: 8)
        guard let start = room.baseAddress else { preconditionFailure("There is a buffer.") }
        return Row(
            name: "notification",
            ours: { times in
                var number = 0
                return body.withUnsafeBytes { body in
                    sum(times) {
                        number += 1
                        return head.write(job: JobID(number), seq: number & 0xFF, body: body, to: start) - start
                    }
                }
            },
            other: { times in
                var number = 0
                return sum(times) {
                    number += 1
                    var writer = JSONWriter()
                    writer.raw(#"{"jsonrpc":"2.0","method":"job.progress","params":{"watch":"w1","job":"#)
                    writer.write(number)
                    writer.raw(#","seq":"#)
                    writer.write(number & 0xFF)
                    writer.raw(body)
                    return writer.bytes.count
                }
            })
    }

    /// Rows inserted by the statements for many, beside the same one by one.
    private static func newRows() throws -> Row {
        let connection = try SQLiteConnection(":memory:", errors: .write)
        try connection.execute(jobs)
        let inserts = try RowInserts(
            into: "jobs", ["owner", "state", "created_at", "priority", "queue", "spec"], on: connection)
        let spec = String(decoding: line, as: UTF8.self)
        func insert(_ count: Int) throws {
            try inserts.insert(Array(0..<count)) { index, statement, first in
                statement.bind(1000, at: first + 1)
                statement.bind(index, at: first + 2)
                statement.bind(1_795_282_535_123, at: first + 3)
                statement.bind(0, at: first + 4)
                statement.bind("default", at: first + 5)
                statement.bind(spec, at: first + 6)
            }
        }
        func times(_ times: Int, _ body: () throws -> Void) -> Int {
            do {
                for _ in 0..<times {
                    try connection.execute("BEGIN")
                    try body()
                    try connection.execute("ROLLBACK")
                }
                return times
            } catch {
                preconditionFailure("\(error)")
            }
        }
        return Row(
            name: "new rows, 32", ours: { times($0) { try insert(32) } },
            other: { times($0) { for _ in 0..<32 { try insert(1) } } })
    }

    private static let jobs = """
        CREATE TABLE jobs (id INTEGER PRIMARY KEY, owner INTEGER, state INTEGER, created_at INTEGER, not_before INTEGER,
        priority INTEGER, queue TEXT, spec TEXT)
        """

    /// Rows of a table read through the store's statements, beside GRDB's rows.
    private static func storedRows() throws -> Row {
        let connection = try SQLiteConnection(":memory:", errors: .read)
        try connection.execute(jobs)
        let database = try DatabaseQueue()
        try database.write { other in
            try other.execute(sql: jobs)
            for id in 1...512 {
                let text = String(decoding: line, as: UTF8.self)
                let insert = "INSERT INTO jobs VALUES (?, 1000, 1, 1795282535123, NULL, 0, 'default', ?)"
                try other.execute(sql: insert, arguments: [id, text])
                try connection.statement(insert, id, text).run()
            }
        }
        let sql = "SELECT id, owner, state, created_at, not_before, priority, queue, spec FROM jobs"
        func inDatabase(_ body: (Database) throws -> Int) -> Int {
            do { return try database.read(body) } catch { preconditionFailure("\(error)") }
        }
        return Row(
            name: "rows of the store, 512",
            ours: { times in
                var sum = 0
                do {
                    let statement = try connection.prepare(sql)
                    for _ in 0..<times {
                        let rows = try statement.rows { row throws(StoreError) -> Int? in
                            Int(row.integer(0) + row.integer(1) + row.integer(2) + row.integer(3) + row.integer(5))
                                &+ (row.time(4) == nil ? 1 : 0) &+ (row.text(6)?.utf8.count ?? 0)
                                &+ (row.text(7)?.utf8.count ?? 0)
                        }
                        sum &+= rows.count
                    }
                } catch {
                    preconditionFailure("\(error)")
                }
                return sum
            },
            other: { times in
                inDatabase { connection in
                    let statement = try connection.cachedStatement(sql: sql)
                    var sum = 0
                    for _ in 0..<times {
                        var values: [Int] = []
                        let cursor = try GRDB.Row.fetchCursor(statement)
                        while let row = try cursor.next() {
                            let (id, owner, state): (Int64, Int64, Int64) = (row[0], row[1], row[2])
                            let (created, notBefore, priority): (Int64, Int64?, Int64) = (row[3], row[4], row[5])
                            let (queue, spec): (String, String) = (row[6], row[7])
                            values.append(
                                Int(id + owner + state + created + priority) &+ (notBefore == nil ? 1 : 0)
                                    &+ queue.utf8.count &+ spec.utf8.count)
                        }
                        sum &+= values.count
                    }
                    return sum
                }
            })
    }
}
