import JobModel
import JobCore

/// Reads from specs what the engine needs: the step of an order, and the children of a list.
enum SpecReading {
    enum Action {
        case source(JSON)
        case `return`([UInt8])
        case `throw`
    }

    static func step(of order: RunOrder) -> Action? {
        guard case .spec(let text)? = order.document, let spec = try? JSON(parsing: text) else { return nil }
        let job = order.job
        guard job.link > 0 else { return spec["source"].map(Action.source) }
        guard let links = spec["then"]?.array, links.indices.contains(job.link - 1) else { return nil }
        let link = links[job.link - 1]
        let names = job.carried?.error == nil ? ["then", "both", "finally"] : ["fail", "both", "finally"]
        guard let step = names.lazy.compactMap({ link[$0] }).first else { return nil }
        if let source = step["source"] { return .source(source) }
        if let value = step["return"] { return .return(value.utf8) }
        return step["throw"] == nil ? nil : .throw
    }

    static func child(_ source: JSON, _ index: Int, of parent: JobRow, _ limits: JobLimits) -> NewChildRow {
        let written: JSON
        if let jobs = source["jobs"]?.array {
            written = jobs[index]
        } else {
            let item = source["in"]?.array?[index] ?? .null
            guard
                let expanded = try? TemplateExpansion([.item: item, .index: JSON(index)]).child(source["job"] ?? .null)
            else { return invalid(index, "Its expression finds nothing.") }
            written = expanded
        }
        do {
            var reader = JobSpecReader(limits: limits)
            let spec = try reader.child(
                written.inheriting(queue: parent.queue, priority: parent.priority), at: JSONPointer(),
                depth: (parent.parent?.depth ?? 0) + 1)
            guard spec.terms.queue != "no such queue" else { return invalid(index, "There is no such queue.") }
            return NewChildRow(
                index: index, terms: .success(NewJob.Terms(spec, host: host(of: spec))),
                document: .spec(spec.json.utf8))
        } catch {
            return invalid(index, error.reason)
        }
    }

    private static func invalid(_ index: Int, _ reason: String) -> NewChildRow {
        let error = JobError(.invalid, reason)
        return NewChildRow(index: index, terms: .failure(error), document: .spec(JobSpec.failing(with: error).utf8))
    }

    /// Returns the host of a spec's own source, if known.
    static func host(of spec: JobSpec) -> String? {
        spec.json["source"]?["url"]?.string.flatMap(Scenario.host)
    }

    /// Returns a job as a server would submit it; nil if the server would refuse its spec.
    static func job(_ json: JSON, _ limits: JobLimits, _ subscription: SubscriptionID? = nil) -> NewJob? {
        var reader = JobSpecReader(limits: limits)
        guard let spec = try? reader.spec(json), let text = spec.text else { return nil }
        var immediate: Carried?
        if spec.terms.plan.source.source == .value, let source = spec.json["source"] {
            immediate = .success(.inline(source["value"]?.utf8 ?? []))
        }
        return NewJob(
            terms: NewJob.Terms(spec, host: host(of: spec)), document: .spec(text),
            digest: spec.terms.key == nil ? 0 : digest(text), immediate: immediate, jobs: reader.jobs,
            uploads: reader.uploads, subscription: subscription)
    }

    private static func digest(_ text: [UInt8]) -> UInt64 {
        text.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }
}
