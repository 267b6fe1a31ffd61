/// A string split into plain text and `{{name/json/pointer}}` expressions.
package struct TemplateText: Sendable {
    /// The name that begins an expression.
    package enum Name: String, Sendable, CaseIterable {
        /// The link's incoming result.
        case input
        /// The link's incoming failure.
        case error
        /// The element for this child of an `each`.
        case item
        /// That element's index, from 0.
        case index
        /// The link's job.
        case job
        /// The schedule that submits the job, and the time that the job is for.
        case schedule

        /// Values known before a job is made, which are therefore expanded in its links too.
        static let reachingIntoLinks: Set<Name> = [.item, .index, .schedule]
    }

    package enum Segment: Sendable, Equatable {
        case text(String)
        /// Backslashes and braces that would merge with the expression after them, written `{{=\}}`.
        /// Only ``written(_:)`` makes it; in client input it is an error.
        case quoted(String)
        case expression(Name, JSONPointer, source: String)
    }

    /// A syntax error, as a sentence.
    package struct Flaw: Error, Equatable {
        package let reason: String
        /// The expression, if its name is unknown.
        var unnamed: String?
    }

    package let segments: [Segment]

    /// Parses `text`; `\{{` denotes `{{`.
    package init(_ text: String) throws(Flaw) {
        guard text.holdsBrace else {
            segments = [.text(text)]
            return
        }
        var segments: [Segment] = []
        var plain = ""
        var rest = Substring(text)
        while let opening = rest.firstRange(ofBraces: "{{") {
            let before = rest[..<opening.lowerBound]
            if before.utf8.last == UInt8(ascii: "\\") {
                plain.unicodeScalars += before.unicodeScalars.dropLast()
                plain += "{{"
                rest = rest[opening.upperBound...]
                continue
            }
            plain += before
            guard let closing = rest[opening.upperBound...].firstRange(ofBraces: "}}") else {
                throw Flaw(
                    reason: "The expression that begins with \"{{\" is not closed; write \\{{ for literal braces."
                )
            }
            if !plain.isEmpty { segments.append(.text(plain)) }
            plain = ""
            segments.append(try Self.expression(String(rest[opening.upperBound..<closing.lowerBound])))
            rest = rest[closing.upperBound...]
        }
        plain += rest
        if !plain.isEmpty || segments.isEmpty { segments.append(.text(plain)) }
        self.segments = segments
    }

    private static func expression(_ source: String) throws(Flaw) -> Segment {
        if source.utf8.first == UInt8(ascii: "=") {
            let quoted = source.dropFirst()
            if !quoted.isEmpty, quoted.utf8.allSatisfy(mayNotPrecedeBraces) { return .quoted(String(quoted)) }
        }
        let slash = source.utf8.firstIndex(of: UInt8(ascii: "/")) ?? source.endIndex
        guard let name = Name(rawValue: String(source[..<slash])) else {
            throw Flaw(reason: unknown(source, among: Name.allCases), unnamed: source)
        }
        guard let pointer = JSONPointer(text: String(source[slash...])) else {
            throw Flaw(reason: "The expression {{\(source.echoed)}} has a pointer that RFC 6901 does not allow.")
        }
        return .expression(name, pointer, source: source)
    }

    /// Returns the message for an expression whose name is unknown in its place.
    static func unknown(_ source: String, among names: some Sequence<Name>) -> String {
        let name = source[..<(source.utf8.firstIndex(of: UInt8(ascii: "/")) ?? source.endIndex)]
        let known = names.map { "\"\($0.rawValue)\"" }.sorted()
        let rest = known.isEmpty ? "no expression can stand here" : "known are \(known.joined(separator: ", "))"
        return "There is no \"\(String(name).echoed)\" here for the expression {{\(source.echoed)}}; \(rest)."
    }

    /// The expressions of `text`; nil if it cannot be parsed.
    static func expressions(in text: String) -> [(name: Name, source: String)]? {
        guard text.holdsBrace else { return [] }
        return try? TemplateText(text).segments.compactMap { segment -> (name: Name, source: String)? in
            if case .expression(let name, _, let source) = segment { (name, source) } else { nil }
        }
    }

    /// Returns whether `text` has an expression, or something like the beginning of one.
    package static func hasExpression(_ text: String) -> Bool { expressions(in: text)?.isEmpty != true }

    private static func mayNotPrecedeBraces(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "\\") || byte == UInt8(ascii: "{")
    }

    package static func plain(_ segments: [Segment]) -> String {
        let texts = segments.map { segment in
            switch segment {
            case .text(let text), .quoted(let text): text
            case .expression(_, _, let source): "{{\(source)}}"
            }
        }
        var plain = ""
        // A text of 60 MB that grows by doubling takes 100 MB on its way.
        plain.reserveCapacity(texts.reduce(0) { $0 + $1.utf8.count })
        for text in texts { plain += text }
        return plain
    }

    /// Returns text that parses into these segments, except that adjacent texts become one.
    package static func written(_ segments: [Segment]) -> String {
        var written = ""
        var plain = ""
        for segment in segments {
            switch segment {
            case .text(let text), .quoted(let text): plain += text
            case .expression(_, _, let source):
                let end = plain.utf8.lastIndex { !mayNotPrecedeBraces($0) }.map(plain.utf8.index(after:))
                let quoted = plain.utf8[(end ?? plain.startIndex)...]
                written += escaped(String(plain[..<quoted.startIndex]))
                if !quoted.isEmpty { written += "{{=\(Substring(quoted))}}" }
                written += "{{\(source)}}"
                plain = ""
            }
        }
        return written + escaped(plain)
    }

    /// Returns `text` with every `{{` escaped, so that it passes through an expansion unchanged.
    package static func escaped(_ text: String) -> String {
        guard text.holdsBrace else { return text }
        var escaped = ""
        var rest = Substring(text)
        while let opening = rest.firstRange(ofBraces: "{{") {
            escaped += rest[..<opening.lowerBound]
            escaped += "\\{{"
            rest = rest[opening.upperBound...]
        }
        return escaped + rest
    }

    package static func escaped(_ json: JSON) -> JSON {
        switch json {
        case .string(let text): .string(escaped(text))
        case .array(let elements): .array(elements.map(escaped))
        case .object(let object): .object(object.mapValues { escaped($0.value) })
        default: json
        }
    }
}

extension JSON {
    /// Whether an expansion changes a string in the value: one with an expression, or maybe one with a backslash.
    package var hasExpression: Bool {
        switch self {
        case .string(let text): TemplateText.hasExpression(text) || text.utf8.contains(UInt8(ascii: "\\"))
        case .array(let elements): elements.contains(where: \.hasExpression)
        case .object(let object): object.members.contains(where: \.value.hasExpression)
        default: false
        }
    }
}

extension Substring {
    /// Returns the first doubled brace, found byte by byte, as both braces are ASCII.
    fileprivate func firstRange(ofBraces braces: StaticString) -> Range<Index>? {
        let brace = braces.utf8Start.pointee
        var index = startIndex
        while index < endIndex {
            let next = utf8.index(after: index)
            if utf8[index] == brace, next < endIndex, utf8[next] == brace { return index..<utf8.index(after: next) }
            index = next
        }
        return nil
    }
}

extension String {
    /// Whether it may contain an expression.
    var holdsBrace: Bool {
        let brace = UInt8(ascii: "{")
        // Every string of a spec is checked, and iterating over a string's bytes takes several times as long.
        return utf8.withContiguousStorageIfAvailable { $0.contains(brace) } ?? utf8.contains(brace)
    }
}
