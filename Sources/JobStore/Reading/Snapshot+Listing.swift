import JobModel

/// A list uses one index, that of the narrowest condition: the parent, the tag, or else owner, queue, state and source
/// together. With the last one each combination that exists is queried by itself, since only within a combination are the
/// jobs in the order of their ids; so too each owner of a tag.
extension Snapshot {
    /// The jobs that are looked at for one selection in one snapshot.
    private static let mostLookedAt = 4_000

    /// Adds the first jobs that a filter asks for; gives the last one that was looked at, nil where there are no more.
    mutating func fill(_ page: inout SnapshotPage, _ filter: JobFilter) throws(StoreError) -> JobID? {
        if let parent = filter.parent, try isHidden(parent) { return nil }
        var found: [JobID] = []
        var end: JobID?
        func comesBefore(_ left: JobID, _ right: JobID) -> Bool {
            filter.order == .oldest ? left < right : left > right
        }
        for var selection in try selections(filter) {
            // What comes behind is for the next time.
            if let end { selection.limit(to: end) }
            let (ids, last) = try look(selection, page.left)
            if let last { end = last }
            found += ids
            found.sort(by: comesBefore)
            if let end { found.removeAll { comesBefore(end, $0) } }
            if found.count > page.left {
                found.removeLast(found.count - page.left)
                end = found.last
            }
        }
        try add(found, to: &page)
        return end
    }

    private func selections(_ filter: JobFilter) throws(StoreError) -> [Selection] {
        if filter.parent != nil { return [Selection(childrenOf: filter)] }
        guard filter.tag != nil else { return try kinds(filter).map { Selection(filter, $0) } }
        var owners = filter.owner.map { [Int64($0)] } ?? []
        if owners.isEmpty { owners = try connection.distinct("SELECT min(owner) FROM tags WHERE owner > ?1") }
        return owners.map { Selection(tagged: filter, owner: $0) }
    }

    /// The first `limit` jobs that fit, and the last one that was looked at where there may be more.
    private func look(_ selection: Selection, _ limit: Int) throws(StoreError) -> (ids: [JobID], last: JobID?) {
        let select = try connection.statement(selection.sql, selection.values)
        defer { select.reset() }
        var ids: [JobID] = []
        var count = 0
        while try select.step() {
            if select.integer(1) != 0 { ids.append(select.integer(0)) }
            count += 1
            if ids.count == limit || count == Self.mostLookedAt { return (ids, select.integer(0)) }
        }
        return (ids, nil)
    }

    /// The combinations that exist among root jobs and fit the filter.
    private func kinds(_ filter: JobFilter) throws(StoreError) -> [Kind] {
        var kinds: [Kind] = []
        let fixed = filter.owner == nil ? 0 : 1
        var last = Kind(owner: filter.owner.map(Int64.init) ?? -1, queue: "", state: -1, source: -2)
        while let kind = try kind(after: last, fixed: fixed) {
            if kind.fits(filter) { kinds.append(kind) }
            last = kind
        }
        return kinds
    }

    /// The combination behind `last` whose first `fixed` members are the same: one step in the index for each, however
    /// many jobs are in between.
    private func kind(after last: Kind, fixed: Int) throws(StoreError) -> Kind? {
        for same in (fixed..<Kind.columns.count).reversed() {
            let next = try connection.statement(Kind.next[same], Array(last.values.prefix(same + 1)))
            if let kind = try next.row({ row throws(StoreError) in Kind(row) }) { return kind }
        }
        return nil
    }
}

/// One combination of what `jobs_by_kind` is ordered by.
private struct Kind {
    let owner: Int64
    let queue: String
    let state: Int64
    let source: Int64

    var values: [(any Bindable)?] { [owner, queue, state, source] }
}

extension Kind {
    static let columns = ["owner", "queue", "state", "source"]
    static let isListed = "parent IS NULL AND removing = 0"

    /// The queries for the next combination of which the first 0, 1, .. members are the same.
    static let next = columns.indices.map { same in
        let conditions = columns[...same].enumerated().map { index, column in
            " AND \(column) \(index < same ? "=" : ">") ?\(index + 1)"
        }
        let columns = columns.joined(separator: ", ")
        return "SELECT \(columns) FROM jobs INDEXED BY jobs_by_kind WHERE \(isListed)\(conditions.joined()) "
            + "ORDER BY \(columns) LIMIT 1"
    }

