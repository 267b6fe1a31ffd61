import JobModel

/// Explains a spec as it would run.
extension JobSpec {
    /// The spec with defaults filled in and links numbered.
    var explained: JSON {
        var object = JSONObject()
        object.append("source", ifPresent: json["source"].map(Self.explained))
        let written = (json["then"]?.array ?? []).enumerated().map { index, link -> JSON in
            guard var members = link.object else { return link }
            members["link"] = JSON(index + 1)
            return .object(
                members.mapValues { member in
                    guard var step = member.value.object, let source = step["source"] else { return member.value }
                    step["source"] = Self.explained(source)
                    return .object(step)
                })
        }
        object.append("then", Masking.masked(.array(written)))
        object.append("links", JSON(plan.links.count))
        object.append("queue", .string(queue))
        object.append("priority", JSON(priority))
        object.append("delay", JSON(delay ?? 0))
        object.append("notBefore", ifPresent: notBefore.map { .string($0.description) })
        object.append("timeout", timeout.map { JSON($0) } ?? .null)
        object.append("deadline", plan.deadline.map { JSON($0) } ?? .null)
        object.append("retry", plan.source.retry.json)
        object.append("key", ifPresent: key.map(JSON.string))
        object.append("tags", .array(tags.map(JSON.string)))
        object.append("label", ifPresent: label.map(JSON.string))
        return .object(object)
    }

    /// Returns a source with the defaults of its type, credentials masked.
    private static func explained(_ source: JSON) -> JSON {
        guard var members = source.object else { return source }
        func fill(_ name: String, _ value: JSON) {
            if members[name] == nil { members[name] = value }
        }
        switch source["type"]?.string.flatMap(SourceType.init(rawValue:)) {
        case .url, .json:
            fill("method", "GET")
            fill("accept", "success")
        case .download:
            fill("exists", "fail")
            fill("segments", 1)
        case .upload: fill("method", "PUT")
        case .list, .each: fill("mode", "settled")
        case .program: fill("arguments", [])
        case .value, .error, .timer, .job, nil: break
        }
        return Masking.masked(.object(members))
    }
}
