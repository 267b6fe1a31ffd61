/// The names that expressions may use in one part of a spec, with the shapes of their values.
struct TemplateScope: Sendable {
    var names: [TemplateText.Name: ResultShape] = [:]

    /// The scope of a schedule's spec.
    static let schedule = TemplateScope(names: [.schedule: .members(["name", "time"])])

    /// The scope of the links of a child job: only values known before it is made.
    var intoLinks: TemplateScope {
        TemplateScope(names: names.filter { TemplateText.Name.reachingIntoLinks.contains($0.key) })
    }

    /// The scope of an `each` child's spec.
    var forEach: TemplateScope {
        var scope = self
        scope.names[.item] = .unknown
        scope.names[.index] = .scalar
        return scope
    }

    /// Checks every string in `json`, a part of the spec at `pointer`.
    func check(_ json: JSON, at pointer: JSONPointer) throws(SpecError) {
        switch json {
        case .string(let text): try check(text, at: pointer)
        case .array(let elements):
            for (index, element) in elements.enumerated() {
                try check(element, at: pointer.appending(index))
            }
        case .object(let object):
            for member in object.members {
                try check(member.value, at: pointer.appending(member.name))
            }
        default: break
        }
    }

    private func check(_ text: String, at location: JSONPointer) throws(SpecError) {
        let parsed: TemplateText
        do { parsed = try TemplateText(text) } catch {
            throw SpecError(location, error.unnamed.map { TemplateText.unknown($0, among: names.keys) } ?? error.reason)
        }
        for segment in parsed.segments {
            if case .quoted = segment {
                throw SpecError(location, "An expression begins with the name of a value; {{= is reserved.")
            }
            guard case .expression(let name, let pointer, let source) = segment else { continue }
            guard let shape = names[name] else {
                throw SpecError(location, TemplateText.unknown(source, among: names.keys))
            }
            guard shape.admits(pointer.tokens[...]) else {
                throw SpecError(
                    location, "The expression {{\(source.echoed)}} can never find anything; check its pointer.")
            }
        }
    }
}
