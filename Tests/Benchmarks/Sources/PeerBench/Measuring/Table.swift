/// All measurements, formatted for people.
struct Table {
    static let heads = ["row", "against", "deferd", "peer", "figure", "spread", "rounds", "target", "met"]

    let comparisons: [Comparison]
    let notes: [String]
    let surroundings: [String]

    private var rows: [[String]] { [Self.heads] + comparisons.map(\.columns) }

    var text: String {
        let rows = rows
        let widths = Self.heads.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        let lines = rows.map { row in
            zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }.joined(separator: "  ")
        }
        return (lines + [""] + surroundings + notes).joined(separator: "\n")
    }

    var markdown: String {
        let rule = [Self.heads.map { _ in "---" }]
        let lines = (rows.prefix(1) + rule + rows.dropFirst()).map { "| " + $0.joined(separator: " | ") + " |" }
        return (lines + [""] + (surroundings + notes).map { "- " + $0 }).joined(separator: "\n")
    }
}
