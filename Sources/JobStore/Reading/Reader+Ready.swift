import JobModel

/// Queued jobs are looked for in their starting order first. Where many jobs for excluded hosts come first, perhaps a
/// million, the search goes on host by host instead, which never reads those.
extension Reader {
    /// How many jobs for excluded hosts are passed over before the search goes on by host.
    private static let mostPassedOver = 4_000

    /// The first ready jobs of one owner in a queue.
    func ready(
        queue: String, owner: UInt32, after position: ReadyPosition?, excluding hosts: Set<String>, limit: Int
    ) throws -> [ReadyJob] {
        var search = ReadySearch(queue: queue, owner: owner, position: position, excluded: hosts, limit: limit)
        var found: [ReadyJob] = []
        // More are read in place of unreadable jobs.
        while found.count < limit {
            search.limit = limit - found.count
            let positions = try positions(search)
            found += try readyJobs(positions.map(\.id))
            guard positions.count == search.limit else { break }
            search.position = positions.last
        }
        return found
    }

    /// The gated children of a link that are queued.
    func gated(of parent: JobID, link: Int, from index: Int, limit: Int) throws -> [ReadyJob] {
        let statement = try statement(
            """
            SELECT id FROM jobs INDEXED BY jobs_gated WHERE state = 1 AND gated = 1 \
            AND parent = ?1 AND parent_link = ?2 AND parent_index >= ?3 ORDER BY parent_index
            """)
        statement.bind(parent, at: 1)
        statement.bind(link, at: 2)
        statement.bind(index, at: 3)
        return try readyJobs(statement.rows(atMost: limit) { $0.integer(0) })
    }

    /// The gated children that are queued and whose list is over, or runs another link.
    func orphans(limit: Int) throws -> [Job] {
        let statement = try statement(
            """
            SELECT id FROM jobs AS child INDEXED BY jobs_gated WHERE state = 1 AND gated = 1 \
            AND parent IS NOT NULL AND NOT EXISTS \
            (SELECT 1 FROM jobs WHERE id = child.parent AND state < 3 AND link = child.parent_link) \
            ORDER BY parent, parent_link, parent_index
            """)
        return try jobs(selectedBy: statement, atMost: limit)
    }

    /// These jobs, large ones without their spec, which is not even read.
    private func readyJobs(_ ids: [JobID]) throws -> [ReadyJob] {
        let select = try statement(JobRow.select)
        let light = try statement(
            """
            SELECT priority, host, parent, parent_link, parent_index, parent_depth, \
            size + iif(item IS NULL, 0, coalesce((SELECT templates.size FROM templates \
            WHERE templates.parent = jobs.parent AND link = parent_link), 0)) FROM jobs WHERE id = ?1
            """)
        return try ids.compactMap { id in
            light.bind(id, at: 1)
            let found = try light.row { row in
                let parent = row.optionalInteger(2).map { parent in
                    Job.Parent(
                        job: parent, link: Int(row.integer(3)), index: Int(row.integer(4)), depth: Int(row.integer(5)))
                }
                return (
                    position: ReadyPosition(priority: Int(row.integer(0)), id: id), host: row.text(1), parent: parent,
                    isLarge: row.integer(6) > ReadyJob.largestStored
                )
            }
            guard let found else { return nil }
            let job = found.isLarge ? nil : try legibleJob(id, select)
            guard found.isLarge || job != nil else { return nil }
            return ReadyJob(position: found.position, host: found.host, parent: found.parent, job: job)
        }
    }

    /// In starting order, which those for hosts and those without one have each in an index of its own.
    private func positions(_ search: ReadySearch) throws -> [ReadyPosition] {
        var found: [ReadyPosition] = []
        var passedOver = 0
        for part in search.parts {
            let forHosts = try PositionCursor(
                statement(
                    """
                    SELECT priority, id, host FROM jobs INDEXED BY jobs_ready \
                    WHERE state = 1 AND gated = 0 AND host IS NOT NULL AND queue = ?1 AND owner = ?5 \
                    AND \(part.condition) ORDER BY priority DESC, id
                    """), search, part)
            let others = try PositionCursor(statement(Self.positionsOfHost(part)), search, part)
            while found.count < search.limit {
                if let other = others.position, forHosts.position.map({ other < $0 }) ?? true {
                    found.append(other)
                    try others.advance()
                    continue
                }
                guard let position = forHosts.position else { break }
                if search.excluded.isEmpty || !search.excluded.contains(forHosts.host ?? "") {
                    found.append(position)
                } else {
                    passedOver += 1
                    guard passedOver <= Self.mostPassedOver else {
                        var rest = search
                        rest.position = position
                        rest.limit -= found.count
                        // Its statement is needed for the next search.
                        others.close()
                        return try found + positionsByHost(rest)
                    }
                }
                try forHosts.advance()
            }
        }
        return found
    }

