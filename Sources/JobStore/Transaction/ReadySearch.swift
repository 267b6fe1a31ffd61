import JobModel

/// What is looked for among the ready jobs.
///
/// They are looked for in their starting order first. Where many jobs for excluded hosts come first, perhaps a million, the
/// search goes on host by host instead, which never reads those.
struct ReadySearch {
    /// How many jobs for excluded hosts are passed over before the search goes on by host.
    private static let mostPassedOver = 4_000

    /// After a position come the jobs of its priority with higher ids, and then all of lower priorities; each of the
    /// two is one range of the index.
    fileprivate enum Part: String {
        case all = "true"
        case samePriority = "priority = ?2 AND id > ?3"
        case lowerPriority = "priority < ?2"
    }

    let queue: String
    let owner: UInt32
    var position: ReadyPosition?
    let excluded: Set<String>
    var limit: Int
    let damage: DamageReport

    private var parts: [Part] { position == nil ? [.all] : [.samePriority, .lowerPriority] }

    fileprivate func bind(_ part: Part, to statement: PreparedStatement) {
        statement.bind(queue, at: 1)
        statement.bind(Int64(owner), at: 5)
        guard let position, part != .all else { return }
        statement.bind(position.priority, at: 2)
        if part == .samePriority { statement.bind(position.id, at: 3) }
    }

    private static let isReady = "state = 1 AND waiting = 0 AND removing = 0 AND queue = ?1 AND owner = ?5"

    /// In starting order, which those for hosts and those without one have each in an index of its own.
    func rows(on connection: SQLiteConnection) throws(StoreError) -> [ReadyRow] {
        var found: [ReadyRow] = []
        var passedOver = 0
        for part in parts {
            let forHosts = try ReadyCursor(
                connection.statement(
                    """
                    SELECT priority, id, host FROM jobs INDEXED BY jobs_ready WHERE \(Self.isReady) \
                    AND host IS NOT NULL AND \(part.rawValue) ORDER BY priority DESC, id
                    """), self, part)
            defer { forHosts.close() }
            let others = try ReadyCursor(connection.statement(Self.ofHost(part)), self, part)
            defer { others.close() }
            while found.count < limit {
                if let other = others.row, forHosts.row.map({ other.position < $0.position }) ?? true {
                    if !damage.contains(other.position.id) { found.append(other) }
                    try others.advance()
                    continue
                }
                guard let row = forHosts.row else { break }
                if !excluded.isEmpty, excluded.contains(row.host ?? "") {
                    passedOver += 1
                    guard passedOver <= Self.mostPassedOver else {
                        var rest = self
                        rest.position = row.position
                        rest.limit -= found.count
                        // Its statement is needed for the next search.
                        others.close()
                        return try found + rest.rowsByHost(on: connection)
                    }
                } else if !damage.contains(row.position.id) {
                    found.append(row)
                }
                try forHosts.advance()
            }
        }
        return found
    }

    /// The ready jobs for host ?4, or where that is null for none.
    private static func ofHost(_ part: Part) -> String {
        """
        SELECT priority, id, host FROM jobs INDEXED BY jobs_ready_by_host WHERE \(isReady) AND host IS ?4 \
        AND \(part.rawValue) ORDER BY priority DESC, id
        """
    }

    private func rowsByHost(on connection: SQLiteConnection) throws(StoreError) -> [ReadyRow] {
        var first = FirstReady(limit)
        try find(nil, on: connection, &first)
        var last = ""
        while true {
            let next = try connection.statement(
                """
                SELECT host FROM jobs INDEXED BY jobs_ready_by_host WHERE \(Self.isReady) AND host > ?2 \
                ORDER BY host LIMIT 1
                """, queue, last, nil, nil, owner)
            guard let host = try next.row({ row throws(StoreError) in row.text(0) }) else { return first.sorted }
            if !excluded.contains(host) { try find(host, on: connection, &first) }
            last = host
        }
    }

    private func find(
        _ host: String?, on connection: SQLiteConnection, _ first: inout FirstReady
    ) throws(StoreError) {
        for part in parts {
            let cursor = try ReadyCursor(connection.statement(Self.ofHost(part)), self, part, host: host)
            defer { cursor.close() }
            while let row = cursor.row {
                if !damage.contains(row.position.id) {
                    guard first.add(row) else { return }
                }
                try cursor.advance()
            }
        }
    }
}

/// Goes through the ready jobs that a statement finds.
private final class ReadyCursor {
    private let statement: PreparedStatement
    /// Nil behind the last.
    private(set) var row: ReadyRow?
    private var isClosed = false

    init(
        _ statement: PreparedStatement, _ search: ReadySearch, _ part: ReadySearch.Part, host: String? = nil
    ) throws(StoreError) {
        self.statement = statement
        // An error may have left it as it was.
        statement.reset()
        search.bind(part, to: statement)
        statement.bind(host, at: 4)
        try advance()
    }

    func advance() throws(StoreError) {
        guard try statement.step() else {
            row = nil
            return
        }
        row = ReadyRow(
            position: ReadyPosition(priority: Int(statement.integer(0)), id: statement.integer(1)),
            host: statement.text(2))
    }

    func close() {
        if !isClosed { statement.reset() }
        isClosed = true
    }
}

/// The first few of many ready jobs, which come in order for each host.
private struct FirstReady {
    private let limit: Int
    private var rows: [ReadyRow] = []
    /// What comes after it is not among the first.
    private var last: ReadyPosition?

    init(_ limit: Int) {
        self.limit = limit
    }

    var sorted: [ReadyRow] { Array(rows.sorted { $0.position < $1.position }.prefix(limit)) }

    /// Adds a job; false where it and all after it come too late.
    mutating func add(_ row: ReadyRow) -> Bool {
        if let last, last < row.position { return false }
        rows.append(row)
        // Sorting now and then keeps the cost of each job small.
        if rows.count >= 2 * limit {
            rows = sorted
            last = rows.last?.position
        }
        return true
    }
}
