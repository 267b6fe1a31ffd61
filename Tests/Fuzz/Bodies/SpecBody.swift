import JobModel

/// A job spec, and the values of its expressions.
///
/// An input is a spec, or a schedule with one as its `spec`; the input value of its links may follow after a NUL.
package enum SpecBody {
    private static let limits: JobLimits = {
        var limits = JobLimits()
        limits.children = 50
        limits.links = 20
        limits.depth = 4
        return limits
    }()

    package static func check(_ input: [UInt8]) throws(Finding) {
        let parts = input.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
        guard let text = parts.first, let json = try? JSON(parsing: Array(text)) else { return }
        let value = parts.count > 1 ? (try? JSON(parsing: Array(parts[1]))) ?? .null : ["a": ["b", 1, "{{input}}"]]
        try check(escapingOf: json)
        try check(schedule: json)
        try check(spec: json["spec"] ?? json, value)
    }

    private static func check(spec json: JSON, _ value: JSON) throws(Finding) {
        let spec: JobSpec
        do { spec = try JobSpecReader.spec(json, limits: limits) } catch {
            return try Finding.unless(!error.reason.isEmpty, "A spec is refused without a reason.")
        }
        try check(spec, isReadAgain: json)
        for link in json["then"]?.array ?? [] { try check(link: link, value) }
        try check(source: json["source"], literal: true, value)
    }

    /// The name of a schedule makes valid keys for jobs, and its times are in order.
    private static func check(schedule json: JSON) throws(Finding) {
        if let name = json["schedule"]?.string, ScheduleKey.flaw(in: name) == nil {
            let (key, time) = (ScheduleKey(owner: 0, name: name), Timestamp(milliseconds: 0))
            let spec: JSON = ["source": ["type": "value", "value": 1]]
            var reader = JobSpecReader.ofStored()
            try Finding.unless(
                (try? reader.scheduled(spec, by: key, at: time, hasKey: true))?.terms.key == key.jobKey(at: time),
                "A schedule's job cannot have its key: \(name)")
        }
        if let text = json["calendar"]?.string {
            try CalendarBody.check(Array(text.utf8))
            if let calendar = try? CalendarExpression(text) { try check(.calendar(text, calendar, zone: "UTC")) }
        }
        if let seconds = json["every"]?.double, (0.001...315_360_000).contains(seconds) {
            try check(.every(Int64((seconds * 1000).rounded())))
        }
    }

    private static func check(_ timing: ScheduleTiming) throws(Finding) {
        let (set, start) = (Timestamp(milliseconds: 951_782_399_999), Timestamp(milliseconds: 1_743_296_399_000))
        for length in [1, 60_000, 86_400_000, 40_000_000_000] as [Int64] {
            let end = Timestamp(milliseconds: start.milliseconds + length)
            let times = timing.last(4, after: start, upTo: end, since: set, in: .utc)
            func next(_ time: Timestamp) -> Timestamp? { timing.next(after: time, since: set, in: .utc) }
            try Finding.unless(
                times.allSatisfy { start < $0 && $0 <= end }
                    && zip(times, times.dropFirst()).allSatisfy { next($0) == $1 },
                "These are no times after another: \(times)")
            let first = times.count < 4 ? next(start) : times.first
            try Finding.unless(
                times.first == first.flatMap { $0 <= end ? $0 : nil }
                    && times.last.flatMap(next).map { $0 > end } ?? true,
                "Times are missing from \(times).")
        }
    }

    /// Escaped text is expanded unchanged.
    private static func check(escapingOf json: JSON) throws(Finding) {
        do {
            let filled = try TemplateExpansion([:]).value(TemplateText.escaped(json))
            try Finding.unless(filled == json, "Escaped, it becomes \(filled).")
        } catch let error as JobError {
            throw Finding("Escaped, it cannot be filled in: \(error.message)")
        } catch let error as Finding { throw error } catch { throw Finding("\(error)") }
    }

    /// An accepted spec is written unchanged.
    private static func check(_ spec: JobSpec, isReadAgain json: JSON) throws(Finding) {
        let text = spec.text ?? spec.json.utf8
        guard let written = try? JSON(parsing: text) else {
            throw Finding("The written spec is not JSON: \(spec.json)")
        }
        try Finding.unless(written == json, "The spec is another once it is written: \(written)")
        try Finding.unless(text.count == spec.size && json.size == spec.size, "The spec's size is not \(spec.size).")
    }

    private static func check(link: JSON, _ value: JSON) throws(Finding) {
        for branch in ["then", "fail", "both", "finally"] {
            guard let step = link[branch] else { continue }
            try check(source: step["source"], literal: false, value)
            if let json = step["return"] ?? step["throw"] { _ = try filled(json, value) { try $0.value($1) } }
        }
    }

    /// A source with expanded expressions can run, or gives a reason; so do its children.
    private static func check(source json: JSON?, literal: Bool, _ value: JSON) throws(Finding) {
        guard let json,
            let source = literal ? json : try filled(json, value, { try $0.source($1) }),
            let parameters = try? SourceParameters(source, mode: literal ? .literal : .expanded, limits: limits)
        else { return }
        var children: [JSON] = []
        switch parameters {
        case .list(let list): children = list.elements
        case .each(let each, let job):
            for (index, item) in (each.elements.isEmpty ? [value] : each.elements).prefix(3).enumerated() {
                let child = try filled(job, value) { expansion, job in
                    var expansion = expansion
                    expansion.values = [.item: item, .index: JSON(index)]
                    return try expansion.child(job)
                }
                if let child { children.append(child) }
            }
        default: break
        }
        for child in children {
            var reader = JobSpecReader(limits: limits)
            guard let spec = try? reader.child(child, at: JSONPointer(), depth: 1) else { continue }
            try check(spec, isReadAgain: child)
        }
    }

    /// `json` with expanded expressions, or nil if it is rejected with a reason.
    private static func filled(
        _ json: JSON, _ value: JSON, _ fill: (TemplateExpansion, JSON) throws -> JSON
    ) throws(Finding) -> JSON? {
        let expansion = TemplateExpansion([
            .input: value, .error: ["kind": "http", "message": "It failed."], .item: value, .index: 0,
            .job: ["id": 1, "attempt": 1, "label": "a"],
        ])
        do {
            let filled = try fill(expansion, json)
            try Finding.unless(
                filled.nests(atMost: TemplateExpansion.deepest), "What is filled in nests too deep: \(json)")
            return filled
        } catch let error as JobError {
            try Finding.unless(!error.message.isEmpty, "An expression is refused without a reason: \(json)")
            return nil
        } catch let error as Finding { throw error } catch { throw Finding("\(error)") }
    }
}
