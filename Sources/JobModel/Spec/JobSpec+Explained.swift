/// Explains a spec as it would run.
extension JobSpec {
    /// The spec with defaults filled in and links numbered.
    package var explained: JSON {
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
        let plan = terms.plan
        return .object([
            "source": json["source"].map(Self.explained), "then": Masking.masked(.array(written)),
            "links": plan.links.count.json, "queue": terms.queue.json, "priority": terms.priority.json,
            "delay": (delay ?? 0).json, "notBefore": notBefore?.json, "timeout": plan.source.timeout?.json ?? .null,
            "deadline": plan.deadline?.json ?? .null, "retry": plan.source.retry.json,
            "key": terms.key.map(Masking.masked(url:))?.json,
            "keyUntil": terms.key.map { _ in terms.keepsKey ? "removed" : "finished" }, "held": isHeld.json,
            "notify": notifies.json, "tags": terms.tags.map(Masking.masked(url:)).json,
            "label": terms.label.map(Masking.masked(url:))?.json,
            "requires": node.map { ["node": $0.json] },
        ])
    }

    /// Returns a source with the defaults of its type, credentials masked.
    private static func explained(_ source: JSON) -> JSON {
        guard var members = source.object else { return source }
        func fill(_ name: String, _ value: JSON) {
            if members[name] == nil { members[name] = value }
        }
        switch source["type"]?.string.flatMap(SourceType.init(rawValue:)) {
        case .url, .json:
            fill("method", .string(HTTPRequestSpec.method(without: members)))
            fill("accept", "success")
        case .download:
            fill("exists", "fail")
            fill("segments", 1)
            fill("remoteTime", false)
        case .upload: fill("method", members["multipart"]?.isNull == false ? "POST" : "PUT")
        case .list, .each: fill("mode", "settled")
        case .program:
            fill("arguments", [])
            fill("output", "text")
            if members["command"] != nil {
                fill("umask", "077")
                fill("progress", false)
            }
        case .error: fill("kind", JobError.Kind.invalid.rawValue.json)
        case .value, .timer, .job, nil: break
        }
        return Masking.masked(.object(members))
    }
}
