import JobModel

extension Timestamp {
    /// A time `seconds` after one that all tests share.
    static func after(_ seconds: Double) -> Timestamp {
        Timestamp(milliseconds: 1_790_000_000_000).adding(seconds: seconds)
    }
}

/// A row with its spec, for a view.
@dynamicMemberLookup
struct ExampleJob {
    var row: JobRow
    let spec: JobSpec

    init(
        id: JobID = 7, spec: JobSpec, owner: UInt32 = 1000, state: JobState = .queued, createdAt: Timestamp = .after(0),
        parent: JobID? = nil
    ) {
        row = JobRow(
            id: id, owner: owner, groups: nil,
            parent: parent.map { JobRow.Parent(job: $0, link: 0, list: 1, index: 0, depth: 1) }, terms: spec.terms,
            specSize: spec.size, createdAt: createdAt, state: state)
        self.spec = spec
    }

    subscript<Value>(dynamicMember member: WritableKeyPath<JobRow, Value>) -> Value {
        get { row[keyPath: member] }
        set { row[keyPath: member] = newValue }
    }

    func view(progress: Progress? = nil, inlineResult: Int = JobLimits().inlineResult) -> JobView {
        JobView(row, document: .spec(spec.json.utf8), progress: progress, inlineResult: inlineResult)
    }

    /// The whole job object.
    func json(progress: Progress? = nil) -> JSON { view(progress: progress).json() }

    /// A job with these links that begins with a source of the type `value`.
    static func chain(_ links: String = "", _ members: String = "", _ state: JobState = .queued) throws -> ExampleJob {
        ExampleJob(spec: try .chain(links, members), state: state)
    }
}

extension Carried {
    /// A short value.
    static func value(_ json: JSON) -> Carried { .success(.inline(json.utf8)) }
}
