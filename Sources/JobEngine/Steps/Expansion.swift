import JobModel
import JobCore

/// Expands the present step of a job: reads its spec and input, fills in expressions, and checks policy. Blocks.
struct Expansion: Sendable {
    enum Result: Sendable {
        /// The core decides what follows: the run needs nothing more here.
        case event(RunEvent)
        case list(ChildMaker)
        case transfer(Transfer)
    }

    /// A source to start.
    struct Transfer: Sendable {
        let order: RunOrder
        let parameters: SourceParameters
        let host: String?
        /// The URL that it asks for, if expressions made it.
        let url: String?
        /// The connections that it can use.
        let connections: Int
        let checkpoint: JSON?
    }

    let order: RunOrder
    let engine: Engine

    private var row: JobRow { order.job }

    func run() throws(JobError) -> Result {
        let spec = try spec()
        guard let (action, written) = step(in: spec) else {
            throw JobError(.internal, "Link \(row.link) has no step; this is a defect of the daemon.")
        }
        switch action {
        case "return": return try ended(try expansion().value(written))
        case "throw": throw Self.error(try expansion().value(written))
        default: break
        }
        let source = row.link == 0 ? written : try expansion().source(written)
        let (parameters, host) = try engine.admission.parameters(source, written: written, owner: row.owner)
        switch parameters {
        case .value(let value): return try ended(value)
        case .error(let kind, let message): throw JobError(kind, message)
        case .timer(let seconds): return .event(.timer(seconds))
        case .job(let job): return .event(.job(job))
        case .list(let list): return .list(try ChildMaker(list, job: nil, written, of: row, engine))
        case .each(let items, let job): return .list(try ChildMaker(items, job: job, written, of: row, engine))
        default:
            if case .program(let program) = parameters, row.node == nil,
                let node = engine.admission.otherNode(for: program, of: row.id)
            {
                return .event(.elsewhere(node: node))
            }
            var connections = 1
            if case .download(let download) = parameters { connections = max(1, download.segments) }
            return .transfer(
                Transfer(
                    order: order, parameters: parameters, host: host, url: url(of: source, written),
                    connections: connections, checkpoint: try checkpoint()))
        }
    }

    private func ended(_ value: JSON) throws(JobError) -> Result {
        .event(.ended(RunEnd(.success(try engine.stored(value.utf8, room: order.room)))))
    }

    /// The longest URL that is kept, in bytes.
    private static let longestURL = 1024

    private func url(of source: JSON, _ written: JSON) -> String? {
        guard let url = source["url"]?.string, row.parent != nil || url != written["url"]?.string else { return nil }
        return Masking.masked(log: url).shortened(to: Self.longestURL)
    }

    private func checkpoint() throws(JobError) -> JSON? {
        guard order.mayResume else { return nil }
        return try engine.read("Job \(row.id)") { (reader) throws(StoreError) in
            try reader.checkpoint(of: row.id, link: row.link).map(JSON.init(stored:))
        }
    }

    // MARK: - The step

    private func spec() throws(JobError) -> JSON {
        let document = if let given = order.document { given } else { try stored().document }
        switch document {
        case .spec(let text): return try engine.value(of: .inline(text))
        case .item(let item): return try child(of: item)
        }
    }

    private func stored() throws(JobError) -> StoredJob {
        let stored = try engine.read("Job \(row.id)") { (reader) throws(StoreError) in try reader.job(row.id) }
        guard let stored else { throw JobError(.storage, "Job \(row.id) is gone.") }
        return stored
    }

    private func child(of item: StoredValue) throws(JobError) -> JSON {
        guard let parent = row.parent else {
            throw JobError(.internal, "Job \(row.id) has no parent; this is a defect of the daemon.")
        }
        let template = try engine.templates.template(parent.list) { () throws(JobError) in
            guard let template = try stored().template else {
                throw JobError(.storage, "The list of job \(parent.job) has lost its template; retry that job.")
            }
            return (try engine.value(of: template), template.size)
        }
        let values: [TemplateText.Name: JSON] = [.item: try engine.value(of: item), .index: JSON(parent.index)]
        return try TemplateExpansion(values).child(template.part(ofLink: row.link))
    }

    /// The action of the present link as it was written.
    private func step(in spec: JSON) -> (action: String, written: JSON)? {
        guard row.link > 0 else { return spec["source"].map { ("source", $0) } }
        let link = spec["then"]?[row.link - 1]
        for branch in [row.carried?.error == nil ? "then" : "fail", "both", "finally"] {
            for action in ["source", "return", "throw"] {
                // Null is a value that a step can return.
                if let written = link?[branch]?[action], action == "return" || !written.isNull {
                    return (action, written)
                }
            }
        }
        return nil
    }

    // MARK: - Expressions

    private func expansion() throws(JobError) -> TemplateExpansion {
        var about = JSONObject()
        about.append("id", JSON(Int(row.id)))
        about.append("attempt", JSON(row.attempt))
        about.append("label", row.label.map(JSON.string) ?? .null)
        if row.isAtFinally { about.append("outcome", .string(row.outcomeSoFar.rawValue)) }
        var values: [TemplateText.Name: JSON] = [.job: .object(about), .input: .null, .error: .null]
        switch row.carried {
        case .success(let stored): values[.input] = try engine.value(of: stored)
        case .failure(let error): values[.error] = error.json
        case nil: break
        }
        return TemplateExpansion(values, budget: engine.limits.composedValues)
    }

    private static func error(_ written: JSON) -> JobError {
        let kind = JobError.Kind(rawValue: written["kind"]?.string ?? JobError.Kind.invalid.rawValue)
        guard kind.isWellFormed else {
            return JobError(
                .template, "\"\(kind.rawValue.echoed)\" is not an error kind; use lower-case words joined by hyphens.")
        }
        return JobError(kind, written["message"].map { $0.string ?? $0.description } ?? "")
    }
}
