/// What is known, before a run, of a value that a pointer refers to.
package enum ResultShape: Sendable, Equatable {
    /// Nothing is known.
    case unknown
    /// An object with at most these members, whose values are unknown.
    case members(Set<String>)
    /// An array of elements of this shape.
    indirect case elements(ResultShape)
    /// A value written in the spec itself.
    case literal(JSON)

    /// The shape of a link's incoming error.
    static let error = ResultShape.members([
        "kind", "message", "retryable", "link", "attempts", "http", "program", "failures", "failuresOmitted", "cause",
        "job", "index",
    ])
    /// The shape of the value of `job`.
    static let job = ResultShape.members(["id", "attempt", "label"])

    private static let response = ResultShape.members([
        "status", "headers", "mediaType", "size", "notModified", "body", "encoding", "spilled",
    ])
    private static let download = ResultShape.members([
        "path", "size", "status", "etag", "lastModified", "sha256", "resumedFrom", "attempts", "url",
    ])
    private static let upload = ResultShape.members(["status", "headers", "size", "sha256", "attempts", "url"])

    /// Returns whether a value of this shape may have something at `pointer`.
    func admits(_ pointer: JSONPointer, _ search: inout PointerSearch) -> Bool {
        guard let token = pointer.tokens.first else { return true }
        let rest = JSONPointer(Array(pointer.tokens.dropFirst()))
        switch self {
        case .unknown: return true
        case .members(let names): return names.contains(token)
        case .elements(let element):
            return Int(token).map { $0 >= 0 && String($0) == token } == true && element.admits(rest, &search)
        case .literal(let value): return search.value(at: pointer, in: value) != nil
        }
    }

    /// Creates the shape of a source's result; `source` is not expanded.
    init(of type: SourceType, _ source: JSON) {
        switch type {
        case .url: self = Self.response
        case .download: self = Self.download
        case .upload: self = Self.upload
        case .json, .error, .program: self = .unknown
        case .value: self = Self.literalUnlessOpen(source["value"] ?? .null)
        case .timer: self = .literal(.null)
        case .list, .each:
            switch source["mode"]?.string {
            case nil, "settled": self = .elements(.members(["ok", "value", "error"]))
            case "all": self = .elements(.unknown)
            case "first": self = .members(["index", "value"])
            default: self = .unknown
            }
        }
    }

    /// Creates the shape of a step's result.
    init(of step: Step) {
        switch step.action {
        case .source(let source): self = step.type.map { ResultShape(of: $0, source) } ?? .unknown
        case .return(let value): self = Self.literalUnlessOpen(value)
        case .throw: self = .unknown
        }
    }

    /// Creates the shape of a link's successful result, given the shape of its input.
    init(after link: Link, _ incoming: ResultShape) {
        switch link {
        case .finally: self = incoming
        case .both(let step): self = ResultShape(of: step)
        case .pair(let then, let fail, _):
            let success = then.map(ResultShape.init(of:)) ?? incoming
            // Not compared with itself: that would sort the members of a long literal once per link.
            guard let fail else {
                self = success
                return
            }
            self = success == ResultShape(of: fail) ? success : .unknown
        }
    }

    private static func literalUnlessOpen(_ value: JSON) -> ResultShape {
        hasExpression(value) ? .unknown : .literal(value)
    }

    private static func hasExpression(_ value: JSON) -> Bool {
        switch value {
        case .string(let text): TemplateText.hasExpression(text) || text.utf8.contains(UInt8(ascii: "\\"))
        case .array(let elements): elements.contains(where: hasExpression)
        case .object(let object): object.members.contains { hasExpression($0.value) }
        default: false
        }
    }
}
