import JobModel

/// A list uses one index, that of the narrowest condition: the parent, the tag, or else owner, queue, state and source
/// together. With the last one each combination that exists is queried by itself, since only within a combination are the
/// jobs in the order of their ids; so too each owner of a tag.
extension Snapshot {
    mutating func page(_ filter: JobFilter) throws(StoreError) -> SnapshotPage {
        var page = SnapshotPage(limit: filter.limit)
        if let parent = filter.parent, try isHidden(parent) { return page }
        var filter = filter
        // More are read in place of damaged jobs, so that a short page is always the last one.
        while page.mayGrow {
            let wanted = filter.limit - page.jobs.count
            let ids = try ids(filter, wanted)
            for id in ids where page.mayGrow {
                if let job = try job(id) { page.append(job) }
            }
            guard ids.count == wanted, let last = ids.last else { break }
            filter.after = last
        }
        return page
    }

    /// The ids of the first `limit` jobs that a filter asks for.
    private func ids(_ filter: JobFilter, _ limit: Int) throws(StoreError) -> [JobID] {
        if filter.parent != nil { return try ids(Selection(childrenOf: filter), limit) }
        var selections: [Selection] = []
        if filter.tag != nil {
            for owner in try owners(filter) { selections.append(Selection(tagged: filter, owner: owner)) }
        } else {
            for kind in try kinds(filter) { selections.append(Selection(filter, kind)) }
        }
        var found: [JobID] = []
        for var selection in selections {
            // Only what comes before the last one found so far can be among the first.
            if found.count == limit, let last = found.last { selection.limit(before: last) }
            found += try ids(selection, limit)
            found.sort { filter.order == .oldest ? $0 < $1 : $0 > $1 }
            found.removeLast(max(0, found.count - limit))
        }
        return found
    }

    private func ids(_ selection: Selection, _ limit: Int) throws(StoreError) -> [JobID] {
        let select = try connection.statement(selection.sql)
        for (index, value) in selection.values.enumerated() {
            switch value {
            case .number(let number): select.bind(number, at: Int32(index) + 1)
            case .text(let text): select.bind(text, at: Int32(index) + 1)
            }
        }
        return try select.rows(atMost: limit) { row throws(StoreError) in row.integer(0) }
    }

    /// The owner that a filter asks for, or all who have jobs with tags.
    private func owners(_ filter: JobFilter) throws(StoreError) -> [Int64] {
        if let owner = filter.owner { return [Int64(owner)] }
        let next = try connection.statement("SELECT min(owner) FROM tags WHERE owner > ?1")
        var owners: [Int64] = []
        while true {
            next.bind(owners.last ?? -1, at: 1)
            guard let owner = try next.row({ row throws(StoreError) in row.optionalInteger(0) }) else { return owners }
            owners.append(owner)
        }
    }

    /// The combinations that exist among root jobs and fit the filter.
    private func kinds(_ filter: JobFilter) throws(StoreError) -> [Kind] {
        var kinds: [Kind] = []
        let fixed = filter.owner == nil ? 0 : 1
        var last = filter.owner.map { Kind(owner: Int64($0), queue: "", state: -1, source: -2) }
        while let kind = try kind(after: last, fixed: fixed) {
            if kind.fits(filter) { kinds.append(kind) }
            last = kind
        }
        return kinds
    }

    /// The combination behind `last` whose first `fixed` members are the same: one step in the index for each, however
    /// many jobs are in between.
    private func kind(after last: Kind?, fixed: Int) throws(StoreError) -> Kind? {
        func read(_ row: PreparedStatement) throws(StoreError) -> Kind? { Kind(row) }
        guard let last else { return try connection.statement(Kind.first).row(read) }
        for same in (fixed..<Kind.columns.count).reversed() {
            let next = try connection.statement(Kind.next[same])
            next.bind(last.owner, at: 1)
            if same > 0 { next.bind(last.queue, at: 2) }
            if same > 1 { next.bind(last.state, at: 3) }
            if same > 2 { next.bind(last.source, at: 4) }
            if let kind = try next.row(read) { return kind }
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
}

extension Kind {
    static let columns = ["owner", "queue", "state", "source"]
    static let isListed = "parent IS NULL AND removing = 0"

    /// The query for the first combination.
    static let first = query("")

    /// The queries for the next one of which the first 0, 1, .. members are the same.
    static let next = columns.indices.map { same in
        query(
            columns[...same].enumerated().map { index, column in
                " AND \(column) \(index < same ? "=" : ">") ?\(index + 1)"
            }.joined())
    }

    private static func query(_ conditions: String) -> String {
        let columns = columns.joined(separator: ", ")
        return """
            SELECT \(columns) FROM jobs INDEXED BY jobs_by_kind WHERE \(isListed)\(conditions) ORDER BY \(columns) LIMIT 1
            """
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

/// A query for the ids of jobs in order, with what is to be bound to it.
private struct Selection {
    enum Value {
        case number(Int64)
        case text(String)
    }

    private(set) var values: [Value] = []
    private var conditions: [String] = []
    private let table: String
    private let id: String
    private let order: JobFilter.Order

    var sql: String {
        """
        SELECT \(id) FROM \(table) WHERE \(conditions.joined(separator: " AND ")) \
        ORDER BY \(id) \(order == .oldest ? "ASC" : "DESC")
        """
    }

    private init(_ table: String, _ id: String, _ filter: JobFilter) {
        self.table = table
        self.id = id
        order = filter.order
    }

    /// The root jobs of one kind.
    init(_ filter: JobFilter, _ kind: Kind) {
        self.init("jobs INDEXED BY jobs_by_kind", "id", filter)
        conditions.append(Kind.isListed)
        add("owner =", .number(kind.owner))
        add("queue =", .text(kind.queue))
        add("state =", .number(kind.state))
        add("source =", .number(kind.source))
        add(after: filter)
    }

    init(childrenOf filter: JobFilter) {
        self.init("jobs INDEXED BY jobs_by_parent", "id", filter)
        add("parent =", .number(filter.parent ?? 0))
        conditions.append("removing = 0")
        if let tag = filter.tag {
            values.append(.text(tag))
            conditions.append(
                "EXISTS (SELECT 1 FROM tags WHERE owner = jobs.owner AND tag = ?\(values.count) AND job = id)")
        }
        add(others: filter)
    }

    /// The root jobs of an owner with a tag.
    init(tagged filter: JobFilter, owner: Int64) {
        self.init("tags CROSS JOIN jobs ON id = job", "job", filter)
        add("tags.owner =", .number(owner))
        add("tag =", .text(filter.tag ?? ""))
        conditions.append(Kind.isListed)
        add(others: filter)
    }

    private mutating func add(others filter: JobFilter) {
        if let queue = filter.queue { add("queue =", .text(queue)) }
        if let source = filter.source { add("source =", .number(Int64(source.code))) }
        if let owner = filter.owner { add("jobs.owner =", .number(Int64(owner))) }
        if !filter.states.isEmpty {
            let codes = filter.states.map(\.code).sorted().map(String.init).joined(separator: ", ")
            conditions.append("state IN (\(codes))")
        }
        add(after: filter)
    }

    /// Leaves out what does not come before `job`.
    mutating func limit(before job: JobID) {
        add("\(id) \(order == .oldest ? "<" : ">")", .number(job))
    }

    private mutating func add(after filter: JobFilter) {
        guard let after = filter.after else { return }
        add("\(id) \(filter.order == .oldest ? ">" : "<")", .number(after))
    }

    private mutating func add(_ condition: String, _ value: Value) {
        values.append(value)
        conditions.append("\(condition) ?\(values.count)")
    }
}
