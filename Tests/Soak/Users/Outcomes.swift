import JobClient
import JobModel

/// How often jobs of each label ended in which way, to show that a soak did its work.
struct Outcomes {
    enum End: Hashable, CustomStringConvertible {
        case success
        case cancel
        /// Of this kind.
        case error(String)

        var description: String {
            switch self {
            case .success: "succeeded"
            case .cancel: "cancelled"
            case .error(let kind): kind
            }
        }
    }

    private var counts: [String: [End: Int]] = [:]

    mutating func add(_ job: JobSnapshot) {
        guard let label = job.json["label"]?.string else { return }
        let end: End =
            switch job.state {
            case "succeeded": .success
            case "cancelled": .cancel
            default: .error(job.error?["kind"]?.string ?? "none")
            }
        add(label, end)
    }

    mutating func add(_ label: String, _ end: End) { counts[label, default: [:]][end, default: 0] += 1 }

    /// A line for each label.
    var lines: [String] {
        counts.sorted { $0.key < $1.key }.map { label, ends in
            "\(label): "
                + ends.sorted { ($1.value, $0.key.description) < ($0.value, $1.key.description) }
                .map { "\($0.value) \($0.key)" }.joined(separator: ", ")
        }
    }

    /// Expected outcomes that never happened, and other outcomes of labels with only one.
    func problems(_ expected: [String: End]) -> [String] {
        expected.sorted { $0.key < $1.key }.compactMap { label, end in
            let ends = counts[label] ?? [:]
            if ends[end] == nil { return "No job of the kind \(label) ended so: \(end)." }
            // A job that must fail must never succeed.
            if end != .success, let count = ends[.success] { return "\(count) jobs of the kind \(label) succeeded." }
            return nil
        }
    }
}