    /// The ready jobs for host ?4, or where that is null for none.
    private static func positionsOfHost(_ part: ReadySearch.Part) -> String {
        """
        SELECT priority, id FROM jobs INDEXED BY jobs_ready_by_host \
        WHERE state = 1 AND gated = 0 AND queue = ?1 AND owner = ?5 AND host IS ?4 AND \(part.condition) \
        ORDER BY priority DESC, id
        """
    }

    private func positionsByHost(_ search: ReadySearch) throws -> [ReadyPosition] {
        var first = FirstPositions(search.limit)
        try find(search, host: nil, &first)
        let next = try statement(
            """
            SELECT host FROM jobs INDEXED BY jobs_ready_by_host \
            WHERE state = 1 AND gated = 0 AND queue = ?1 AND owner = ?3 AND host > ?2 ORDER BY host LIMIT 1
            """)
        var last = ""
        while true {
            next.bind(search.queue, at: 1)
            next.bind(last, at: 2)
            next.bind(Int64(search.owner), at: 3)
            guard let host = try next.row({ $0.text(0) }) else { return first.sorted }
            if !search.excluded.contains(host) { try find(search, host: host, &first) }
            last = host
        }
    }

    private func find(_ search: ReadySearch, host: String?, _ first: inout FirstPositions) throws {
        for part in search.parts {
            let statement = try statement(Self.positionsOfHost(part))
            defer { statement.reset() }
            search.bind(part, to: statement)
            statement.bind(host, at: 4)
            while try statement.step() {
                let position = ReadyPosition(priority: Int(statement.integer(0)), id: statement.integer(1))
                guard first.add(position) else { return }
            }
        }
    }
}

/// What is looked for among the queued jobs.
private struct ReadySearch {
    /// After a position come the jobs of its priority with higher ids, and then all of lower priorities; each of the
    /// two is one range of the index.
    enum Part: String {
        case all = "true"
        case samePriority = "priority = ?2 AND id > ?3"
        case lowerPriority = "priority < ?2"

        var condition: String { rawValue }
    }

    let queue: String
    let owner: UInt32
    var position: ReadyPosition?
    let excluded: Set<String>
    var limit: Int

    var parts: [Part] { position == nil ? [.all] : [.samePriority, .lowerPriority] }

    func bind(_ part: Part, to statement: PreparedStatement) {
        statement.bind(queue, at: 1)
        statement.bind(Int64(owner), at: 5)
        guard let position, part != .all else { return }
        statement.bind(position.priority, at: 2)
        if part == .samePriority { statement.bind(position.id, at: 3) }
    }
}

/// Goes through the positions that a statement finds.
private final class PositionCursor {
    private let statement: PreparedStatement
    /// Nil behind the last.
    private(set) var position: ReadyPosition?

    init(_ statement: PreparedStatement, _ search: ReadySearch, _ part: ReadySearch.Part) throws {
        self.statement = statement
        search.bind(part, to: statement)
        try advance()
    }

    var host: String? { statement.text(2) }

    func advance() throws {
        position =
            try statement.step() ? ReadyPosition(priority: Int(statement.integer(0)), id: statement.integer(1)) : nil
    }

    func close() { statement.reset() }

    deinit { close() }
}

/// The first few of many positions, which come in order for each host.
private struct FirstPositions {
    private let limit: Int
    private var positions: [ReadyPosition] = []
    /// What comes after it is not among the first.
    private var last: ReadyPosition?

    init(_ limit: Int) {
        self.limit = limit
    }

    var sorted: [ReadyPosition] { Array(positions.sorted().prefix(limit)) }

    /// Adds a position; false where it and all after it come too late.
    mutating func add(_ position: ReadyPosition) -> Bool {
        if let last, last < position { return false }
        positions.append(position)
        // Sorting now and then keeps the cost of each position small.
        if positions.count >= 2 * limit {
            positions = sorted
            last = positions.last
        }
        return true
    }
}
