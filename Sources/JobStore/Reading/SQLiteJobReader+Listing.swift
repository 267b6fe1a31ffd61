package import JobModel

/// A list merges selections, each in the order of ids in its index: the children of a job, the root jobs of each owner with
/// a tag, or those of each owner in each state.
extension SQLiteJobReader {
    /// Jobs of one selection that are tested in one snapshot.
    private static let mostLookedAt = 4_000

    package static func ids(
        _ filter: JobFilter, atMost limit: Int, on connection: SQLiteConnection
    ) throws(StoreError) -> (ids: [JobID], end: JobID?) {
        let isBefore: (JobID, JobID) -> Bool = filter.order == .oldest ? { $0 < $1 } : { $0 > $1 }
        var (filter, found, end): (_, [JobID], JobID?) = (filter, [], nil)
        for (owner, state) in try selections(filter, on: connection) {
            let (ids, last) = try look(Selection(filter, owner: owner, state: state), limit, on: connection)
            found = (found + ids).sorted(by: isBefore)
            end = last ?? end
            // Jobs behind it are for the next snapshot.
            if let last { found.removeAll { isBefore(last, $0) } }
            if found.count > limit {
                found.removeLast(found.count - limit)
                end = found.last
            }
            guard let end else { continue }
            let wanted = filter.order == .oldest ? JobID.min...end : end...JobID.max
            filter.ids = filter.ids?.clamped(to: wanted) ?? wanted
        }
        return (found, end)
    }

    private static func selections(
        _ filter: JobFilter, on connection: SQLiteConnection
    ) throws(StoreError) -> [(owner: Int64?, state: JobState?)] {
        if filter.parent != nil { return [(nil, nil)] }
        let table = filter.tag == nil ? "jobs WHERE \(Selection.isListed) AND" : "tags WHERE"
        let owners =
            if let owner = filter.owner { [Int64(owner)] } else {
                try connection.distinct("SELECT min(owner) FROM \(table) owner > ?1")
            }
        if filter.tag != nil { return owners.map { ($0, nil) } }
        let states = JobState.allCases.filter { filter.states.isEmpty || filter.states.contains($0) }
        return owners.flatMap { owner in states.map { (owner, $0) } }
    }

    /// The first `limit` jobs that fit, and the last one that was tested if there may be more.
    private static func look(
        _ selection: Selection, _ limit: Int, on connection: SQLiteConnection
    ) throws(StoreError) -> (ids: [JobID], last: JobID?) {
        var ids: [JobID] = []
        var (tested, last): (Int, JobID?) = (0, nil)
        try connection.forEach(selection.sql, selection.values) { row in
            if row.integer(1) != 0 { ids.append(row.integer(0)) }
            tested += 1
            last = tested == mostLookedAt || ids.count == limit ? row.integer(0) : nil
            return last == nil
        }
        return (ids, last)
    }
}

/// A query for ids of jobs in order, and whether each job fits.
private struct Selection {
    static let isListed = "parent IS NULL AND removing = 0"

    private(set) var values: [(any Bindable)?] = []
    /// Conditions that the index answers.
    private var conditions: [String] = []
    /// Conditions that are tested for each job.
    private var tests: [String] = []
    private let table: String
    private let id: String
    /// The columns that order the index.
    private let places: [String]
    private let isOldestFirst: Bool

    /// The children of a job, or the root jobs of an owner with a tag or in a state.
    init(_ filter: JobFilter, owner: Int64? = nil, state: JobState? = nil) {
        isOldestFirst = filter.order == .oldest
        if let parent = filter.parent {
            // Their ids are in the order of their lists and indexes.
            (table, id, places) = ("jobs INDEXED BY jobs_by_parent", "id", ["list", "parent_index"])
            conditions = ["parent = \(parameter(parent))"]
            tests = ["removing = 0"]
            if let after = filter.after {
                // The job may be gone.
                let (first, last) = (isOldestFirst ? "-1" : "\(Int64.max)", parameter(after))
                let place = places.map { column in
                    "coalesce((SELECT \(column) FROM jobs WHERE id = \(last) AND parent = ?1), \(first))"
                }
                conditions.append("(list, parent_index) \(isBehind) (\(place.joined(separator: ", ")))")
            }
            if let tag = filter.tag {
                let tags = "SELECT 1 FROM tags WHERE owner = jobs.owner AND tag = \(parameter(tag)) AND job = id"
                tests.append("EXISTS (\(tags))")
            }
        } else if let tag = filter.tag {
            (table, id, places) = ("tags CROSS JOIN jobs ON id = job", "job", ["job"])
            conditions = ["tags.owner = \(parameter(owner))", "tag = \(parameter(tag))"]
            tests = [Self.isListed]
        } else {
            (table, id, places) = ("jobs INDEXED BY jobs_listed", "id", ["id"])
            conditions = [Self.isListed, "owner = \(parameter(owner))", "state = \(parameter(state?.code))"]
        }
        let (first, last) = (filter.ids?.lowerBound, filter.ids?.upperBound)
        let (begin, end) = isOldestFirst ? (first, last) : (last, first)
        // Of two bounds on the same side, SQLite may begin at the wider one.
        if let after = filter.after, begin.map({ isOldestFirst ? $0 <= after : $0 >= after }) ?? true {
            conditions.append("\(id) \(isBehind) \(parameter(after))")
        } else if let begin {
            conditions.append("\(id) \(isBehind)= \(parameter(begin))")
        }
        if let end { conditions.append("\(id) \(isOldestFirst ? "<" : ">")= \(parameter(end))") }
        if let queue = filter.queue { tests.append("queue = \(parameter(queue))") }
        if let source = filter.source { tests.append("source = \(parameter(Int(source.code)))") }
        if let key = filter.key { tests.append("key = \(parameter(key))") }
        if let label = filter.label { tests.append("coalesce(instr(label, \(parameter(label))), 0)") }
        if let since = filter.since { tests.append("created_at >= \(parameter(since))") }
        if let before = filter.before { tests.append("created_at < \(parameter(before))") }
        if let owner = filter.owner { tests.append("jobs.owner = \(parameter(owner))") }
        guard !filter.states.isEmpty else { return }
        // One parameter keeps the number of statements small.
        tests.append("(\(parameter(filter.states.reduce(0) { $0 | 1 << Int($1.code) })) >> state) & 1")
    }

    var sql: String {
        let order = places.map { "\($0) \(isOldestFirst ? "ASC" : "DESC")" }.joined(separator: ", ")
        return """
            SELECT \(id), \(tests.isEmpty ? "1" : tests.joined(separator: " AND ")) FROM \(table) \
            WHERE \(conditions.joined(separator: " AND ")) ORDER BY \(order)
            """
    }

    private var isBehind: String { isOldestFirst ? ">" : "<" }

    /// The parameter for a value.
    private mutating func parameter(_ value: (any Bindable)?) -> String {
        values.append(value)
        return "?\(values.count)"
    }
}
