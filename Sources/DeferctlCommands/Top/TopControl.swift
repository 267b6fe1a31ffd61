import JobClient
import JobModel

enum Key: Sendable, Equatable {
    case up, down, enter, escape, backspace
    case character(Character)

    /// The keys in what a terminal sent at once. Sequences of other keys give nothing.
    static func all(in bytes: [UInt8]) -> [Key] {
        var (keys, rest) = ([Key](), String(decoding: bytes, as: UTF8.self)[...])
        while let first = rest.popFirst() {
            switch first {
            case "\u{1B}" where rest.first == "[" || rest.first == "O":
                let sequence = rest.dropFirst().prefix { !$0.isLetter && $0 != "~" }
                let end = rest.dropFirst(1 + sequence.count).first
                rest = rest.dropFirst(2 + sequence.count)
                if end == "A" { keys.append(.up) } else if end == "B" { keys.append(.down) }
            case "\u{1B}": keys.append(.escape)
            case "\r", "\n": keys.append(.enter)
            case "\u{7F}", "\u{8}": keys.append(.backspace)
            default: if !first.unicodeScalars.contains(where: { $0.value < 0x20 }) { keys.append(.character(first)) }
            }
        }
        return keys
    }
}

/// What the keys of `deferctl top` have chosen so far.
struct TopControl: Sendable {
    enum Mode: Sendable, Equatable {
        case jobs, help
        /// The filter is being typed.
        case filter
        /// Waits for y or n.
        case cancels(Int64)
        /// Shows what the job's program has written.
        case output(Int64)
    }

    enum Action: Sendable, Equatable {
        case quit
        case change(Int64, JobClient.Change)
        case output(Int64)
    }

    static let help = [
        ("arrows", "select a job"), ("c", "cancel it"), ("r", "retry it"), ("h", "hold it, or release it"),
        ("o", "show the output of its program"), ("/", "show only jobs with this text; Escape shows all"),
        ("?", "show this help"), ("q", "quit"),
    ]

    private(set) var mode = Mode.jobs
    private(set) var selected: Int64?
    private(set) var filter = ""

    /// The last line of the screen, unless there is something to tell.
    var prompt: String {
        switch mode {
        case .jobs where filter.isEmpty: "q quits, ? helps"
        case .jobs: "only jobs with \"\(filter.sanitized)\"; Escape shows all"
        case .filter: "/\(filter.sanitized)"
        case .cancels(let job): "Cancel job \(job)? y/n"
        case .help, .output: "Press any key to return."
        }
    }

    /// The jobs that the filter lets through.
    func shown(of sample: TopSample) -> [JobSnapshot] {
        let text = filter.lowercased()
        return (sample.jobs + sample.others).filter { job in
            let words = [String(job.id), job.state, job.json.text("queue") ?? "", JobText(job, now: .now).title]
            return text.isEmpty || words.contains { $0.lowercased().contains(text) }
        }
    }

    mutating func press(_ key: Key, on jobs: [JobSnapshot]) -> Action? {
        let before = mode
        switch before {
        case .jobs: return choose(key, jobs)
        case .help, .output:
            mode = .jobs
            return key == .character("q") && before == .help ? .quit : nil
        case .cancels(let job):
            mode = .jobs
            return key == .character("y") || key == .character("Y") ? .change(job, .cancel) : nil
        case .filter:
            switch key {
            case .character(let character): filter.append(character)
            case .backspace: filter = String(filter.dropLast())
            case .escape: (filter, mode) = ("", .jobs)
            default: mode = .jobs
            }
            return nil
        }
    }

    private mutating func choose(_ key: Key, _ jobs: [JobSnapshot]) -> Action? {
        let index = jobs.firstIndex { $0.id == selected }
        func neighbour(_ step: Int) -> Int64? {
            guard let index else { return (step > 0 ? jobs.first : jobs.last)?.id }
            return jobs[min(max(0, index + step), jobs.count - 1)].id
        }
        switch key {
        case .up: selected = neighbour(-1)
        case .down: selected = neighbour(1)
        case .escape: filter = ""
        case .character("q"), .character("Q"): return .quit
        case .character("/"): mode = .filter
        case .character("?"): mode = .help
        case .character(let character):
            guard let index else {
                selected = "crho".contains(character) ? jobs.first?.id : selected
                return nil
            }
            let job = jobs[index]
            switch character {
            case "c": mode = .cancels(job.id)
            case "r": return .change(job.id, .retry(from: .failed))
            case "h": return .change(job.id, job.state == "held" ? .release : .hold)
            case "o":
                mode = .output(job.id)
                return .output(job.id)
            default: break
            }
        case .enter, .backspace: break
        }
        return nil
    }
}
