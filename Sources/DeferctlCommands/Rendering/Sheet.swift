import JobModel

/// An object as a sheet of names and values, with the members of inner objects named by their path.
enum Sheet {
    /// The lines of `json`; where a width is given, values that are too long go on below themselves.
    static func lines(_ json: JSON, width: Int? = nil) -> [String] {
        var rows: [(name: String, value: String)] = []
        append(json, name: "", to: &rows)
        let names = rows.map(\.name.columns).max() ?? 0
        return rows.flatMap { row -> [String] in
            let line = row.name.padded(to: names) + "  " + row.value
            guard let width, line.columns > width else { return [line] }
            // On a very narrow terminal the values stand below the names.
            let indent = width - names - 2 >= 16 ? names + 2 : 4
            let pieces = row.value.wrapped(to: width - indent).map { String(repeating: " ", count: indent) + $0 }
            guard indent > 4, let first = pieces.first else { return [row.name.cut(to: width)] + pieces }
            return [row.name.padded(to: names) + first.dropFirst(names)] + pieces.dropFirst()
        }
    }

    private static func append(_ json: JSON, name: String, to rows: inout [(name: String, value: String)]) {
        guard case .object(let object) = json else {
            rows.append((name.sanitized, text(json, name: name).sanitized))
            return
        }
        for member in object.members {
            append(member.value, name: name.isEmpty ? member.name : "\(name).\(member.name)", to: &rows)
        }
    }

    private static func text(_ json: JSON, name: String) -> String {
        switch json {
        case .string(let text): text
        case .array(let elements): elements.map { text($0, name: "") }.joined(separator: " ")
        case .number(let number):
            if name == "uptime" {
                Quantities.span(number.double)
            } else if name.hasPrefix("bytes."), let bytes = number.int {
                "\(bytes) (\(Quantities.size(Int64(bytes))))"
            } else {
                number.text
            }
        case .null: "none"
        case .bool(let flag): flag ? "yes" : "no"
        case .object: json.description
        }
    }
}
