import JobModel
import JobCore

/// Makes the children of one `list` or `each`, some hundred at a time. Blocks if a text is long.
struct ChildMaker: Sendable {
    /// Children that are made at once, and bytes of their documents.
    private static let portion = (children: 256, bytes: 512 << 10)

    let opening: ListOpening
    private let elements: [JSON]
    /// The spec of each child of an `each`, with expressions; nil for a `list`.
    private let template: JSON?
    /// The source as it was accepted.
    private let written: JSON
    /// Without its values.
    private let parent: JobRow
    private let engine: Engine

    /// `job` is the spec that an `each` has for all of its items; the elements of a `list` are specs themselves.
    init(
        _ list: ListSpec, each job: JSON? = nil, _ written: JSON, of row: JobRow, _ engine: Engine
    ) throws(JobError) {
        (elements, self.written, self.engine) = (list.elements, written, engine)
        template = job?.inheriting(queue: row.queue, priority: row.priority)
        opening = ListOpening(
            mode: list.mode, concurrency: list.concurrency, total: list.elements.count,
            template: try template.map { (template) throws(JobError) in try engine.stored(template.utf8) })
        var parent = row
        (parent.carried, parent.outcomes, parent.failedLink) = (nil, [], nil)
        self.parent = parent
    }

    /// The next children from an index on.
    func children(from index: Int) -> RunEvent {
        var made: [NewChildRow] = []
        var bytes: Int64 = 0
        var next = max(0, index)
        while next < opening.total, made.count < Self.portion.children, bytes < Self.portion.bytes {
            let child = child(next)
            bytes += child.document.size
            made.append(child)
            next += 1
        }
        return .children(made, isLast: next >= opening.total)
    }

    private func child(_ index: Int) -> NewChildRow {
        do throws(JobError) {
            let json: JSON
            let document: NewJobRow.Document
            if let template {
                json = try TemplateExpansion([.item: elements[index], .index: JSON(index)]).child(template)
                document = .item(try engine.stored(elements[index].utf8))
            } else {
                json = elements[index].inheriting(queue: parent.queue, priority: parent.priority)
                document = .spec(json.utf8)
            }
            let accepted = written["job"] ?? written["jobs"]?[index]
            let admitted = try engine.admission.child(
                json, index: index, depth: (parent.parent?.depth ?? 0) + 1, owner: parent.owner, written: accepted)
            let spec = admitted.spec
            // A queue that an expression names was not checked before; one that the spec of a root job names was.
            let isAccepted = parent.parent == nil && accepted?["queue"]?.string == spec.queue
            guard spec.queue == parent.queue || isAccepted || engine.takesJobs(spec.queue) else {
                throw JobError(
                    .invalid, "There is no queue \"\(spec.queue)\" for child \(index); make it or name another.")
            }
            return NewChildRow(
                index: index, body: .job(NewJob.Terms(spec, host: admitted.host, isChild: true)), document: document,
                specSize: spec.size)
        } catch {
            let failing = JobSpec.failing(with: error).inheriting(queue: parent.queue, priority: parent.priority)
            return NewChildRow(index: index, body: .invalid(error), document: .spec(failing.utf8))
        }
    }
}
