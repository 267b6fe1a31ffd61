import JobModel

/// An object as a sheet of names and values, with the members of inner objects named by their path.
enum Sheet {
    static func lines(_ json: JSON) -> [String] {
        var table = Table([Table.Column(""), Table.Column("")])
        append(json, name: "", to: &table)
        return table.lines(showsHead: false)
    }

    private static func append(_ json: JSON, name: String, to table: inout Table) {
        guard case .object(let object) = json else {
            table.append([name.sanitized, text(json, name: name).sanitized])
            return
        }
        for member in object.members {
            append(member.value, name: name.isEmpty ? member.name : "\(name).\(member.name)", to: &table)
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
