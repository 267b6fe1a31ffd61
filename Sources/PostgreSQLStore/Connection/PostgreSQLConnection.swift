import CPostgreSQL
import Dispatch
import Glibc
package import JobModel
package import JobStore

/// A session of PostgreSQL in pipeline mode: writes are queued without waiting for their results, and a query waits for all.
///
/// It is unchecked as its owners let one thread at a time use it.
package final class PostgreSQLConnection: SQLConnection, @unchecked Sendable {
    /// What was sent and not answered, in order.
    private enum Pending {
        case preparation(sql: String)
        /// A statement, the number of rows that it must change, and whether its own rows are asked for.
        case statement(changes: Int?, isWanted: Bool)
        case synchronization
    }

    private let pointer: OpaquePointer
    private let settings: PostgreSQLSettings
    /// The code of its errors.
    private let errors: StoreError.Code
    /// The subject of a sentence about the database.
    var name: String {
        let host = PQhost(pointer).map { String(cString: $0) } ?? ""
        return "PostgreSQL at \(host.isEmpty ? "its socket" : host)"
    }
    /// Whether a pooler is between, which may give each transaction another session of the server.
    private(set) var isPooled = false
    private(set) var isBroken = false
    private var pending: [Pending] = []
    /// The names of prepared statements.
    private var statements: [String: String] = [:]
    private var number = 0
    private static let mostStatements = 500
    private static let oldestServer: Int32 = 140_000

    // MARK: Opening

    /// Connects to one of the hosts, and waits as long as libpq does: ``PostgreSQLSettings/secondsPerHost`` for each address of
    /// each host, and without a limit for what these addresses are.
    init(_ settings: PostgreSQLSettings, errors: StoreError.Code) throws(StoreError) {
        if let flaw = PostgreSQLSettings.flaw(in: settings.address) {
            throw StoreError(errors, "The address of the database \(flaw).", isLasting: true)
        }
        (self.settings, self.errors) = (settings, errors)
        // A later value wins, and an empty password counts as none.
        let keywords = [
            "password", "connect_timeout", "keepalives_idle", "keepalives_interval", "keepalives_count", "dbname",
            "client_encoding", "application_name",
        ]
        // A session that only listens notices within 5 s that its server is gone.
        let values = [
            settings.password ?? "", String(settings.secondsPerHost), "2", "1", "3", settings.address, "UTF8", "deferd",
        ]
        let opened = withStrings(keywords) { keywords in
            withStrings(values) { values in PQconnectStartParams(keywords, values, 1) }
        }
        guard let opened else { throw StoreError(errors, "libpq has no memory for a connection.") }
        pointer = opened
        // Then a refusal says its SQLSTATE, whatever the server's language is.
        PQsetErrorVerbosity(opened, PQERRORS_SQLSTATE)
        PQsetNoticeProcessor(opened, { _, _ in }, nil)
        // PQreset connects again and waits; unlike PQconnectPoll, it applies `connect_timeout`, and so leaves a silent host.
        if PQstatus(opened) != CONNECTION_BAD { PQreset(opened) }
        guard PQstatus(opened) == CONNECTION_OK else { throw refusal() }
        PQsetErrorVerbosity(opened, PQERRORS_DEFAULT)
        try begin(until: deadline)
    }

    deinit { PQfinish(pointer) }

    /// Why there is no connection.
    private func refusal() -> StoreError {
        isBroken = true
        let message = message
        // libpq's own errors have no SQLSTATE.
        let words = message.split(whereSeparator: { $0.isWhitespace || $0 == ":" })
        let code = words.last.map(String.init) ?? ""
        let state =
            PQconnectionNeedsPassword(pointer) == 1
            ? "28P01" : message.contains("FATAL") && code.utf8.count == 5 ? code : nil
        return StoreError(
            errors, PostgreSQLFailure(code: state ?? "08006", message: state.map(Self.reason) ?? message), at: name)
    }

    private static func reason(_ code: String) -> String {
        switch code {
        case "28P01", "28000": "it refused the role or its password"
        case "3D000": "it has no such database"
        case "57P03": "it is starting or stopping"
        case "53300": "it has too many connections"
        default: "it refused the connection: SQLSTATE \(code)"
        }
    }

    /// Asks the server who it is, and enters pipeline mode.
    private func begin(until end: UInt64) throws(StoreError) {
        PQsetnonblocking(pointer, 1)
        guard PQsendQuery(pointer, "SELECT pg_backend_pid()") == 1 else { throw broken(message) }
        var failed: StoreError?
        while let result = try next(until: end) {
            if PQresultStatus(result) == PGRES_FATAL_ERROR { failed = failed ?? failure(result) }
            if PQntuples(result) > 0, let process = PQgetvalue(result, 0, 0) {
                // A pooler makes up its own ids.
                isPooled = Int32(String(cString: process)) != PQbackendPID(pointer)
            }
            PQclear(result)
        }
        if let failed { throw failed }
        guard PQserverVersion(pointer) >= Self.oldestServer else {
            throw StoreError(errors, "\(name) is older than version 14; use a newer one.", isLasting: true)
        }
        guard PQenterPipelineMode(pointer) == 1 else { throw broken(message) }
    }

    // MARK: Transactions

    /// Begins a transaction with settings of its own, whatever those of the role or of a pooler's session are.
    func begin(isSnapshot: Bool = false) throws(StoreError) {
        try send("BEGIN ISOLATION LEVEL \(isSnapshot ? "REPEATABLE READ READ ONLY" : "READ COMMITTED READ WRITE")")
        try send(settings.transaction)
    }

    func commit() throws(StoreError) {
        try send("COMMIT")
        _ = try finish()
    }

    /// Gives up a transaction that has failed.
    func rollBack() {
        guard !isBroken else { return }
        try? send("ROLLBACK")
        _ = try? finish()
    }

    // MARK: Statements

    /// Queues a statement. With `changes`, it fails if it changes another number of rows.
    func send(
        _ sql: String, _ values: [(any Bindable)?] = [], changes: Int? = nil, isWanted: Bool = false
    ) throws(StoreError) {
        let parameters = PostgreSQLParameters(values).values
        let statement = if let known = statements[sql] { known } else { try prepare(sql, parameters) }
        // An empty value is not NULL, and needs an address too.
        var bytes: [UInt8] = []
        for case let value? in parameters.map(\.bytes) { bytes += value }
        bytes.append(0)
        let lengths = parameters.map { Int32($0.bytes?.count ?? 0) }
        let ones = [Int32](repeating: 1, count: parameters.count)
        let isSent = bytes.withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { buffer in
                var offset = 0
                let values = parameters.map { parameter -> UnsafePointer<CChar>? in
                    guard let bytes = parameter.bytes else { return nil }
                    defer { offset += bytes.count }
                    return buffer.baseAddress.map { $0 + offset }
                }
                return PQsendQueryPrepared(pointer, statement, Int32(parameters.count), values, lengths, ones, 1)
            }
        }
        guard isSent == 1 else { throw broken(message) }
        pending.append(.statement(changes: changes, isWanted: isWanted))
    }

    /// Prepares a statement whose parameters may be `?1` as in SQLite.
    private func prepare(_ sql: String, _ parameters: [PostgreSQLParameter]) throws(StoreError) -> String {
        // Filters of lists combine freely; the last ones are prepared each time. Another session does not know them.
        let name = !isPooled && statements.count < Self.mostStatements ? "s\(number)" : ""
        number += 1
        let types = parameters.map(\.type)
        // By bytes, as `replacing` takes longer than the server.
        let text = String(decoding: sql.utf8.map { $0 == UInt8(ascii: "?") ? UInt8(ascii: "$") : $0 }, as: UTF8.self)
        guard PQsendPrepare(pointer, name, text, Int32(types.count), types) == 1 else {
            throw broken(message)
        }
        if !name.isEmpty { statements[sql] = name }
        pending.append(.preparation(sql: sql))
        return name
    }

    /// The rows of a query, once all that was sent before is carried out.
    func rows(_ sql: String, _ values: [(any Bindable)?] = []) throws(StoreError) -> PostgreSQLRows {
        try send(sql, values, isWanted: true)
        guard let rows = try finish().last else { throw broken("a query was not answered") }
        return rows
    }

    package func rows<Value>(
        _ sql: String, _ values: [(any Bindable)?], atMost limit: Int, _ read: (PostgreSQLRow) -> Value?
    ) throws(StoreError) -> [Value] {
        try rows("\(sql) LIMIT ?\(values.count + 1)", values + [limit]).map(read)
    }

    /// Waits until all that was sent is carried out; gives the wanted rows.
    func finish() throws(StoreError) -> [PostgreSQLRows] {
        try synchronize()
        let end = deadline
        var found: [PostgreSQLRows] = []
        var failed: StoreError?
        let all = pending
        pending = []
        for expected in all {
            guard let result = try next(until: end) else { throw broken("its answers are out of order") }
            // Clears the result when it is not wanted.
            let rows = PostgreSQLRows(result)
            let status = PQresultStatus(result)
            if case .synchronization = expected {
                guard status == PGRES_PIPELINE_SYNC else { throw broken(message) }
                continue
            }
            if status == PGRES_FATAL_ERROR, failed == nil { failed = failure(result) }
            switch expected {
            case .preparation(let sql): if status != PGRES_COMMAND_OK { statements[sql] = nil }
            case .statement(let changes, let isWanted):
                if status == PGRES_TUPLES_OK, isWanted { found.append(rows) }
                if let changes, failed == nil, Int(String(cString: PQcmdTuples(result))) != changes {
                    failed = StoreError(errors, "\(name): a row that is to be changed is not there.")
                }
            case .synchronization: break
            }
            if isBroken { break }
            if try next(until: end) != nil { throw broken("its answers are out of order") }
        }
        if let failed { throw failed }
        return found
    }

    /// Has the server carry out what was sent, without waiting for it.
    func synchronize() throws(StoreError) {
        guard !isBroken else { throw broken("the connection is closed") }
        guard PQpipelineSync(pointer) == 1 else { throw broken(message) }
        pending.append(.synchronization)
        if PQflush(pointer) < 0 { throw broken(message) }
    }

    /// Whether the session lasts: the server may have closed it while nothing was asked.
    func checkIdle() -> Bool {
        var descriptor = pollfd(fd: PQsocket(pointer), events: Int16(POLLIN), revents: 0)
        // The end comes behind the reason for it.
        while !isBroken, Glibc.poll(&descriptor, 1, 0) > 0 {
            if PQconsumeInput(pointer) == 0 || PQstatus(pointer) == CONNECTION_BAD { isBroken = true }
        }
        return !isBroken
    }

    /// Waits so many milliseconds at most for notifications; returns their texts.
    func notifications(within milliseconds: Int32) throws(StoreError) -> [String] {
        var descriptor = pollfd(fd: PQsocket(pointer), events: Int16(POLLIN), revents: 0)
        guard Glibc.poll(&descriptor, 1, milliseconds) > 0 else { return [] }
        guard PQconsumeInput(pointer) == 1 else { throw broken(message) }
        var texts: [String] = []
        while let notification = PQnotifies(pointer) {
            texts.append(String(cString: notification.pointee.extra))
            PQfreemem(notification)
        }
        return texts
    }

    // MARK: Waiting

    private var deadline: UInt64 {
        // The server gives up a statement first.
        DispatchTime.now().uptimeNanoseconds + UInt64(settings.milliseconds + 500) * 1_000_000
    }

    /// The next result; nil at the end of those of a statement.
    private func next(until end: UInt64) throws(StoreError) -> OpaquePointer? {
        while true {
            let left = PQflush(pointer)
            if left < 0 { throw broken(message) }
            if PQisBusy(pointer) == 0 { return PQgetResult(pointer) }
            try poll(left == 1 ? POLLIN | POLLOUT : POLLIN, until: end)
            if PQconsumeInput(pointer) == 0 { throw broken(message) }
        }
    }

    private func poll(_ events: Int32, until end: UInt64) throws(StoreError) {
        while true {
            let now = DispatchTime.now().uptimeNanoseconds
            guard now < end else { throw broken("it did not answer in time") }
            var descriptor = pollfd(fd: PQsocket(pointer), events: Int16(events), revents: 0)
            let count = Glibc.poll(&descriptor, 1, Int32((end - now) / 1_000_000 + 1))
            if count > 0 { return }
            if count < 0, errno != EINTR { throw broken("poll failed") }
        }
    }

    // MARK: Errors

    private var message: String {
        let text = String(cString: PQerrorMessage(pointer)).split(separator: "\n").first.map(String.init) ?? ""
        return text.isEmpty ? "the connection broke" : text
    }

    private func broken(_ message: String) -> StoreError {
        isBroken = true
        return StoreError(errors, PostgreSQLFailure(code: "08006", message: message), at: name)
    }

    private func failure(_ result: OpaquePointer) -> StoreError {
        func field(_ letter: Unicode.Scalar) -> String? {
            PQresultErrorField(result, Int32(letter.value)).map { String(cString: $0) }
        }
        let failure = PostgreSQLFailure(code: field("C") ?? "08006", message: field("M") ?? message)
        if failure.endsSession || PQstatus(pointer) == CONNECTION_BAD { isBroken = true }
        return StoreError(errors, failure, at: name)
    }
}

/// Runs `body` with a list of C strings that ends with a null pointer.
private func withStrings<Value>(_ texts: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Value) -> Value {
    let copies = texts.map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    let list = copies.map { UnsafePointer<CChar>($0) } + [nil]
    return list.withUnsafeBufferPointer { body($0.baseAddress) }
}
