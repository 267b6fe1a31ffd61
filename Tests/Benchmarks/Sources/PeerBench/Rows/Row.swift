/// A row of the table, which can be measured by itself.
struct Row {
    let name: String
    let title: String
    let measure: (Bench) throws -> Void

    static var all: [Row] { [.submit, .small, .large, .latency, .start, .idle, .memory, .size, .progress] }
}
