import JobModel

/// The text of a spec, in which mistakes are pointed out.
struct SpecText: Sendable {
    let name: String
    let bytes: [UInt8]
    /// The line of the first byte.
    var firstLine = 1
    /// The place of the spec in the document.
    var start: [String] = []
    /// The places of the values of a YAML document, by their pointers; nil for JSON.
    var marks: [[String]: TextPlace]?

    func element(_ index: Int) -> SpecText {
        var text = self
        text.start.append(String(index))
        return text
    }

    /// The line and column of a syntax error, its reason and the text there.
    func place(of error: JSONSyntaxError) -> String { error.place(in: bytes, firstLine: firstLine) }

    /// The lines that show a mistake: its place and reason, and the line of the text.
    func lines(for mistake: SpecMistake) -> [String] {
        let place = place(of: mistake.pointer)
        let all = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        let line = place.line - firstLine
        let text = all.indices.contains(line) ? String(decoding: all[line], as: UTF8.self) : ""
        // A long line is shown from shortly before the mistake.
        let column = text.count > 72 ? max(0, place.column - 16) : 0
        let excerpt = text.dropFirst(column).trimmingPrefix { $0.isWhitespace }.prefix(72)
        return ["\(name):\(place.line):\(place.column): \(mistake.reason)", "    \(excerpt)"]
    }

    /// The place of the value at the pointer; if it is missing, of the nearest part around it.
    private func place(of pointer: JSONPointer) -> TextPlace {
        var tokens = start + pointer.tokens
        while true {
            if let marks {
                if let place = marks[tokens] { return place }
            } else if let offset = JSONParser.offset(of: JSONPointer(tokens), in: bytes) {
                let place = TextPlace(of: offset, in: bytes)
                return TextPlace(line: place.line + firstLine - 1, column: place.column)
            }
            if tokens.popLast() == nil { return TextPlace(line: firstLine, column: 1) }
        }
    }
}

/// A mistake in a spec, as the daemon reports it.
struct SpecMistake: Sendable, Equatable {
    let pointer: JSONPointer
    let reason: String

    /// The mistakes in the data of an error; empty if the error is about something else.
    static func all(in data: JSON) -> [SpecMistake] {
        (data["mistakes"]?.array ?? [data]).compactMap { mistake in
            guard let pointer = mistake["pointer"]?.string.flatMap(JSONPointer.init(text:)),
                let reason = mistake["reason"]?.string
            else { return nil }
            return SpecMistake(pointer: pointer, reason: reason)
        }
    }
}
