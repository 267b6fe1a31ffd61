/// A source's parameters, read from its members and ready to run.
package enum SourceParameters: Sendable, Equatable {
    case url(HTTPRequestSpec)
    case download(DownloadSpec)
    case json(HTTPRequestSpec, select: JSONPointer)
    case list(ListSpec)
    case each(ListSpec, job: JSON)
    case value(JSON)
    case error(JobError.Kind, String)
    /// Seconds.
    case timer(Double)
    case upload(UploadSpec)
    case program(ProgramSpec)
    case job(JobID)

    /// Whether another attempt does no harm: not so for POST, PATCH and programs. An expression can be any method.
    func isIdempotent(_ source: MemberReader) -> Bool {
        if case .program = self { return false }
        guard let method = source.value("method")?.string else {
            return source.object["json"] == nil && source.value("multipart") == nil
        }
        return !["POST", "PATCH"].contains(method.uppercased()) && !TemplateText.hasExpression(method)
    }

    /// Reads the members of a source; in the mode `template` the result only shows that they fit.
    package init(
        _ json: JSON, at pointer: JSONPointer = JSONPointer(["source"]), mode: MemberReader.Mode, limits: JobLimits
    ) throws(SpecError) {
        let reader = try MemberReader(json, at: pointer, mode: mode)
        try self.init(Self.type(reader), reader, limits)
    }

    static func type(_ reader: MemberReader) throws(SpecError) -> SourceType {
        if let type: SourceType = try reader.choice("type") { return type }
        throw reader.isOpen("type")
            ? reader.fault("type", "\"type\" cannot be an expression.") : reader.missing("type")
    }

    init(_ type: SourceType, _ reader: MemberReader, _ limits: JobLimits) throws(SpecError) {
        switch type {
        case .url:
            try reader.allow(HTTPRequestSpec.members)
            self = .url(try HTTPRequestSpec(reader))
        case .download:
            try reader.allow(DownloadSpec.members)
            self = .download(try DownloadSpec(reader))
        case .json:
            try reader.allow(HTTPRequestSpec.members + ["select"])
            let select = try reader.parsed(
                "select", "\"select\" must be a JSON pointer such as /assets/0/url.", by: JSONPointer.init(text:))
            self = .json(try HTTPRequestSpec(reader), select: select ?? JSONPointer())
        case .list:
            try reader.allow(["type", "jobs", "mode", "concurrency"])
            self = .list(try ListSpec(reader, "jobs", atMost: limits.children))
        case .each:
            try reader.allow(["type", "in", "job", "mode", "concurrency"])
            let items = try ListSpec(reader, "in", atMost: limits.children)
            guard let job = reader.value("job") else { throw reader.missing("job") }
            self = .each(items, job: job)
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
        case .job:
            try reader.allow(["type", "job"])
            guard let job = try reader.integer("job", in: 1...Int.max) else { throw reader.missing("job") }
            self = .job(JobID(job))
        }
    }

    /// Refuses expressions in members that name a server or a file, where strings are literal: the braces would become
    /// part of a directory's name.
    ///
    /// Data that a source sends may look like an expression.
    static func refuseExpressions(in source: MemberReader) throws(SpecError) {
        func refuse(_ value: JSON?, at place: @autoclosure () -> JSONPointer) throws(SpecError) {
            guard let text = value?.string, let expression = TemplateText.expressions(in: text)?.first else { return }
            let reason =
                expression.name == .schedule
                ? "because no schedule submits this job; give the spec to schedule.set (deferctl schedule add)."
                : "because this is the job's own source; move it into a link."
            throw SpecError(
                place(), "The expression {{\(expression.source.echoed)}} is not filled in here, \(reason)")
        }
        try refuse(source.value("url"), at: source.pointer(to: "url"))
        try refuse(source.value("path"), at: source.pointer(to: "path"))
        for (index, mirror) in (source.value("mirrors")?.array ?? []).enumerated() {
            try refuse(mirror, at: source.pointer(to: "mirrors").appending(index))
        }
    }

    /// Reads the member `kind` of an `error` source or a `throw` step.
    static func kind(_ reader: MemberReader) throws(SpecError) -> JobError.Kind {
        try reader.parsed(
            "kind", "\"kind\" must be lower-case words joined by hyphens, at most 32 characters.",
            by: JobError.Kind.init(wellFormed:)) ?? .invalid
    }
}

/// The types of source; stored plans have their positions in this list, so new ones go to its end.
package enum SourceType: String, Sendable, CaseIterable {
    case url, download, json, list, each, value, error, timer, upload, program, job

    /// Whether it makes child jobs.
    package var hasChildren: Bool { self == .list || self == .each }

    /// Whether it, or a child of it, may wait for another job.
    package var mayDepend: Bool { self == .job || hasChildren }

    /// Whether a stop takes time, seconds for a program that ignores it; all others end at once.
    package var endsLater: Bool { self == .program }

    /// The number that stands for it in stored plans.
    package var code: UInt8 { UInt8(Self.byCode.firstIndex(of: self) ?? 0) }

    package init?(code: UInt8) {
        guard code < Self.byCode.count else { return nil }
        self = Self.byCode[Int(code)]
    }

    private static let byCode = allCases
}