    init(_ row: PreparedStatement) {
        self.init(
            owner: row.integer(0), queue: row.text(1) ?? "", state: row.integer(2), source: row.integer(3))
    }

    func fits(_ filter: JobFilter) -> Bool {
        (filter.states.isEmpty || filter.states.contains { $0.code == state })
            && (filter.queue == nil || filter.queue == queue)
            && (filter.source == nil || filter.source.map { Int64($0.code) } == source)
    }
}

/// A query for ids of jobs in order, each with whether the job fits.
private struct Selection {
    private(set) var values: [(any Bindable)?] = []
    /// What an index finds.
    private var conditions: [String] = []
    /// What is looked at in each row.
    private var tests: [String] = []
    private let table: String
    private let id: String
    private let order: JobFilter.Order
    /// What the index is ordered by.
    private let places: [String]

    var sql: String {
        let direction = order == .oldest ? "ASC" : "DESC"
        return """
            SELECT \(id), \(tests.isEmpty ? "1" : tests.joined(separator: " AND ")) FROM \(table) \
            WHERE \(conditions.joined(separator: " AND ")) ORDER BY \(places.map { "\($0) \(direction)" }.joined(separator: ", "))
            """
    }

    private init(_ table: String, _ id: String, _ filter: JobFilter, orderedBy places: [String]? = nil) {
        self.table = table
        self.id = id
        self.places = places ?? [id]
        order = filter.order
    }

    /// The root jobs of one kind.
    init(_ filter: JobFilter, _ kind: Kind) {
        self.init("jobs INDEXED BY jobs_by_kind", "id", filter)
        conditions = [Kind.isListed] + zip(Kind.columns, kind.values).map { "\($0) = \(parameter($1))" }
        if let after = filter.after { conditions.append("id \(isBehind) \(parameter(after))") }
    }

    /// Children are made in the order of their lists and indexes, so that is the order of their ids.
    init(childrenOf filter: JobFilter) {
        self.init("jobs INDEXED BY jobs_by_parent", "id", filter, orderedBy: ["list", "parent_index"])
        let parent = parameter(filter.parent)
        conditions = ["parent = \(parent)"]
        tests = ["removing = 0"]
        if let after = filter.after {
            let last = parameter(after)
            // The job may be gone.
            let place = places.map { column in
                "coalesce((SELECT \(column) FROM jobs WHERE id = \(last) AND parent = \(parent)), "
                    + "\(order == .oldest ? -1 : Int64.max))"
            }
            conditions.append("(list, parent_index) \(isBehind) (\(place.joined(separator: ", ")))")
            conditions.append("id \(isBehind) \(last)")
        }
        if let tag = filter.tag {
            tests.append(
                "EXISTS (SELECT 1 FROM tags WHERE owner = jobs.owner AND tag = \(parameter(tag)) AND job = id)")
        }
        test(filter)
    }

    /// The root jobs of an owner with a tag.
    init(tagged filter: JobFilter, owner: Int64) {
        self.init("tags CROSS JOIN jobs ON id = job", "job", filter)
        conditions = ["tags.owner = \(parameter(owner))", "tag = \(parameter(filter.tag))"]
        if let after = filter.after { conditions.append("job \(isBehind) \(parameter(after))") }
        tests = [Kind.isListed]
        test(filter)
    }

    private mutating func test(_ filter: JobFilter) {
        if let queue = filter.queue { tests.append("queue = \(parameter(queue))") }
        if let source = filter.source { tests.append("source = \(parameter(Int(source.code)))") }
        if let owner = filter.owner { tests.append("jobs.owner = \(parameter(owner))") }
        guard !filter.states.isEmpty else { return }
        // One parameter, so that statements are few.
        tests.append("(\(parameter(filter.states.reduce(0) { $0 | 1 << Int($1.code) })) >> state) & 1")
    }

    /// Leaves out what comes behind `job`.
    mutating func limit(to job: JobID) {
        conditions.append("\(id) \(order == .oldest ? "<=" : ">=") \(parameter(job))")
    }

    private var isBehind: String { order == .oldest ? ">" : "<" }

    /// A parameter for a value.
    private mutating func parameter(_ value: (any Bindable)?) -> String {
        values.append(value)
        return "?\(values.count)"
    }
}
