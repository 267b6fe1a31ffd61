import JobModel

/// Metrics in the text format of OpenMetrics 1.0, such that the node exporter's textfile collector reads it, too.
///
/// That one knows Prometheus' older format only, in which the lines that it lacks are comments. Of the types it knows counter,
/// gauge and summary, and no others are written; times of samples it refuses, so there are none.
enum OpenMetricsText {
    /// The suffixes of a family's samples, each with the member that has its value.
    private static let values = [
        "counter": [("_total", "value")], "gauge": [("", "value")], "summary": [("_count", "count"), ("_sum", "sum")],
    ]

    /// The text of `families` as `server.stats` shows them.
    static func text(_ families: [JSON]) -> String {
        var text = ""
        for family in families {
            guard let name = family["name"]?.string, let type = family["type"]?.string, let values = values[type] else {
                continue
            }
            text += "# TYPE \(name) \(type)\n"
            if let unit = family["unit"]?.string { text += "# UNIT \(name) \(unit)\n" }
            if let help = family["help"]?.string { text += "# HELP \(name) \(escaped(help))\n" }
            for sample in family["samples"]?.array ?? [] {
                let pairs = (sample["labels"]?.object?.members ?? []).map { label in
                    "\(label.name)=\"\(escaped(label.value.string ?? ""))\""
                }
                let labels = pairs.isEmpty ? "" : "{\(pairs.joined(separator: ","))}"
                for (suffix, member) in values {
                    // JSON's numbers are written as the format's.
                    if let value = sample[member] { text += "\(name)\(suffix)\(labels) \(value)\n" }
                }
            }
        }
        return text + "# EOF\n"
    }

    private static func escaped(_ text: String) -> String {
        let escapes: [Unicode.Scalar: String] = ["\\": "\\\\", "\"": "\\\"", "\n": "\\n"]
        return text.unicodeScalars.map { escapes[$0] ?? String($0) }.joined()
    }
}
