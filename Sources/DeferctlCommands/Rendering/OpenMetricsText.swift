import JobModel

/// Metrics in the text format of OpenMetrics 1.0, such that the node exporter's textfile collector reads it, too.
///
/// That one knows Prometheus' older format only, in which the lines that it lacks are comments. Of the types it knows counter,
/// gauge and summary, and no others are written; times of samples it refuses, so there are none.
enum OpenMetricsText {
    private static let types = ["counter", "gauge", "summary"]

    /// The text of `families` as `server.stats` shows them. What does not have the form that the format asks for is left out.
    static func text(_ families: [JSON]) -> String {
        var names: Set<String> = []
        var text = ""
        for family in families {
            guard let name = family["name"]?.string, isName(name), let type = family["type"]?.string,
                types.contains(type)
            else { continue }
            // No sample of one family may be called as one of another.
            let own = Set(suffixes(type).map { name + $0 } + [name])
            guard names.isDisjoint(with: own) else { continue }
            names.formUnion(own)
            text += "# TYPE \(name) \(type)\n"
            if let unit = family["unit"]?.string, isName(unit), name.hasSuffix("_" + unit) {
                text += "# UNIT \(name) \(unit)\n"
            }
            if let help = family["help"]?.string { text += "# HELP \(name) \(escaped(help))\n" }
            var seen: Set<String> = []
            for sample in family["samples"]?.array ?? [] {
                let labels = labels(sample["labels"]?.object)
                guard seen.insert(labels).inserted else { continue }
                text += lines(name, type, labels, sample)
            }
        }
        return text + "# EOF\n"
    }

    private static func suffixes(_ type: String) -> [String] {
        switch type {
        case "counter": ["_total"]
        case "summary": ["_count", "_sum"]
        default: [""]
        }
    }

    private static func lines(_ name: String, _ type: String, _ labels: String, _ sample: JSON) -> String {
        let members = type == "summary" ? ["count", "sum"] : ["value"]
        let values = members.map { number(sample[$0]) }
        // A counter is never below zero, nor is a count.
        guard let first = values.first, let first, type == "gauge" || !first.hasPrefix("-"), !values.contains(nil)
        else {
            return ""
        }
        return zip(suffixes(type), values).map { "\(name)\($0)\(labels) \($1 ?? "0")\n" }.joined()
    }

    /// A number as the format writes it; JSON's numbers are such.
    private static func number(_ json: JSON?) -> String? {
        guard case .number(let number)? = json else { return nil }
        return number.text
    }

    private static func labels(_ object: JSONObject?) -> String {
        let pairs = (object?.members ?? []).compactMap { member in
            member.value.string.flatMap { value in
                isName(member.name) && !member.name.contains(":") ? "\(member.name)=\"\(escaped(value))\"" : nil
            }
        }
        return pairs.isEmpty ? "" : "{\(pairs.joined(separator: ","))}"
    }

    private static func isName(_ text: String) -> Bool {
        guard let first = text.utf8.first, !(0x30...0x39).contains(first) else { return false }
        return text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x3A, 0x41...0x5A, 0x5F, 0x61...0x7A: true
            default: false
            }
        }
    }

    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
