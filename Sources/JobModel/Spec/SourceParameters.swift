/// What a source does, read from its members and ready to run.
package enum SourceParameters: Sendable, Equatable {
    case url(HTTPRequestSpec)
    case download(DownloadSpec)
    case json(HTTPRequestSpec, select: JSONPointer)
    case list(ListSpec)
    case each(EachSpec)
    case value(JSON)
    case error(JobError.Kind, String)
    /// Seconds.
    case timer(Double)
    case upload(UploadSpec)
    case program(ProgramSpec)

    /// Reads the members of a source. In the mode `template` the result only shows that they fit. `isStored` says that they were
    /// accepted before as they stand here.
    package init(
        _ json: JSON, at pointer: JSONPointer = JSONPointer(["source"]), mode: MemberReader.Mode,
        isStored: Bool = false, limits: JobLimits
    ) throws(SpecError) {
        let reader = try MemberReader(json, at: pointer, mode: mode, isStored: isStored)
        guard let type = try SourceType(reader) else { throw reader.missing("type") }
        switch type {
        case .url:
            try reader.allow(HTTPRequestSpec.members)
            self = .url(try HTTPRequestSpec(reader))
        case .download:
            try reader.allow(DownloadSpec.members)
            self = .download(try DownloadSpec(reader))
        case .json:
            try reader.allow(HTTPRequestSpec.members + ["select"])
            let select = try reader.string("select") { text in
                JSONPointer(text: text) == nil ? "\"select\" must be a JSON pointer such as /assets/0/url." : nil
            }
            self = .json(try HTTPRequestSpec(reader), select: select.flatMap(JSONPointer.init(text:)) ?? JSONPointer())
        case .list:
            try reader.allow(ListSpec.members)
            self = .list(try ListSpec(reader, children: limits.children))
        case .each:
            try reader.allow(EachSpec.members)
            self = .each(try EachSpec(reader, children: limits.children))
        case .value:
            try reader.allow(["type", "value"])
            guard let value = reader.object["value"] else { throw reader.missing("value") }
            self = .value(value)
        case .error:
            try reader.allow(["type", "kind", "message"])
            self = .error(
                try Self.kind(reader), try reader.string("message", atMost: .max) ?? "The job was written to fail.")
        case .timer:
            try reader.allow(["type", "seconds"])
            guard let seconds = try reader.number("seconds", in: 0...31_622_400) else {
                throw reader.missing("seconds")
            }
            self = .timer(seconds)
        case .upload:
            try reader.allow(UploadSpec.members)
            self = .upload(try UploadSpec(reader))
        case .program:
            try reader.allow(ProgramSpec.members)
            self = .program(try ProgramSpec(reader))
        }
    }

    /// What kind of source it is.
    package var type: SourceType {
        switch self {
        case .url: .url
        case .download: .download
        case .json: .json
        case .list: .list
        case .each: .each
        case .value: .value
        case .error: .error
        case .timer: .timer
        case .upload: .upload
        case .program: .program
        }
    }

    /// Refuses expressions in the members that say which server is asked and which file is written or read, where strings are
    /// taken as they are: the braces would become part of a directory's name.
    ///
    /// What a source sends is data, which may well hold what looks like an expression.
    func refuseExpressions(at pointer: JSONPointer) throws(SpecError) {
        switch self {
        case .url(let request), .json(let request, _):
            try Self.refuseExpressions(in: request.url, at: pointer.appending("url"))
        case .download(let download):
            try Self.refuseExpressions(in: download.url, at: pointer.appending("url"))
            try Self.refuseExpressions(in: download.path, at: pointer.appending("path"))
            for (index, mirror) in download.mirrors.enumerated() {
                try Self.refuseExpressions(in: mirror, at: pointer.appending("mirrors").appending(index))
            }
        case .upload(let upload):
            try Self.refuseExpressions(in: upload.url, at: pointer.appending("url"))
            try Self.refuseExpressions(in: upload.path, at: pointer.appending("path"))
        case .list, .each, .value, .error, .timer, .program: break
        }
    }

    private static func refuseExpressions(
        in text: String, at pointer: @autoclosure () -> JSONPointer
    ) throws(SpecError) {
        guard text.holdsBrace, let expression = TemplateText.firstExpression(in: text) else {
            return
        }
        let reason =
            expression.name == .schedule
            ? "as no schedule submits this job; give the spec to schedule.set (deferctl schedule add)."
            : "as the source of the job itself is no link; move the source into a link."
        throw SpecError(
            pointer(), "The expression {{\(expression.source.echoed)}} is not filled in here, \(reason)")
    }

    /// The member `kind` of an `error` source or a `throw` step.
    static func kind(_ reader: MemberReader) throws(SpecError) -> JobError.Kind {
        let text = try reader.string("kind") { text in
            JobError.Kind(rawValue: text).isWellFormed
                ? nil : "\"kind\" must be lower-case words joined by hyphens, at most 32 characters."
        }
        return text.map(JobError.Kind.init(rawValue:)) ?? .invalid
    }
}

extension SourceType {
    /// The member `type`, which no expression can stand for.
    init?(_ reader: MemberReader) throws(SpecError) {
        let literal = try MemberReader(.object(reader.object), at: reader.pointer, isStored: reader.isStored)
        guard let type = try literal.choice("type", of: SourceType.self) else { return nil }
        self = type
    }
}

/// The kinds of source that a job or a link can have.
package enum SourceType: String, Sendable, CaseIterable {
    case url
    case download
    case json
    case list
    case each
    case value
    case error
    case timer
    case upload
    case program

    /// Whether it makes child jobs.
    package var hasChildren: Bool { self == .list || self == .each }

    /// Whether it takes its time to end when it is told to, seconds for a program that does not heed it; all else ends at once.
    package var endsLater: Bool { self == .program }

    private static let byName = Dictionary(uniqueKeysWithValues: allCases.map { ($0.rawValue, $0) })

    /// The type of this name. The look-up that Swift makes of an enum compares with each case in turn, as characters: it
    /// takes 550 instructions for each job, this one 150.
    package init?(rawValue: String) {
        guard let type = Self.byName[rawValue] else { return nil }
        self = type
    }
}
