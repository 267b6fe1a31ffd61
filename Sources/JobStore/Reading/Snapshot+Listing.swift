import JobModel

/// A list merges selections, each in the order of ids in its index: the children of a job, the root jobs of each owner with
/// a tag, or those of each owner in each state.
extension Snapshot {
    /// Jobs of one selection that are tested in one snapshot.
    private static let mostLookedAt = 4_000

    /// Adds the first jobs that a filter selects; returns the last one that was tested, nil if there are no more.
    mutating func fill(_ page: inout SnapshotPage, _ filter: JobFilter) throws(StoreError) -> JobID? {
        if let parent = filter.parent, try isHidden(parent) { return nil }
        var found: [JobID] = []
        var end: JobID?
        func comesBefore(_ left: JobID, _ right: JobID) -> Bool {
            filter.order == .oldest ? left < right : left > right
        }
        for var selection in try selections(filter) {
            // Jobs behind it are for the next snapshot.
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
        let table = filter.tag == nil ? "jobs WHERE \(Selection.isListed) AND" : "tags WHERE"
        var owners = filter.owner.map { [Int64($0)] } ?? []
        if owners.isEmpty { owners = try connection.distinct("SELECT min(owner) FROM \(table) owner > ?1") }
        return owners.flatMap { owner in
            if filter.tag != nil { return [Selection(tagged: filter, owner: owner)] }
            let states = JobState.allCases.filter { filter.states.isEmpty || filter.states.contains($0) }
            return states.map { Selection(filter, owner: owner, state: $0) }
        }
    }

    /// The first `limit` jobs that fit, and the last one that was tested if there may be more.
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
    private let order: JobFilter.Order
    /// The columns that order the index.
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

    /// The root jobs of an owner in a state.
    init(_ filter: JobFilter, owner: Int64, state: JobState) {
        self.init("jobs INDEXED BY jobs_listed", "id", filter)
        conditions = [Self.isListed, "owner = \(parameter(owner))", "state = \(parameter(state.code))"]
        if let after = filter.after { conditions.append("id \(isBehind) \(parameter(after))") }
        test(filter)
    }

    /// The children of a job, whose ids are in the order of their lists and indexes.
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
        tests = [Self.isListed]
        test(filter)
    }

    private mutating func test(_ filter: JobFilter) {
        if let queue = filter.queue { tests.append("queue = \(parameter(queue))") }
        if let source = filter.source { tests.append("source = \(parameter(Int(source.code)))") }
        if let owner = filter.owner { tests.append("jobs.owner = \(parameter(owner))") }
        guard !filter.states.isEmpty else { return }
        // One parameter keeps the number of statements small.
        tests.append("(\(parameter(filter.states.reduce(0) { $0 | 1 << Int($1.code) })) >> state) & 1")
    }

    /// Leaves out the jobs behind `job`.
    mutating func limit(to job: JobID) {
        conditions.append("\(id) \(order == .oldest ? "<=" : ">=") \(parameter(job))")
    }

    private var isBehind: String { order == .oldest ? ">" : "<" }

    /// The parameter for a value.
    private mutating func parameter(_ value: (any Bindable)?) -> String {
        values.append(value)
        return "?\(values.count)"
    }
}
