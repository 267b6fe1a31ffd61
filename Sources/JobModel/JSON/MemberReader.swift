/// Reads the members of one object by name and type; an error says exactly which one is wrong.
///
/// An optional member that is `null` counts as left out.
package struct MemberReader {
    /// How strings are read.
    package enum Mode: Sendable {
        /// As they are.
        case literal
        /// A string with an expression stands for a value that is not known yet, so it fits every type.
        case template
        /// Expressions were filled in: where a string is expected, a number or boolean is converted to text.
        case expanded
    }

    package let object: JSONObject
    package let pointer: JSONPointer
    package let mode: Mode
    /// Whether it was accepted before: then strings are read however long they are, as they were when it came.
    package let isStored: Bool

    package init(
        _ json: JSON, at pointer: JSONPointer, mode: Mode = .literal, isStored: Bool = false
    ) throws(SpecError) {
        guard let object = json.object else {
            throw SpecError(pointer, "This must be an object, not \(json.typeName).")
        }
        self.object = object
        self.pointer = pointer
        self.mode = mode
        self.isStored = isStored
    }

    /// Where the member `name` is, or would be.
    package func pointer(to name: String) -> JSONPointer { pointer.appending(name) }

    /// An error about the member `name`.
    package func fault(_ name: String, _ reason: String) -> SpecError { SpecError(pointer(to: name), reason) }

    /// Refuses members other than these.
    package func allow(_ names: [String]) throws(SpecError) {
        for member in object.members where !names.contains(member.name) {
            guard !names.isEmpty else {
                throw fault(member.name, "No params are taken here; leave \"\(member.name.echoed)\" out.")
            }
            throw fault(
                member.name,
                "There is no member \"\(member.name.echoed)\" here; known are \(names.joined(separator: ", ")).")
        }
    }

    /// The member's value; nil where it is left out or null.
    package func value(_ name: String) -> JSON? {
        guard let value = object[name], !value.isNull else { return nil }
        return value
    }

    /// Whether the member's value is not known before its expressions are filled in.
    package func isOpen(_ name: String) -> Bool {
        object[name].map(isOpen) ?? false
    }

    private func isOpen(_ value: JSON) -> Bool {
        guard mode == .template, case .string(let text) = value else { return false }
        return TemplateText.hasExpression(text)
    }

    /// The most bytes of a string that has no bound of its own. Expressions can make it as long as a document, and it is
    /// taken apart where nothing else is done meanwhile: a pointer of 60 MB took 3 GB of memory.
    package static let longestString = 64 << 10

    /// A string of at most `limit` bytes; its form is checked by `flaw`, which says what is wrong with it, unless it is
    /// still open.
    package func string(
        _ name: String, atMost limit: Int = longestString, flaw: (String) -> String? = { _ in nil }
    ) throws(SpecError) -> String? {
        guard let value = value(name) else { return nil }
        guard let text = text(of: value) else { throw mismatch(name, "a string", value) }
        guard !isOpen(value) else { return text }
        guard isStored || text.utf8.count <= limit else { throw fault(name, Self.tooLong(name, limit)) }
        if let reason = flaw(text) { throw fault(name, reason) }
        return text
    }

    private static func tooLong(_ name: String, _ limit: Int) -> String {
        "\"\(name.echoed)\" is longer than \(limit) bytes."
    }

    /// The text of a string member. Where expressions were filled in, scalars are converted to text.
    private func text(of value: JSON) -> String? {
        switch value {
        case .string(let written): written
        case .number(let number) where mode == .expanded: number.text
        case .bool(let flag) where mode == .expanded: String(flag)
        default: nil
        }
    }

    /// A string that may not be left out or empty.
    package func requiredString(
        _ name: String, atMost limit: Int = longestString, flaw: (String) -> String? = { _ in nil }
    ) throws(SpecError) -> String {
        guard let text = try string(name, atMost: limit, flaw: flaw) else { throw missing(name) }
        guard !text.isEmpty else { throw fault(name, "\"\(name)\" must not be empty.") }
        return text
    }

    /// A number within `range`.
    package func number(_ name: String, in range: ClosedRange<Double>) throws(SpecError) -> Double? {
        guard let value = value(name) else { return nil }
        if isOpen(name) { return range.lowerBound }
        guard let number = scalarNumber(value) else { throw mismatch(name, "a number", value) }
        guard range.contains(number) else {
            throw fault(name, "\"\(name)\" must be from \(JSON(range.lowerBound)) to \(JSON(range.upperBound)).")
        }
        return number
    }

    /// A whole number within `range`.
    package func integer(_ name: String, in range: ClosedRange<Int>) throws(SpecError) -> Int? {
        guard let value = value(name) else { return nil }
        if isOpen(name) { return range.lowerBound }
        guard scalarNumber(value) != nil else { throw mismatch(name, "a whole number", value) }
        guard let number = value.int ?? value.string.flatMap(Int.init), range.contains(number) else {
            throw fault(name, "\"\(name)\" must be a whole number from \(range.lowerBound) to \(range.upperBound).")
        }
        return number
    }

    /// A number, or where expressions were filled in also a string of digits: a longer string with an expression in it is
    /// text even where it reads as a number.
    private func scalarNumber(_ value: JSON) -> Double? {
        if case .number(let number) = value { return number.double.isFinite ? number.double : nil }
        guard mode == .expanded, let text = value.string else { return nil }
        return Double(text).flatMap { $0.isFinite ? $0 : nil }
    }

    /// A boolean.
    package func flag(_ name: String) throws(SpecError) -> Bool? {
        guard let value = value(name) else { return nil }
        if isOpen(name) { return false }
        guard let flag = value.bool else { throw mismatch(name, "true or false", value) }
        return flag
    }

    /// An array of at most `limit` elements.
    package func array(_ name: String, atMost limit: Int) throws(SpecError) -> [JSON]? {
        guard let value = value(name) else { return nil }
        if isOpen(name) { return [] }
        guard let elements = value.array else { throw mismatch(name, "an array", value) }
        guard elements.count <= limit else { throw fault(name, "\"\(name)\" holds more than \(limit) elements.") }
        return elements
    }

    /// An array of strings of at most `length` bytes each; the form of each is checked by `flaw`, as that of
    /// ``string(_:atMost:flaw:)``.
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
            if !isOpen(element) {
                guard isStored || text.utf8.count <= length else {
                    throw SpecError(pointer, "An element of \"\(name)\" is longer than \(length) bytes.")
                }
                if let reason = flaw(text) { throw SpecError(pointer, reason) }
            }
            strings.append(text)
        }
        return strings
    }

    /// One of the words that `Choice` lists.
    package func choice<Choice: RawRepresentable<String> & CaseIterable>(
        _ name: String, of type: Choice.Type = Choice.self
    ) throws(SpecError) -> Choice? {
        guard let text = try string(name) else { return nil }
        if let choice = Choice(rawValue: text) { return choice }
        if isOpen(name) { return nil }
        let words = Choice.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
        throw fault(name, "\"\(name)\" must be one of \(words).")
    }

    /// A time in RFC 3339.
    package func time(_ name: String) throws(SpecError) -> Timestamp? {
        let text = try string(name) { text in
            Timestamp(rfc3339: text) == nil
                ? "\"\(name)\" must be a time as RFC 3339 writes it, such as 2026-01-31T12:00:00Z." : nil
        }
        return text.flatMap(Timestamp.init(rfc3339:))
    }

    /// The error for a member that may not be left out.
    package func missing(_ name: String) -> SpecError { fault(name, "\"\(name)\" is missing.") }

    private func mismatch(_ name: String, _ wanted: String, _ value: JSON) -> SpecError {
        fault(name, "\"\(name)\" must be \(wanted), not \(value.typeName).")
    }
}

/// What is wrong with one member of what a client wrote.
package struct SpecError: Error, Sendable, Equatable {
    /// The member, relative to the params; a missing one by the pointer it would have.
    package let pointer: JSONPointer
    /// A sentence that says what is wrong and what is right.
    package let reason: String
    /// Whether it is well formed, and policy does not allow it.
    package let isForbidden: Bool

    package init(_ pointer: JSONPointer, _ reason: String, isForbidden: Bool = false) {
        self.pointer = pointer
        self.reason = reason
        self.isForbidden = isForbidden
    }
}
