import GRDB
import JobModel

/// A list uses one index, that of the narrowest condition: the parent, the tag, or else owner, queue, state and source
/// together. With the last one each combination that exists is queried by itself, since only within a combination are
/// the jobs in the order of their ids.
extension Reader {
    func page(_ filter: JobFilter) throws -> StoredJobPage {
        var filter = filter
        var page = StoredJobPage(limit: filter.limit)
        let select = try statement(JobRow.select)
        // More are read in place of unreadable jobs, so that a short page is always the last one.
        while page.mayGrow {
            let wanted = filter.limit - page.jobs.count
            let ids = try numbers(filter, wanted)
            for id in ids where page.mayGrow {
                if let job = try legibleJob(id, select, withLongResult: false) { page.append(job) }
            }
            guard ids.count == wanted, let last = ids.last else { break }
            filter.after = last
        }
        return page
    }

    /// The ids of the first `limit` jobs that `filter` asks for.
    private func numbers(_ filter: JobFilter, _ limit: Int) throws -> [JobID] {
        if filter.parent != nil || filter.tag != nil { return try numbers(Selection(filter), limit) }
        var found: [JobID] = []
        for kind in try kinds(filter) {
            // Only what comes before the last one found so far can be among the first.
            var selection = Selection(filter, kind)
            if found.count == limit, let last = found.last { selection.limit(before: last, filter.order) }
            found += try numbers(selection, limit)
            found.sort { filter.order == .oldest ? $0 < $1 : $0 > $1 }
            found.removeLast(max(0, found.count - limit))
        }
        return found
    }

    private func numbers(_ selection: Selection, _ limit: Int) throws -> [JobID] {
        let statement = try statement(selection.sql)
        for (index, value) in selection.values.enumerated() {
            switch value {
            case .number(let number): statement.bind(number, at: Int32(index) + 1)
            case .text(let text): statement.bind(text, at: Int32(index) + 1)
            }
        }
        return try statement.rows(atMost: limit) { $0.integer(0) }
    }

    /// The combinations that exist among root jobs and fit the filter.
    private func kinds(_ filter: JobFilter) throws -> [Kind] {
        try kinds(owner: filter.owner).filter { kind in
            !kind.isChild && (filter.states.isEmpty || filter.states.contains { $0.code == kind.state })
                && (filter.queue == nil || filter.queue == kind.queue)
                && (filter.source == nil || filter.source?.rawValue == kind.source)
        }
    }

    /// The combinations that exist, of all jobs or of those of one owner.
    func kinds(owner: UInt32? = nil) throws -> [Kind] {
        var kinds: [Kind] = []
        let fixed = owner == nil ? 0 : 1
        var last = owner.map { Kind(owner: Int64($0), queue: "", state: 0, isChild: false, source: "") }
        while let kind = try kind(after: last, fixed: fixed) {
            kinds.append(kind)
            last = kind
        }
        return kinds
    }

    /// The combination behind `last` whose first `fixed` members are the same: one step in the index for each, however
    /// many jobs are in between.
    private func kind(after last: Kind?, fixed: Int) throws -> Kind? {
        guard let last else { return try statement(Kind.first).row(Kind.init) }
        for same in (fixed..<Kind.columns.count).reversed() {
            let next = try statement(Kind.next[same])
            next.bind(last.owner, at: 1)
            if same > 0 { next.bind(last.queue, at: 2) }
            if same > 1 { next.bind(last.state, at: 3) }
            if same > 2 { next.bind(last.isChild ? 1 : 0, at: 4) }
            if same > 3 { next.bind(last.source, at: 5) }
            if let kind = try next.row(Kind.init) { return kind }
        }
        return nil
    }

    /// The jobs that were running when the last daemon ended, by id.
    func interrupted() throws -> [JobID] {
        try kinds().filter { $0.state == JobState.running.code }
            .flatMap { kind in try numbers(Selection(JobFilter(), kind), .max) }.sorted()
    }
}

