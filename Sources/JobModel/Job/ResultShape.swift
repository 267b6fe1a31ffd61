/// What is known, before a run, of a value that a pointer refers to.
package enum ResultShape: Sendable, Equatable {
    /// Nothing is known.
    case unknown
    /// An object with at most these members, whose values are unknown.
    case members(Set<String>)
    /// An array of elements of this shape.
    indirect case elements(ResultShape)

    /// A value without parts.
    static let scalar = ResultShape.members([])
    /// The shape of a link's incoming error.
    static let error = ResultShape.members([
        "kind", "message", "retryable", "link", "attempts", "http", "program", "failures", "failuresOmitted", "cause",
        "job", "index",
    ])
    /// The shape of the value of `job`.
    static let job = ResultShape.members(["id", "attempt", "label"])
    /// The same in a `finally` link.
    static let jobAtEnd = ResultShape.members(["id", "attempt", "label", "outcome"])

    private static let response = ResultShape.members([
        "status", "headers", "mediaType", "size", "notModified", "body", "encoding", "spilled",
    ])
    private static let download = ResultShape.members([
        "path", "size", "status", "etag", "lastModified", "sha256", "resumedFrom", "attempts", "url",
    ])
    private static let program = ResultShape.members(["exit", "output", "encoding", "size", "omitted", "spilled"])
    private static let upload = ResultShape.members([
        "status", "headers", "size", "sha256", "attempts", "url", "body", "encoding", "spilled",
    ])

    /// Returns whether a value of this shape may have something at `pointer`.
    func admits(_ pointer: ArraySlice<String>) -> Bool {
        guard let token = pointer.first else { return true }
        return switch self {
        case .unknown: true
        case .members(let names): names.contains(token)
        case .elements(let element): JSONPointer.index(token) != nil && element.admits(pointer.dropFirst())
        }
    }

    /// Creates the shape of a source's result; `source` is not expanded.
    init(of type: SourceType?, _ source: JSON) {
        switch type {
        case .url: self = Self.response
        case .download: self = Self.download
        case .upload: self = Self.upload
        case .program: self = Self.program
        case .json, .error, .job, nil: self = .unknown
        case .value: self = ResultShape(of: source["value"] ?? .null)
        case .timer: self = .scalar
        case .list, .each:
            switch source["mode"]?.string {
            case nil, "settled": self = .elements(.members(["ok", "value", "error"]))
            case "all": self = .elements(.unknown)
            case "first": self = .members(["index", "value"])
            default: self = .unknown
            }
        }
    }

    /// Creates the shape of a value that a spec gives.
    init(of value: JSON) {
        switch value {
        case .object(let object): self = .members(Set(object.names))
        case .array: self = .elements(.unknown)
        case .string(let text) where TemplateText.hasExpression(text): self = .unknown
        default: self = .scalar
        }
    }
}
