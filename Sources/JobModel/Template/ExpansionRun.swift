/// One pass over a template that expands its expressions.
struct ExpansionRun {
    /// The names to expand, and whether this is the last pass.
    struct Pass {
        var names: Set<TemplateText.Name>
        /// Whether these strings are not expanded again.
        var isLast: Bool
        var intoLinks: Pass { Pass(names: names.intersection(TemplateText.Name.reachingIntoLinks), isLast: false) }
        var intoEach: Pass { Pass(names: names.subtracting([.item, .index]), isLast: false) }
    }

    let values: [TemplateText.Name: JSON]
    /// Bytes that may still be inserted.
    var left: Int
    /// The memory that values still to be inserted may take once they are parsed again.
    var budget: Int
    var search = PointerSearch()

    mutating func source(_ json: JSON, _ pass: Pass) throws(JobError) -> JSON {
        guard let object = json.object else { return try strings(json, pass, inURL: false) }
        let type = object["type"]?.string
        return .object(
            try object.mapValues { (member) throws(JobError) in
                switch (type, member.name) {
                case ("list", "jobs"): try jobs(member.value, pass)
                case ("each", "job"): try child(member.value, pass.intoEach)
                default: try strings(member.value, pass, inURL: ["url", "mirrors"].contains(member.name))
                }
            })
    }

    private mutating func jobs(_ json: JSON, _ pass: Pass) throws(JobError) -> JSON {
        var json = json
        if case .string = json {
            // Specs from an expression are literal: nothing in them or their links is an expression.
            json = try strings(json, Pass(names: pass.names, isLast: false), inURL: false)
        }
        guard let jobs = json.array else { return json }
        return .array(try jobs.map { (job) throws(JobError) in try child(job, pass) })
    }

    /// Expands a child of a list; an invalid one becomes a child that fails, so that the others can be made.
    private mutating func child(_ json: JSON, _ pass: Pass) throws(JobError) -> JSON {
        do { return try job(json, pass) } catch {
            // A value too large for one child leaves no room for the others either.
            if error.kind == .tooLarge { throw error }
            let failing = JobSpec.failing(with: error)
            return pass.isLast ? failing : TemplateText.escaped(failing)
        }
    }

    mutating func job(_ json: JSON, _ pass: Pass) throws(JobError) -> JSON {
        guard let object = json.object else { return try strings(json, pass, inURL: false) }
        return .object(
            try object.mapValues { (member) throws(JobError) in
                switch member.name {
                case "source": return try source(member.value, pass)
                case "then":
                    guard let links = member.value.array else { return member.value }
                    return .array(try links.map { (item) throws(JobError) in try link(item, pass.intoLinks) })
                default: return try strings(member.value, pass, inURL: false)
                }
            })
    }

    private mutating func link(_ json: JSON, _ pass: Pass) throws(JobError) -> JSON {
        guard let object = json.object else { return json }
        return .object(
            try object.mapValues { (branch) throws(JobError) in
                guard let step = branch.value.object else { return branch.value }
                return .object(
                    try step.mapValues { (member) throws(JobError) in
                        member.name == "source"
                            ? try source(member.value, pass) : try strings(member.value, pass, inURL: false)
                    })
            })
    }

    mutating func strings(_ json: JSON, _ pass: Pass, inURL: Bool) throws(JobError) -> JSON {
        switch json {
        case .string(let text): return try string(text, pass, inURL: inURL)
        case .array(let elements):
            return .array(
                try elements.map { (element) throws(JobError) in try strings(element, pass, inURL: inURL) })
        case .object(let object):
            return .object(
                try object.mapValues { (member) throws(JobError) in try strings(member.value, pass, inURL: false) })
        default: return json
        }
    }

    private mutating func string(_ text: String, _ pass: Pass, inURL: Bool) throws(JobError) -> JSON {
        if !text.holdsBrace || (!pass.isLast && pass.names.isEmpty) { return .string(text) }
        let parsed: TemplateText
        do { parsed = try TemplateText(text) } catch { throw JobError(.template, error.reason) }
        if parsed.segments.count == 1, case .expression(let name, let pointer, let source) = parsed.segments[0] {
            guard pass.names.contains(name) else { return .string(text) }
            let value = try find(name, pointer, source)
            // A value inserted many times is measured each time, which takes no longer than parsing it will: both
            // bounds soon end that.
            try spend(value.size, cost: value.parsedCost)
            return pass.isLast ? value : TemplateText.escaped(value)
        }
        var segments: [TemplateText.Segment] = []
        for segment in parsed.segments {
            guard case .expression(let name, let pointer, let source) = segment, pass.names.contains(name) else {
                segments.append(segment)
                continue
            }
            let value = try find(name, pointer, source)
            let scalar = try scalarText(value, source)
            let size = inURL ? PercentEncoding.size(of: scalar) : scalar.utf8.count
            try spend(size, cost: size)
            segments.append(.text(inURL ? PercentEncoding.encoded(scalar) : scalar))
        }
        return .string(pass.isLast ? TemplateText.plain(segments) : TemplateText.written(segments))
    }

    private mutating func spend(_ size: Int, cost: Int) throws(JobError) {
        left = left.saturatingSubtracting(size)
        budget = budget.saturatingSubtracting(cost)
        guard left >= 0, budget >= 0 else {
            throw JobError(.tooLarge, "The expressions fill in too much; point to smaller parts of the values.")
        }
    }

    private mutating func find(
        _ name: TemplateText.Name, _ pointer: JSONPointer, _ source: String
    ) throws(JobError) -> JSON {
        guard let root = values[name] else {
            throw JobError(
                .template, "The expression {{\(source.echoed)}} has no value here; remove it from this link.")
        }
        guard let value = search.value(at: pointer, in: root) else {
            throw JobError(
                .template, "The expression {{\(source.echoed)}} finds nothing in \(root.typeName); check its pointer.")
        }
        return value
    }

    private func scalarText(_ value: JSON, _ source: String) throws(JobError) -> String {
        switch value {
        case .string(let text): text
        case .number(let number): number.text
        case .bool(let flag): String(flag)
        case .null: "null"
        case .array, .object:
            throw JobError(
                .template,
                "The expression {{\(source.echoed)}} gives \(value.typeName), which cannot be part of a longer string; point to a value in it."
            )
        }
    }
}
