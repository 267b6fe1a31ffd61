/// A job's id; ids count up and are never reused.
package typealias JobID = Int64

/// A job as a caller may see it; it becomes JSON when an answer is written.
package struct JobView: Sendable {
    /// Without a successful outcome, which ``result`` and ``resultSize`` describe.
    private var row: JobRow
    /// Nil for a spec that is shown by its size.
    private var spec: JSON?
    private let key: String?
    private let waitingFor: String?
    private let progress: Progress?
    /// The text of a result that may be shown.
    private var result: [UInt8]?
    private var resultSize: Int64?

    /// Creates a view of a row and its stored spec; a spec of which a part is in a file is shown by its size.
    /// `inlineResult` is the maximum size of a result that is shown, in bytes of JSON.
    package init(
        _ row: JobRow, document: NewJobRow.Document?, template: StoredValue? = nil, progress: Progress? = nil,
        waitingFor: String? = nil, inlineResult: Int = JobLimits().inlineResult
    ) {
        self.row = row
        self.progress = progress
        self.waitingFor = waitingFor ?? row.waitingFor
        switch (document, template) {
        case (.spec(let text), _): spec = JSON(stored: text)
        case (.item(.inline(let item)), .inline(let template)?):
            let values: [TemplateText.Name: JSON] = [.item: JSON(stored: item), .index: JSON(row.parent?.index ?? 0)]
            spec = try? TemplateExpansion(values).child(JSON(stored: template))
        default: spec = nil
        }
        let members = spec.flatMap { try? MemberReader($0, at: JSONPointer(), mode: .expanded) }
        // A child's row has no key, as it is only shown.
        key = (try? members?.string("key")) ?? row.key
        guard case .success(let value) = row.carried else { return }
        self.row.carried = nil
        guard row.state == .succeeded else { return }
        resultSize = value.size
        if case .inline(let text) = value, text.count <= inlineResult { result = text }
    }

    /// Returns the job object as JSON text: as much of `detail` as fits into `room` bytes, but at least the least.
    package func text(_ detail: JobDetail, within room: Int) -> [UInt8] {
        var text = text(detail)
        for less in JobDetail.allCases where less > detail && text.count > room { text = self.text(less) }
        return text
    }

    /// The job object of the wire contract, credentials masked. Each member is written at once: an object of all of them
    /// would take twice as long.
    private func text(_ detail: JobDetail) -> [UInt8] {
        let hasTexts = detail < .least
        let longestSpec = detail < .brief ? .max : hasTexts ? JobDetail.longestBriefSpec : 0
        let source = row.specSize <= longestSpec ? spec?["source"] : nil
        var links = source == nil ? nil : spec?["then"]
        if links?.isNull == true { links = nil }
        let tags = hasTexts && !row.tags.isEmpty ? row.tags : nil
        let result = detail < .noResult ? result : nil
        let mostOutcomes = detail == .whole ? .max : hasTexts ? JobDetail.mostOutcomes : 0
        let outcomes = row.outcomes.suffix(mostOutcomes).map { outcome in
            var outcome = outcome
            if detail >= .noCauses { outcome.error = outcome.error?.withoutCauses }
            return Masking.masked(outcome.json)
        }
        func shown(_ text: String?) -> JSON? { hasTexts ? text.map { Masking.masked(url: $0).json } : nil }
        var writer = JSONWriter(reservingCapacity: 768 + (result?.count ?? 0))
        writer.member("job", row.id.json)
        writer.member("state", row.state.rawValue.json)
        writer.member("specSize", (source == nil ? row.specSize : nil)?.json)
        writer.member("source", source.map { Masking.masked(row.rate.map($0.limited(to:)) ?? $0) })
        writer.member("then", links.map(Masking.masked))
        writer.member("queue", (hasTexts ? row.queue : row.queue.shortened(to: 64)).json)
        writer.member("priority", row.priority.json)
        writer.member("key", shown(key))
        writer.member(
            "keyUntil", key == nil || row.terms.keepsKey ? JSON?.none : JobSpec.KeyUntil.finished.rawValue.json)
        writer.member("tags", tags?.map { Masking.masked(url: $0) }.json)
        writer.member("label", shown(row.label))
        writer.member("notify", row.notifies ? JSON.bool(true) : JSON?.none)
        writer.member("node", hasTexts ? row.node?.json : nil)
        writer.member("owner", Int(row.owner).json)
        writer.member("parent", row.parent?.job.json)
        writer.member("children", (row.children > 0 ? row.children : nil)?.json)
        writer.member("createdAt", row.createdAt.json)
        writer.member("notBefore", row.notBefore?.json)
        writer.member("startedAt", row.startedAt?.json)
        writer.member("finishedAt", row.finishedAt?.json)
        writer.member("waitingFor", waitingFor?.json)
        writer.member("attempt", row.attempt.json)
        writer.member("restarts", (row.restarts > 0 ? row.restarts : nil)?.json)
        writer.member("link", row.link.json)
        writer.member("links", row.plan.links.count.json)
        writer.member("url", hasTexts ? row.url?.json : nil)
        writer.member("progress", hasTexts ? progress?.json : nil)
        if let result { writer.member("result", text: result) }
        writer.member("resultSize", result == nil ? resultSize?.json : nil)
        writer.member("error", error.map { Masking.masked(hasTexts ? $0.json : $0.firstSentence.json) })
        writer.member("outcomes", .array(outcomes))
        writer.raw("}")
        return writer.bytes
    }

    /// Returns the job object.
    package func json(_ detail: JobDetail = .whole) -> JSON { JSON(stored: text(detail)) }

    /// The failure of a job that ended, or the reason for another attempt.
    private var error: JobError? {
        row.state.isTerminal ? row.carried?.error : row.state == .scheduled ? row.lastFailure : nil
    }
}

extension JobRow {
    /// What it waits for, as far as its row says.
    fileprivate var waitingFor: String? {
        switch (state, waiting) {
        case (.held, _): "release"
        case (.scheduled, _): lastFailure?.postponed == nil ? "time" : "room"
        case (.queued, .gate), (.queued, .suspect), (.queued, .cleaning), (.queued, .nothing): "slot"
        case (.running, .children): "children"
        case (.running, .timer), (.running, .timeout): "time"
        case (.running, .job): "job"
        default: nil
        }
    }
}

extension JSON {
    /// Returns the source with the rate of its job: 0 for no limit.
    fileprivate func limited(to rate: Int) -> JSON {
        guard var source = object, self["type"] == "download" else { return self }
        source["rate"] = rate > 0 ? JSON(rate) : JSON?.none
        return .object(source)
    }
}

extension JobError {
    /// The error in few bytes.
    fileprivate var firstSentence: JobError {
        var error = withoutCauses
        error.failuresOmitted = nil
        error.http = nil
        error.message = error.message.shortened(to: 96)
        return error
    }
}
