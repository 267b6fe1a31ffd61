import JobModel

/// Queued jobs are looked for in their starting order first. Where many jobs for excluded hosts stand in front, perhaps
/// a million, the search goes on host by host instead, which never touches theirs.
extension Reader {
    /// How many jobs for excluded hosts are passed over before the search goes on by host.
    private static let mostPassedOver = 4_000

    func ready(
        queue: String, after position: ReadyPosition?, excluding hosts: Set<String>, limit: Int
    ) throws -> [Job] {
        var position = position
        var found: [Job] = []
        // Jobs left out because they make no sense are made up for.
        while found.count < limit {
            let search = ReadySearch(queue: queue, position: position, excluded: hosts, limit: limit - found.count)
            let places = try places(search)
            found += try jobs(places.map(\.id))
            guard places.count == search.limit else { break }
            position = places.last
        }
        return found
    }

    private func places(_ search: ReadySearch) throws -> [ReadyPosition] {
        var found: [ReadyPosition] = []
        var passedOver = 0
        for part in search.parts {
            let statement = try statement(
                """
                SELECT priority, id, host FROM jobs INDEXED BY jobs_ready \
                WHERE state = 1 AND queue = ?1 AND \(part.condition) ORDER BY priority DESC, id
                """)
            defer { statement.reset() }
            search.bind(part, to: statement)
            while found.count < search.limit, try statement.step() {
                let place = ReadyPosition(priority: Int(statement.integer(0)), id: statement.integer(1))
                if search.excluded.isEmpty || !(statement.text(2).map(search.excluded.contains) ?? false) {
                    found.append(place)
                    continue
                }
                passedOver += 1
                guard passedOver <= Self.mostPassedOver else {
                    var rest = search
                    rest.position = place
                    rest.limit -= found.count
                    return try found + placesByHost(rest)
                }
            }
        }
        return found
    }

    private func placesByHost(_ search: ReadySearch) throws -> [ReadyPosition] {
        var first = FirstPlaces(search.limit)
        try find(search, host: nil, &first)
        let next = try statement(
            """
            SELECT host FROM jobs INDEXED BY jobs_ready_by_host WHERE state = 1 AND queue = ?1 AND host > ?2 \
            ORDER BY host LIMIT 1
            """)
        var last = ""
        while true {
            next.bind(search.queue, at: 1)
            next.bind(last, at: 2)
            guard let host = try next.row({ $0.text(0) }) else { return first.sorted }
            if !search.excluded.contains(host) { try find(search, host: host, &first) }
            last = host
        }
    }

    private func find(_ search: ReadySearch, host: String?, _ first: inout FirstPlaces) throws {
        for part in search.parts {
            let statement = try statement(
                """
                SELECT priority, id FROM jobs INDEXED BY jobs_ready_by_host \
                WHERE state = 1 AND queue = ?1 AND host IS ?4 AND \(part.condition) ORDER BY priority DESC, id
                """)
            defer { statement.reset() }
            search.bind(part, to: statement)
            statement.bind(host, at: 4)
            while try statement.step() {
                let place = ReadyPosition(priority: Int(statement.integer(0)), id: statement.integer(1))
                guard first.take(place) else { return }
            }
        }
    }
}

/// What is looked for among the queued jobs.
private struct ReadySearch {
    /// What comes after a position is of its priority with a higher number, and then all of lower ones; each of the two
    /// is one stretch of the index.
    enum Part: String {
        case all = "true"
        case samePriority = "priority = ?2 AND id > ?3"
        case lowerPriority = "priority < ?2"

        var condition: String { rawValue }
    }

    let queue: String
    var position: ReadyPosition?
    let excluded: Set<String>
    var limit: Int

    var parts: [Part] { position == nil ? [.all] : [.samePriority, .lowerPriority] }

    func bind(_ part: Part, to statement: PreparedStatement) {
        statement.bind(queue, at: 1)
        guard let position, part != .all else { return }
        statement.bind(position.priority, at: 2)
        if part == .samePriority { statement.bind(position.id, at: 3) }
    }
}

/// The first few of many places, which come in order for each host.
private struct FirstPlaces {
    private let limit: Int
    private var places: [ReadyPosition] = []
    /// What comes after it is not among the first.
    private var last: ReadyPosition?

    init(_ limit: Int) {
        self.limit = limit
    }

    var sorted: [ReadyPosition] { Array(places.sorted().prefix(limit)) }

    /// Takes a place; false where it and all after it come too late.
    mutating func take(_ place: ReadyPosition) -> Bool {
        if let last, last < place { return false }
        places.append(place)
        // Sorting now and then keeps the cost of each place small.
        if places.count >= 2 * limit {
            places = sorted
            last = places.last
        }
        return true
    }
}