/// One combination of what `jobs_by_kind` is ordered by.
struct Kind {
    var owner: Int64
    var queue: String
    var state: Int64
    var isChild: Bool
    var source: String
}

extension Kind {
    static let columns = ["owner", "queue", "state", "is_child", "source"]

    /// The query for the first combination.
    static let first = """
        SELECT \(columns.joined(separator: ", ")) FROM jobs INDEXED BY jobs_by_kind \
        ORDER BY \(columns.joined(separator: ", ")) LIMIT 1
        """

    /// The queries for the next one of which the first 0, 1, .. members are the same.
    static let next = columns.indices.map { same in
        let conditions = columns[...same].enumerated().map { index, column in
            "\(column) \(index < same ? "=" : ">") ?\(index + 1)"
        }
        return first.replacing(" ORDER", with: " WHERE \(conditions.joined(separator: " AND ")) ORDER")
    }

    init(_ row: PreparedStatement) {
        self.init(
            owner: row.integer(0), queue: row.text(1) ?? "", state: row.integer(2), isChild: row.integer(3) != 0,
            source: row.text(4) ?? "")
    }
}

/// A query for the ids of jobs in order, with what is to be bound to it.
struct Selection {
    enum Value {
        case number(Int64)
        case text(String)
    }

    private(set) var values: [Value] = []
    private var conditions: [String] = []
    private let table: String
    private let number: String
    private let order: JobFilter.Order

    var sql: String {
        """
        SELECT \(number) FROM \(table) WHERE \(conditions.joined(separator: " AND ")) \
        ORDER BY \(number) \(order == .oldest ? "ASC" : "DESC")
        """
    }

    /// The jobs of one kind.
    init(_ filter: JobFilter, _ kind: Kind) {
        table = "jobs INDEXED BY jobs_by_kind"
        number = "id"
        order = filter.order
        add("owner =", .number(kind.owner))
        add("queue =", .text(kind.queue))
        add("state =", .number(kind.state))
        add("is_child =", .number(kind.isChild ? 1 : 0))
        add("source =", .text(kind.source))
        add(after: filter)
    }

    /// The children of a parent, or the root jobs with a tag.
    init(_ filter: JobFilter) {
        order = filter.order
        if let parent = filter.parent {
            table = "jobs INDEXED BY jobs_by_parent"
            number = "id"
            add("parent =", .number(parent))
            if let tag = filter.tag {
                values.append(.text(tag))
                conditions.append("EXISTS (SELECT 1 FROM tags WHERE job = id AND tag = ?\(values.count))")
            }
        } else {
            let index = filter.owner == nil ? "tags_by_tag" : "tags_by_owner"
            table = "tags INDEXED BY \(index) CROSS JOIN jobs ON id = job"
            number = "job"
            if let owner = filter.owner { add("tags.owner =", .number(Int64(owner))) }
            add("tag =", .text(filter.tag ?? ""))
            conditions.append("is_child = 0")
        }
        if let queue = filter.queue { add("queue =", .text(queue)) }
        if let source = filter.source { add("source =", .text(source.rawValue)) }
        if let owner = filter.owner { add("jobs.owner =", .number(Int64(owner))) }
        if !filter.states.isEmpty {
            let codes = filter.states.map(\.code).sorted().map(String.init).joined(separator: ", ")
            conditions.append("state IN (\(codes))")
        }
        add(after: filter)
    }

    /// Leaves out what does not come before `job`.
    mutating func limit(before job: JobID, _ order: JobFilter.Order) {
        add("\(number) \(order == .oldest ? "<" : ">")", .number(job))
    }

    private mutating func add(after filter: JobFilter) {
        guard let after = filter.after else { return }
        add("\(number) \(filter.order == .oldest ? ">" : "<")", .number(after))
    }

    private mutating func add(_ condition: String, _ value: Value) {
        values.append(value)
        conditions.append("\(condition) ?\(values.count)")
    }
}
