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

    /// Expands a part of a spec; nil for a plain value.
    mutating func expand(
        _ json: JSON, _ part: SpecPart?, _ pass: Pass, inURL: Bool = false
    ) throws(JobError) -> JSON {
        switch json {
        case .string(let text): return try string(text, pass, inURL: inURL)
        case .array(let elements):
            return .array(
                try elements.map { (element) throws(JobError) in
                    part == .jobs
                        ? try child(element, pass)
                        : try expand(element, part?.part(at: "", element), pass, inURL: inURL)
                })
        case .object(let object):
            return .object(
                try object.mapValues { (member) throws(JobError) in
                    let isURL = part == .source && ["url", "mirrors"].contains(member.name)
                    return switch part?.part(at: member.name, member.value) {
                    case .jobs: try jobs(member.value, pass)
                    case .job: try child(member.value, pass.intoEach)
                    case .links: try expand(member.value, .links, pass.intoLinks)
                    case let inner: try expand(member.value, inner, pass, inURL: isURL)
                    }
                })
        default: return json
        }
    }

    private mutating func jobs(_ json: JSON, _ pass: Pass) throws(JobError) -> JSON {
        guard case .string(let text) = json else { return try expand(json, .jobs, pass) }
        // Specs from an expression are literal: nothing in them or their links is an expression.
        let specs = try string(text, Pass(names: pass.names, isLast: false), inURL: false)
        return specs.array == nil ? specs : try expand(specs, .jobs, pass)
    }

    /// Expands a child of a list; an invalid one becomes a child that fails, so that the others can be made.
    private mutating func child(_ json: JSON, _ pass: Pass) throws(JobError) -> JSON {
        do { return try expand(json, .job, pass) } catch {
            // A value too large for one child leaves no room for the others either.
            if error.kind == .tooLarge { throw error }
            let failing = JobSpec.failing(with: error)
            return pass.isLast ? failing : TemplateText.escaped(failing)
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
            let inserted = inURL ? PercentEncoding.encoded(scalar) : scalar
            try spend(inserted.utf8.count, cost: inserted.utf8.count)
            segments.append(.text(inserted))
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
            if let part = pointer.tokens.last, ["body", "output"].contains(part),
                search.value(at: JSONPointer(Array(pointer.tokens.dropLast())), in: root)?["spilled"] == true
            {
                let advice =
                    part == "body"
                    ? "select a part by a source \"json\", or use a \"download\""
                    : "print less, or JSON with \"output\": \"json\""
                throw JobError(
                    .template,
                    "The expression {{\(source.echoed)}} finds no \(part), which is too large for the result; \(advice)."
                )
            }
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
