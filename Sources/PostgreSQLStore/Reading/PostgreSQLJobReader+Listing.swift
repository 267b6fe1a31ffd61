package import JobModel
import JobStore

extension PostgreSQLJobReader {
    /// Selects all at once.
    package static func ids(
        _ filter: JobFilter, atMost limit: Int, on connection: PostgreSQLConnection
    ) throws(StoreError) -> (ids: [JobID], end: JobID?) {
        var selection = Selection(filter)
        if filter.parent == nil {
            selection.owners =
                if let owner = filter.owner { [Int64(owner)] } else { try owners(filter.tag, on: connection) }
        }
        return (try connection.rows(selection.sql, selection.parameters).numbers, nil)
    }

    /// The owners of listed jobs, or of those with a tag, each with one step in the index.
    private static func owners(_ tag: String?, on connection: PostgreSQLConnection) throws(StoreError) -> [Int64] {
        let table = tag == nil ? "jobs WHERE \(Selection.isListed) AND" : "tags WHERE"
        return try connection.rows(
            """
            WITH RECURSIVE found (owner) AS (
                SELECT min(owner) FROM \(table) owner >= 0
                UNION ALL SELECT (SELECT min(jobs.owner) FROM \(tag == nil ? "jobs" : "tags AS jobs") WHERE \
                \(tag == nil ? "\(Selection.isListed) AND" : "") jobs.owner > found.owner) FROM found \
                WHERE found.owner IS NOT NULL
            )
            SELECT owner FROM found WHERE owner IS NOT NULL
            """
        ).numbers
    }
}

/// A query for ids of jobs in order: the children of a job, or for each owner, those with a tag or in each state, each of
/// which is one range of an index.
private struct Selection {
    static let isListed = "parent IS NULL AND removing = 0"

    var owners: [Int64] = []
    private let filter: JobFilter
    private var values: [(any Bindable)?] = []
    private var conditions: [String] = []
    /// Conditions for the id `place`.
    private var range = ""

    init(_ filter: JobFilter) {
        self.filter = filter
        if let after = filter.after { range += " AND place \(isOldestFirst ? ">" : "<") \(parameter(after))" }
        if let ids = filter.ids {
            range += " AND place BETWEEN \(parameter(ids.lowerBound)) AND \(parameter(ids.upperBound))"
        }
        if let queue = filter.queue { conditions.append("queue = \(parameter(queue))") }
        if let source = filter.source { conditions.append("source = \(parameter(Int(source.code)))") }
        if let key = filter.key { conditions.append("key = \(parameter(key))") }
        if let label = filter.label { conditions.append("position(\(parameter(label)) in label) > 0") }
        if let since = filter.since { conditions.append("created_at >= \(parameter(since))") }
        if let before = filter.before { conditions.append("created_at < \(parameter(before))") }
        if let owner = filter.owner { conditions.append("jobs.owner = \(parameter(owner))") }
        if let parent = filter.parent { conditions.append("parent = \(parameter(parent)) AND removing = 0") }
        if let tag = filter.tag {
            let tag = parameter(tag)
            if filter.parent == nil {
                range += " AND tag = \(tag)"
            } else {
                conditions.append(
                    "EXISTS (SELECT 1 FROM tags WHERE tags.owner = jobs.owner AND tag = \(tag) AND job = id)")
            }
        }
        conditions.append("(\(parameter(states.reduce(0) { $0 | 1 << Int($1.code) })) >> state::int) & 1 = 1")
        values.append(filter.limit)
    }

    private var states: [JobState] {
        JobState.allCases.filter { filter.states.isEmpty || filter.states.contains($0) }
    }

    private var isOldestFirst: Bool { filter.order == .oldest }

    var sql: String {
        let (ascending, limit) = (isOldestFirst ? "ASC" : "DESC", "LIMIT $\(values.count)")
        let fit = conditions.joined(separator: " AND ")
        func range(_ id: String) -> String { self.range.replacing("place", with: id) }
        let (owners, states) = ("unnest($\(values.count + 1)::bigint[])", "unnest($\(values.count + 2)::bigint[])")
        if filter.parent != nil {
            // Their ids are in the order of their lists and indexes.
            return """
                SELECT id FROM jobs WHERE \(fit)\(range("id")) \
                ORDER BY list \(ascending), parent_index \(ascending), id \(ascending) \(limit)
                """
        }
        guard filter.tag == nil else {
            // The offset keeps the server from another order of its steps, which it cannot judge.
            return """
                SELECT found.job FROM \(owners) AS owner, LATERAL (SELECT job FROM \
                (SELECT job FROM tags WHERE owner = owner.owner\(range("job")) ORDER BY job \(ascending) OFFSET 0) AS tagged, \
                LATERAL (SELECT 1 FROM jobs WHERE id = job AND \(Self.isListed) AND \(fit) OFFSET 0) AS fits \
                ORDER BY job \(ascending) \(limit)) AS found ORDER BY job \(ascending) \(limit)
                """
        }
        return """
            SELECT id FROM \(owners) AS owner, \(states) AS state, LATERAL (\
            SELECT id FROM jobs WHERE \(Self.isListed) AND owner = owner.owner AND state = state.state AND \(fit)\
            \(range("id")) ORDER BY id \(ascending) \(limit)) AS found ORDER BY id \(ascending) \(limit)
            """
    }

    var parameters: [(any Bindable)?] {
        var parameters = values
        if filter.parent == nil { parameters.append(PostgreSQLParameter.array(owners)) }
        if filter.parent == nil, filter.tag == nil { parameters.append(PostgreSQLParameter.array(states.map(\.code))) }
        return parameters
    }

    /// The parameter for a value.
    private mutating func parameter(_ value: (any Bindable)?) -> String {
        values.append(value)
        return "$\(values.count)"
    }
}
