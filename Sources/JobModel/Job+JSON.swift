extension Job {
    /// The job object of the wire contract, credentials masked.
    package func json(progress: Progress? = nil) -> JSON {
        var object = JSONObject()
        object.append("job", JSON(Int(id)))
        object.append("state", .string(state.rawValue))
        if case .source(let source) = spec.source.action { object.append("source", Masking.masked(source)) }
        if let links = spec.json["then"], !links.isNull { object.append("then", Masking.masked(links)) }
        object.append("queue", .string(spec.queue))
        object.append("priority", JSON(spec.priority))
        object.append("key", ifPresent: spec.key.map(Self.shown))
        if !spec.tags.isEmpty { object.append("tags", .array(spec.tags.map(Self.shown))) }
        object.append("label", ifPresent: spec.label.map(Self.shown))
        object.append("owner", JSON(Int(owner)))
        object.append("parent", ifPresent: parent.map { JSON(Int($0.job)) })
        if children > 0 { object.append("children", JSON(children)) }
        object.append("createdAt", .string(createdAt.description))
        object.append("notBefore", ifPresent: notBefore.map { .string($0.description) })
        object.append("startedAt", ifPresent: startedAt.map { .string($0.description) })
        object.append("finishedAt", ifPresent: finishedAt.map { .string($0.description) })
        object.append("attempt", JSON(attempt))
        object.append("link", JSON(link))
        object.append("links", JSON(spec.links.count))
        object.append("progress", ifPresent: progress?.json)
        if state.isTerminal {
            switch carried {
            case .success(let result) where state == .succeeded: object.append("result", result)
            case .failure(let error): object.append("error", Masking.masked(error.json))
            default: break
            }
        } else if state == .scheduled, attempt > 0, let error = lastFailure {
            object.append("error", Masking.masked(error.json))
        }
        object.append("outcomes", .array(outcomes.map { Masking.masked($0.json) }))
        return .object(object)
    }

    private static func shown(_ text: String) -> JSON { .string(Masking.masked(url: text)) }
}
