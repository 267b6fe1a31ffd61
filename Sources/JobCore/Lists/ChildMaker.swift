import JobModel

/// Makes the children of one `list` or `each`, a few at a time, so that a large template delays nobody.
struct ChildMaker {
    enum Source {
        case list(ListSpec)
        case each(EachSpec)

        var count: Int {
            switch self {
            case .list(let list): list.jobs.count
            case .each(let each): each.items.count
            }
        }
        var mode: ListMode {
            switch self {
            case .list(let list): list.mode
            case .each(let each): each.mode
            }
        }
        var concurrency: Int? {
            switch self {
            case .list(let list): list.concurrency
            case .each(let each): each.concurrency
            }
        }
    }

    /// Bytes of specs that are expanded at once: what takes about a millisecond.
    private static let portion = 16 << 10

    let job: JobID
    /// The step of the job that this belongs to.
    let step: Int
    let link: Int
    let mode: ListMode
    let concurrency: Int?
    private let source: Source
    /// What an `each` child is made of, with what it inherits.
    let template: JSON?
    private let templateSize: Int
    private(set) var children: [NewChild] = []
    /// The children as jobs without an id, where these are small; nil for others.
    private(set) var jobs: [Job?] = []
    private var next = 0
    private(set) var bytes: Int64 = 0

    init(_ source: Source, of parent: Job, step: Int) {
        job = parent.id
        self.step = step
        link = parent.link
        mode = source.mode
        concurrency = source.concurrency
        self.source = source
        if case .each(let each) = source {
            template = Self.inheriting(each.job, from: parent)
            templateSize = each.job.size
            bytes = Int64(templateSize)
        } else {
            template = nil
            templateSize = 0
        }
        children.reserveCapacity(source.count)
    }

    var isDone: Bool { next == source.count }
    var count: Int { source.count }
    /// Whether a child has to wait for others of its list.
    var isGated: Bool { concurrency.map { $0 < source.count } ?? false }

    /// Makes the next portion of them. `queues` says whether there is a queue of a name, which was there when the list was
    /// accepted where the second argument says so.
    mutating func makeSome(
        of parent: Job, _ admission: Admission, at now: Timestamp, queues: (String, Bool) -> Bool
    ) {
        var cost = 0
        while next < source.count, cost < Self.portion {
            let (child, job) = make(next, of: parent, admission, now, queues)
            cost += 512 + (job?.spec.size ?? templateSize)
            bytes = bytes.saturatingAdding(child.size)
            children.append(child)
            jobs.append(job?.keptInWindow)
            next += 1
        }
    }

    private func make(
        _ index: Int, of parent: Job, _ admission: Admission, _ now: Timestamp, _ queues: (String, Bool) -> Bool
    ) -> (NewChild, Job?) {
        let body: NewChild.Body
        let size: Int
        switch source {
        case .list(let list):
            let written = Self.inheriting(list.jobs[index], from: parent)
            body = .spec(written)
            size = written.size
        case .each(let each):
            body = .item(each.items[index])
            size = each.items[index].size
        }
        do throws(JobError) {
            let spec = try spec(body, index: index, of: parent, admission)
            // What stands in the spec of a child may come out of an expression, which nobody has checked.
            let isAccepted = parent.parent == nil && parent.writtenChild(index)?["queue"]?.string == spec.queue
            guard queues(spec.queue, isAccepted) else {
                throw JobError(
                    .invalid, "There is no queue \"\(spec.queue)\" for child \(index); make it or name another.")
            }
            var job = Job(
                submitting: spec, owner: parent.owner, parent: parent.parentage(ofChild: index),
                deadline: parent.deadlineAt, at: now)
            job.host = ConcurrencyKey(hostlessStepOf: job)?.name ?? admission.host(of: spec)
            job.isGated = isGated
            job.groups = parent.groups
            return (
                NewChild(
                    index: index, body: body, queue: spec.queue, priority: spec.priority, source: spec.source.type,
                    state: job.state, createdAt: now, notBefore: job.notBefore, deadlineAt: job.deadlineAt,
                    host: job.host, tags: spec.tags, isGated: isGated,
                    size: Int64(size) + Job.rowSize + parent.groupsSize), job
            )
        } catch {
            return (
                NewChild(
                    index: index, body: .invalid(error), queue: parent.spec.queue, priority: parent.spec.priority,
                    source: nil, state: .failed, createdAt: now,
                    size: NewChild.Body.invalid(error).storedSize(
                        queue: parent.spec.queue, priority: parent.spec.priority) + parent.groupsSize), nil
            )
        }
    }

    private func spec(
        _ body: NewChild.Body, index: Int, of parent: Job, _ admission: Admission
    ) throws(JobError) -> JobSpec {
        switch body {
        case .spec(let written): return try admission.child(written, index: index, of: parent)
        case .item(let item):
            let expanded = try TemplateExpansion([.item: item, .index: JSON(index)]).child(template ?? .null)
            return try admission.child(expanded, index: index, of: parent, storedSize: item.size)
        case .invalid(let error): throw error
        }
    }

    /// A child's spec with what it inherits.
    private static func inheriting(_ json: JSON, from parent: Job) -> JSON {
        guard var members = json.object else { return json }
        if members["queue"] == nil { members["queue"] = .string(parent.spec.queue) }
        if members["priority"] == nil, parent.spec.priority != 0 { members["priority"] = JSON(parent.spec.priority) }
        return .object(members)
    }
}

extension Job {
    /// Where a child that its present link makes belongs.
    func parentage(ofChild index: Int) -> Parent {
        Parent(job: id, link: link, index: index, depth: (parent?.depth ?? 0) + 1)
    }
}
