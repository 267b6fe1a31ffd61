/// Makes a child of what is stored of it: the same way in every store, and before it is stored.
extension JobSpecReader {
    /// The spec of a child that has one of its own. `queue` and `priority` are those in its row, which it may have from
    /// its parent.
    package static func child(stored spec: JSON, queue: String, priority: Int) throws(SpecError) -> JobSpec {
        try stored(spec.inheriting(queue: queue, priority: priority))
    }

    /// The spec of a child that is made of its link's template.
    package static func child(
        of template: JSON, item: JSON, index: Int, queue: String, priority: Int
    ) throws(SpecError) -> JobSpec {
        let expanded: JSON
        do { expanded = try TemplateExpansion([.item: item, .index: JSON(index)]).child(template) } catch {
            throw SpecError(JSONPointer(), error.message)
        }
        return try stored(expanded.inheriting(queue: queue, priority: priority), storedSize: item.size)
    }
}

extension JSON {
    /// A child's spec with the queue and priority that its row has, where it does not name them itself.
    fileprivate func inheriting(queue: String, priority: Int) -> JSON {
        guard var members = object else { return self }
        if members["queue"] == nil { members["queue"] = .string(queue) }
        if members["priority"] == nil, priority != 0 { members["priority"] = JSON(priority) }
        return .object(members)
    }
}

extension NewChild {
    /// The child as a job of `parent`, whose present link makes it; `spec` is what ``spec(template:)`` gave.
    ///
    /// Its id is 0 until the store gave it one.
    package func job(of parent: Job, _ spec: JobSpec) -> Job {
        let parentage = Job.Parent(
            job: parent.id, link: parent.link, index: index, depth: (parent.parent?.depth ?? 0) + 1)
        var job = Job(
            spec: spec, owner: parent.owner, parent: parentage, state: state, createdAt: createdAt,
            notBefore: notBefore,
            deadlineAt: deadlineAt)
        job.host = host
        job.isGated = isGated
        job.groups = parent.groups
        if case .invalid(let error) = body {
            job.state = .failed
            job.carried = .failure(error)
            job.finishedAt = createdAt
        }
        return job
    }

    /// The spec of the child. In place of one that is not valid stands a source that fails with the reason.
    package func spec(template: JSON?) throws(SpecError) -> JobSpec {
        switch body {
        case .item(let item):
            guard let template else { throw SpecError(JSONPointer(), "There is no template for the item.") }
            return try JobSpecReader.child(of: template, item: item, index: index, queue: queue, priority: priority)
        case .spec, .invalid:
            return try JobSpecReader.child(stored: ownSpec ?? .null, queue: queue, priority: priority)
        }
    }

    /// The spec that is stored for this child alone; nil where it is made of the template.
    package var ownSpec: JSON? {
        switch body {
        case .item: return nil
        case .spec(let json): return json.inheriting(queue: queue, priority: priority)
        case .invalid(let error):
            return JobSpec.failing(with: error).inheriting(queue: queue, priority: priority)
        }
    }

    /// The source's type as the store keeps it, to list by.
    package var storedSource: String {
        if case .invalid = body { SourceType.error.rawValue } else { source?.rawValue ?? "" }
    }
}

extension NewChild.Body {
    /// What a child with this body takes up on disk, in bytes: as much as its job says when it is read again.
    package func storedSize(queue: String, priority: Int) -> Int64 {
        switch self {
        case .item(let item): Job.rowSize + Int64(item.size)
        case .spec(let json): Job.rowSize + Int64(json.inheriting(queue: queue, priority: priority).size)
        case .invalid(let error):
            Job.rowSize + Int64(JobSpec.failing(with: error).inheriting(queue: queue, priority: priority).size)
                + Int64(Outcome.failure(error).json.size)
        }
    }
}

extension ReadyJob {
    /// The stored size beyond which a ready job is read only when its turn comes.
    package static let largestStored = Int64(largestInline) + Job.rowSize
}
