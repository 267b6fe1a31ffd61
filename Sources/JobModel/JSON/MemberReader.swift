/// Reads the members of one object by name and type; errors name the faulty member.
///
/// An optional member that is `null` counts as omitted.
package struct MemberReader {
    /// The interpretation of strings.
    package enum Mode: Sendable {
        case literal
        /// A string with an expression represents an unknown value, so it fits every type.
        case template
        /// Expressions have been expanded: numbers and booleans become text where a string is expected.
        case expanded
    }

    package let object: JSONObject
    package let pointer: JSONPointer
    package let mode: Mode

    package init(_ json: JSON, at pointer: JSONPointer, mode: Mode = .literal) throws(SpecError) {
        guard let object = json.object else {
            throw SpecError(pointer, "This must be an object, not \(json.typeName).")
        }
        self.object = object
        self.pointer = pointer
        self.mode = mode
    }

    /// Reads the params of a call.
    package init(_ params: JSONObject) { (object, pointer, mode) = (params, JSONPointer(), .literal) }

    package func pointer(to name: String) -> JSONPointer { pointer.appending(name) }

    package func fault(_ name: String, _ reason: String) -> SpecError { SpecError(pointer(to: name), reason) }

    /// Throws if there are members other than these.
    package func allow(_ names: [String]) throws(SpecError) {
        for member in object.members where !names.contains(member.name) {
            guard !names.isEmpty else {
                throw fault(member.name, "No params are taken here; leave \"\(member.name.echoed)\" out.")
            }
            let known = names.joined(separator: ", ")
            let hint = member.name.nearest(among: names).map { "did you mean \"\($0)\"? Known" } ?? "known"
            throw fault(member.name, "There is no member \"\(member.name.echoed)\" here; \(hint) are \(known).")
        }
    }

    /// Returns the member's value, or nil if it is omitted or null.
    package func value(_ name: String) -> JSON? {
        guard let value = object[name], !value.isNull else { return nil }
        return value
    }

    /// Reads the members of an object, or nil if it is omitted.
    package func members(of name: String) throws(SpecError) -> MemberReader? {
        guard let value = value(name) else { return nil }
        return try MemberReader(value, at: pointer(to: name), mode: mode)
    }

    /// Returns whether the member's value is unknown until its expressions are expanded.
    package func isOpen(_ name: String) -> Bool { object[name].map(isOpen) ?? false }

    private func isOpen(_ value: JSON) -> Bool {
        guard mode == .template, case .string(let text) = value else { return false }
        return TemplateText.hasExpression(text)
    }

    /// The maximum length of a string without a bound of its own, in bytes.
    /// Expressions can yield a whole document, and parsing it blocks a thread: a 60 MB pointer took 3 GB of memory.
    package static let longestString = 64 << 10

    /// Reads a string of at most `limit` bytes.
    /// Unless it is open, `flaw` checks its form and returns what is wrong.
    package func string(
        _ name: String, atMost limit: Int = longestString, flaw: (String) -> String? = { _ in nil }
    ) throws(SpecError) -> String? {
        guard let value = value(name) else { return nil }
        return try string(name, value, atMost: limit, flaw: flaw)
    }

    /// Reads a string that `parse` turns into a value, nil if the string has another form; `mistake` says so.
    package func parsed<Value>(
        _ name: String, atMost limit: Int = longestString, _ mistake: @autoclosure () -> String,
        by parse: (String) -> Value?
    ) throws(SpecError) -> Value? {
        guard let written = value(name) else { return nil }
        let text = try string(name, written, atMost: limit) { _ in nil }
        if isOpen(written) { return nil }
        guard let value = parse(text) else { throw fault(name, mistake()) }
        return value
    }

    func base64(_ name: String) throws(SpecError) -> [UInt8]? {
        try parsed(name, atMost: .max, "\"\(name)\" must be base64 with padding.", by: Base64.decode)
    }

    /// Reads an object of strings, nil if it is omitted or open. The last of several members with one name counts.
    func fields(
        _ name: String, atMost limit: Int = longestString, nameFlaw: (String) -> String? = { _ in nil },
        flaw: (String) -> String? = { _ in nil }
    ) throws(SpecError) -> [HeaderField]? {
        guard !isOpen(name), let members = try members(of: name) else { return nil }
        var fields: [HeaderField] = []
        var seen: Set<String> = []
        for member in members.object.members.reversed() where seen.insert(member.name).inserted {
            if let reason = nameFlaw(member.name) { throw members.fault(member.name, reason) }
            let value = try members.string(member.name, member.value, atMost: limit, flaw: flaw)
            fields.append(HeaderField(name: member.name, value: value))
        }
        return fields.reversed()
    }

    /// Reads the value of the member `name` like ``string(_:atMost:flaw:)``.
    private func string(
        _ name: String, _ value: JSON, atMost limit: Int, flaw: (String) -> String?
    ) throws(SpecError) -> String {
        guard let text = text(of: value) else { throw mismatch(name, "a string", value) }
        if let reason = self.flaw(of: text, value, "\"\(name.echoed)\"", atMost: limit, flaw) {
            throw fault(name, reason)
        }
        return text
    }

    /// The reason why a text is not accepted, unless its value is open; `subject` names it.
    private func flaw(
        of text: String, _ value: JSON, _ subject: @autoclosure () -> String, atMost limit: Int,
        _ flaw: (String) -> String?
    ) -> String? {
        if isOpen(value) { return nil }
        if text.utf8.count > limit { return "\(subject()) is longer than \(limit) bytes." }
        // The parser has checked the parts, but not the text that expressions join. Text without a limit is never compared.
        if mode == .expanded, limit < .max, text.combinesTooMuch {
            return "\(subject()) has more than \(String.mostCombining) combining characters in a row."
        }
        return flaw(text)
    }

    /// Returns the text of a string member; after expansion, also of a number or boolean.
    private func text(of value: JSON) -> String? {
        switch value {
        case .string(let written): written
        case .number(let number) where mode == .expanded: number.text
        case .bool(let flag) where mode == .expanded: String(flag)
        default: nil
        }
    }

    /// Reads a string that must be present and not empty.
    package func requiredString(
        _ name: String, atMost limit: Int = longestString, flaw: (String) -> String? = { _ in nil }
    ) throws(SpecError) -> String {
        guard let text = try string(name, atMost: limit, flaw: flaw) else { throw missing(name) }
        guard !text.isEmpty else { throw fault(name, "\"\(name)\" must not be empty.") }
        return text
    }

    package func number(_ name: String, in range: ClosedRange<Double>) throws(SpecError) -> Double? {
        guard let value = value(name) else { return nil }
        if isOpen(name) { return range.lowerBound }
        guard let number = scalarNumber(value) else { throw mismatch(name, "a number", value) }
        guard range.contains(number) else {
            throw fault(name, "\"\(name)\" must be from \(JSON(range.lowerBound)) to \(JSON(range.upperBound)).")
        }
        return number
    }

    package func integer(_ name: String, in range: ClosedRange<Int>) throws(SpecError) -> Int? {
        guard let value = value(name) else { return nil }
        if isOpen(name) { return range.lowerBound }
        guard scalarNumber(value) != nil else { throw mismatch(name, "a whole number", value) }
        guard let number = value.int ?? value.string.flatMap(Int.init), range.contains(number) else {
            throw fault(name, "\"\(name)\" must be a whole number from \(range.lowerBound) to \(range.upperBound).")
        }
        return number
    }

    /// Returns the value of a number, or after expansion of a numeric string.
    /// A longer string with an expression expands to text, even if it reads as a number.
    private func scalarNumber(_ value: JSON) -> Double? {
        if case .number(let number) = value { return number.double }
        guard mode == .expanded, let text = value.string else { return nil }
        return Double(text).flatMap { $0.isFinite ? $0 : nil }
    }

    package func flag(_ name: String) throws(SpecError) -> Bool? {
        guard let value = value(name) else { return nil }
        if isOpen(name) { return false }
        guard let flag = value.bool else { throw mismatch(name, "true or false", value) }
        return flag
    }

    package func array(_ name: String, atMost limit: Int) throws(SpecError) -> [JSON]? {
        guard let value = value(name) else { return nil }
        if isOpen(name) { return [] }
        guard let elements = value.array else { throw mismatch(name, "an array", value) }
        guard elements.count <= limit else { throw fault(name, "\"\(name)\" holds more than \(limit) elements.") }
        return elements
    }

    /// Reads an array of strings of at most `length` bytes each; `flaw` checks each as in ``string(_:atMost:flaw:)``.
    package func strings(
        _ name: String, atMost limit: Int, ofAtMost length: Int = longestString,
        flaw: (String) -> String? = { _ in nil }
    ) throws(SpecError) -> [String]? {
        guard let elements = try array(name, atMost: limit) else { return nil }
        var strings: [String] = []
        for (index, element) in elements.enumerated() {
            let pointer = pointer(to: name).appending(index)
            guard let text = text(of: element) else {
                throw SpecError(pointer, "An element of \"\(name)\" must be a string, not \(element.typeName).")
            }
            if let reason = self.flaw(of: text, element, "An element of \"\(name)\"", atMost: length, flaw) {
                throw SpecError(pointer, reason)
            }
            strings.append(text)
        }
        return strings
    }

    package func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ name: String, of type: Choice.Type = Choice.self
    ) throws(SpecError) -> Choice? {
        guard let text = try string(name) else { return nil }
        if let choice = Choice(rawValue: text) { return choice }
        if isOpen(name) { return nil }
        let words = Choice.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
        let hint = text.nearest(among: Choice.allCases.map(\.rawValue)).map { "; did you mean \"\($0)\"?" } ?? "."
        throw fault(name, "\"\(name)\" must be one of \(words)\(hint)")
    }

    package func time(_ name: String) throws(SpecError) -> Timestamp? {
        try parsed(
            name, "\"\(name)\" must be a time as RFC 3339 writes it, such as 2026-01-31T12:00:00Z.",
            by: Timestamp.init(rfc3339:))
    }

    package func missing(_ name: String) -> SpecError { fault(name, "\"\(name)\" is missing.") }

    private func mismatch(_ name: String, _ wanted: String, _ value: JSON) -> SpecError {
        fault(name, "\"\(name.echoed)\" must be \(wanted), not \(value.typeName).")
    }
}

/// A flaw in one member of a client's input.
package struct SpecError: Error, Sendable, Equatable {
    /// The location of the member, present or missing, relative to the params.
    package let pointer: JSONPointer
    /// A sentence that states the flaw and the remedy.
    package let reason: String
    /// Whether it is well formed, and policy does not allow it.
    package let isForbidden: Bool

    package init(_ pointer: JSONPointer, _ reason: String, isForbidden: Bool = false) {
        self.pointer = pointer
        self.reason = reason
        self.isForbidden = isForbidden
    }
}
