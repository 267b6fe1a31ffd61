package import JobModel

/// Showing a spec as it would run.
extension JobEngine {
    /// The spec with defaults filled in and links numbered.
    package func explain(_ spec: JobSpec) throws(EngineError) -> JSON {
        guard queues[spec.queue] != nil else {
            throw EngineError(.invalid(JSONPointer(["queue"])), "There is no queue \"\(spec.queue)\".")
        }
        var object = JSONObject()
        if case .source(let source) = spec.source.action { object.append("source", Self.explained(source)) }
        let links = (spec.json["then"]?.array ?? []).enumerated().map { index, link -> JSON in
            guard var members = link.object else { return link }
            members["link"] = JSON(index + 1)
            return .object(
                members.mapValues { member in
                    guard var step = member.value.object, let source = step["source"] else { return member.value }
                    step["source"] = Self.explained(source)
                    return .object(step)
                })
        }
        object.append("then", Masking.masked(.array(links)))
        object.append("links", JSON(spec.links.count))
        object.append("queue", .string(spec.queue))
        object.append("priority", JSON(spec.priority))
        object.append("delay", JSON(spec.delay ?? 0))
        object.append("notBefore", ifPresent: spec.notBefore.map { .string($0.description) })
        object.append("timeout", spec.timeout.map { JSON($0) } ?? .null)
        object.append("deadline", spec.deadline.map { JSON($0) } ?? .null)
        object.append("retry", spec.retryPolicy(of: spec.source).json)
        object.append("key", ifPresent: spec.key.map(JSON.string))
        object.append("tags", .array(spec.tags.map(JSON.string)))
        object.append("label", ifPresent: spec.label.map(JSON.string))
        return .object(object)
    }

    /// A source with the defaults of its type, credentials masked.
    private static func explained(_ source: JSON) -> JSON {
        guard var members = source.object else { return source }
        func fill(_ name: String, _ value: JSON) {
            if members[name] == nil { members[name] = value }
        }
        switch source["type"]?.string.flatMap(SourceType.init(rawValue:)) {
        case .url, .json:
            fill("method", "GET")
            fill("accept", "success")
        case .download: fill("exists", "fail")
        case .list, .each: fill("mode", "settled")
        case .value, .error, .timer, nil: break
        }
        return Masking.masked(.object(members))
    }
}
