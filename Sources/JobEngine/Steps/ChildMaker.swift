import JobModel
import JobCore

/// Makes the children of one `list` or `each`, some hundred at a time. Blocks if a text is long.
struct ChildMaker: Sendable {
    /// Children that are made at once, and bytes of their documents.
    private static let portion = (children: 256, bytes: 512 << 10)

    let list: ListRow
    /// The specs of a `list`, or the items of an `each`.
    private let elements: [JSON]
    /// Of an `each`.
    private let template: Template?
    /// The source as it was accepted.
    private let written: JSON
    /// Without its values.
    private let parent: JobRow
    private let engine: Engine

    /// `job` is the template of an `each`.
    init(_ spec: ListSpec, job: JSON?, _ written: JSON, of row: JobRow, _ engine: Engine) throws(JobError) {
        let job = job?.inheriting(queue: row.queue, priority: row.priority)
        list = ListRow(
            job: row.id, link: row.link, mode: spec.mode, concurrency: spec.concurrency, total: spec.elements.count,
            template: try job.map { (job) throws(JobError) in try engine.stored(job.utf8) })
        elements = spec.elements
        template = job.map(Template.init)
        var parent = row
        (parent.carried, parent.outcomes, parent.failedLink) = (nil, [], nil)
        (self.written, self.parent, self.engine) = (written, parent, engine)
    }

    /// The next children from an index on, and why the document of one could not be stored.
    func children(from index: Int) -> (result: Expansion.Result, obstacle: JobError?) {
        var made: [NewChildRow] = []
        var obstacle: JobError?
        var bytes: Int64 = 0
        var next = max(0, index)
        while next < list.total, made.count < Self.portion.children, bytes < Self.portion.bytes {
            let child = child(next)
            if case .failure(let error) = child.terms, error.kind == .storage { obstacle = error }
            bytes += child.document.size
            made.append(child)
            next += 1
        }
        return (.event(.children(made, isLast: next >= list.total)), obstacle)
    }

    private func child(_ index: Int) -> NewChildRow {
        do throws(JobError) {
            let admitted: Admission.Admitted
            let document: NewJobRow.Document
            var left = 0
            let accepted = written["job"] ?? written["jobs"]?[index]
            func admit(_ json: JSON) throws(JobError) -> Admission.Admitted {
                try engine.admission.child(
                    json, index: index, isOfTemplate: template != nil, depth: (parent.parent?.depth ?? 0) + 1,
                    owner: parent.owner, written: accepted)
            }
            if let template {
                document = .item(try engine.stored(elements[index].utf8))
                let expansion = TemplateExpansion([.item: elements[index], .index: JSON(index)])
                // The first child is checked whole, others only if their short form is refused.
                if index > 0, let short = try? admit(expansion.child(template.short)) {
                    admitted = short
                    left = template.left
                } else {
                    admitted = try admit(expansion.child(template.whole))
                }
            } else {
                let json = elements[index].inheriting(queue: parent.queue, priority: parent.priority)
                document = .spec(json.utf8)
                admitted = try admit(json)
            }
            let spec = admitted.spec
            // A queue that an expression names was not checked before; one that the spec of a root job names was.
            let queue = spec.terms.queue
            let isAccepted = parent.parent == nil && accepted?["queue"]?.string?.hasSameBytes(as: queue) == true
            func isOpen(_ known: QueueStatus) -> Bool { known.takesJobs && known.settings.name.hasSameBytes(as: queue) }
            guard isAccepted || queue.hasSameBytes(as: parent.queue) || engine.status.queues.contains(where: isOpen)
            else {
                throw JobError(
                    .invalid, "There is no queue \"\(queue)\" for child \(index); make it or name another.")
            }
            return NewChildRow(
                index: index, terms: .success(NewJob.Terms(spec, host: admitted.host)), document: document,
                specSize: spec.size + left)
        } catch {
            let failing = JobSpec.failing(with: error).inheriting(queue: parent.queue, priority: parent.priority)
            return NewChildRow(index: index, terms: .failure(error), document: .spec(failing.utf8))
        }
    }
}
