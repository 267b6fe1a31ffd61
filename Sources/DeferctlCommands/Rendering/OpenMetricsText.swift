import JobModel

/// Metrics in the text format of OpenMetrics 1.0, limited to what the node exporter's textfile collector also reads.
///
/// The collector knows Prometheus's older format, in which unknown lines are comments, and rejects samples with times.
enum OpenMetricsText {
    /// The suffixes of a family's samples, each with the member that has its value.
    private static let values = [
        "counter": [("_total", "value")], "gauge": [("", "value")], "summary": [("_count", "count"), ("_sum", "sum")],
    ]

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
