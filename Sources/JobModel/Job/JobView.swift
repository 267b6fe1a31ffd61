/// A job as a caller may see it; it becomes JSON when an answer is written.
package struct JobView: Sendable {
    package let job: Job
    /// The progress of a running job.
    package let progress: Progress?
    /// The maximum size of a result that is shown, in bytes of JSON.
    package let inlineResult: Int
    private let links: Int
    /// The size of a result that is not kept.
    private var droppedResult: Int?

    package init(_ job: Job, progress: Progress? = nil, inlineResult: Int = JobLimits().inlineResult) {
        self.job = job
        self.progress = progress
        self.inlineResult = inlineResult
        links = job.spec.links.count
        droppedResult = job.storedResult
    }

    private init(_ job: Job, of view: JobView, droppedResult: Int?) {
        self.job = job
        progress = view.progress
        inlineResult = view.inlineResult
        links = view.links
        self.droppedResult = droppedResult
    }

    /// Returns the view without the parts that ``JobDetail/brief`` never shows, so that very many take little memory.
    /// A short result is kept if `results` bytes are left for it.
    package func brief(results: inout Int) -> JobView {
        var job = job
        if job.spec.size > JobDetail.longestBriefSpec { job.spec = job.spec.withoutSteps }
        job.outcomes = job.outcomes.suffix(JobDetail.briefOutcomes).map { outcome in
            var outcome = outcome
            outcome.error = outcome.error?.brief
            return outcome
        }
        job.lastFailure = job.lastFailure?.brief
        var dropped = droppedResult
        switch job.carried {
        case .failure(let error): job.carried = .failure(error.brief)
        case .success(let result) where job.state == .succeeded:
            let size = result.size
            if dropped == nil, size <= min(inlineResult, results) {
                results -= size
            } else {
                dropped = dropped ?? size
                job.carried = .success(.null)
            }
        default: job.carried = nil
        }
        return JobView(job, of: self, droppedResult: dropped)
    }

    /// Returns the job object as JSON text: as much of `detail` as fits into `room` bytes, but at least the least.
    package func text(_ detail: JobDetail, within room: Int) -> [UInt8] {
        var text = json(detail).utf8
        for lesser in detail.lesser where text.count > room { text = json(lesser).utf8 }
        return text
    }

    /// Returns the job object of the wire contract, credentials masked.
    package func json(_ detail: JobDetail = .whole) -> JSON {
        let spec = job.spec
        var object = JSONObject()
        object.append("job", JSON(Int(job.id)))
        object.append("state", .string(job.state.rawValue))
        if !spec.isPresent || detail.spec.map({ spec.size > $0 }) ?? false {
            object.append("specSize", JSON(spec.size))
        } else {
            if case .source(let source) = spec.source.action { object.append("source", Masking.masked(source)) }
            if let links = spec.json["then"], !links.isNull { object.append("then", Masking.masked(links)) }
        }
        object.append("queue", .string(detail.hasTexts ? spec.queue : spec.queue.shortened(to: 64)))
        object.append("priority", JSON(spec.priority))
        if detail.hasTexts {
            object.append("key", ifPresent: spec.key.map(Self.shown))
            if !spec.tags.isEmpty { object.append("tags", .array(spec.tags.map(Self.shown))) }
            object.append("label", ifPresent: spec.label.map(Self.shown))
        }
        object.append("owner", JSON(Int(job.owner)))
        object.append("parent", ifPresent: job.parent.map { JSON(Int($0)) })
        if job.children > 0 { object.append("children", JSON(job.children)) }
        object.append("createdAt", .string(job.createdAt.description))
        object.append("notBefore", ifPresent: job.notBefore.map { .string($0.description) })
        object.append("startedAt", ifPresent: job.startedAt.map { .string($0.description) })
        object.append("finishedAt", ifPresent: job.finishedAt.map { .string($0.description) })
        object.append("attempt", JSON(job.attempt))
        object.append("link", JSON(job.link))
        object.append("links", JSON(links))
        object.append("progress", ifPresent: detail.hasTexts ? progress?.json : nil)
        appendEnd(to: &object, detail)
        let outcomes = job.outcomes.suffix(detail.outcomes ?? job.outcomes.count)
        object.append(
            "outcomes",
            .array(
                outcomes.map { outcome in
                    var outcome = outcome
                    if !detail.hasCauses { outcome.error = outcome.error?.withoutCauses }
                    return Masking.masked(outcome.json)
                }))
        return .object(object)
    }

    /// Appends the outcome, or the reason for another attempt.
    private func appendEnd(to object: inout JSONObject, _ detail: JobDetail) {
        func append(_ error: JobError) {
            object.append("error", Masking.masked(detail.hasTexts ? error.json : error.firstSentence.json))
        }
        if job.state.isTerminal {
            switch job.carried {
            case .success(let result) where job.state == .succeeded:
                let size = droppedResult ?? result.size
                if droppedResult == nil, detail.hasResult, size <= inlineResult {
                    object.append("result", result)
                } else {
                    object.append("resultSize", JSON(size))
                }
            case .failure(let error): append(error)
            default: break
            }
        } else if job.state == .scheduled, let error = job.lastFailure {
            append(error)
        }
    }

    private static func shown(_ text: String) -> JSON { .string(Masking.masked(url: text)) }
}

extension JobError {
    /// The error without its causes if these are large.
    fileprivate var brief: JobError {
        let isPlain = self.failures == nil && self.cause == nil
        return isPlain || json.size <= 16 << 10 ? self : withoutCauses
    }

    /// The error in few bytes.
    fileprivate var firstSentence: JobError {
        var error = withoutCauses
        error.failuresOmitted = nil
        error.http = nil
        error.message = error.message.shortened(to: 96)
        return error
    }
}
