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

/// What `deferctl top` has got from the daemon so far, and what its keys have chosen.
struct TopView: Sendable {
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
        case quit, sample
        case change(Int64, JobClient.Change)
        case output(Int64)
    }

    static let help = [
        ("arrows", "select a job"), ("c", "cancel it"), ("r", "retry it"), ("h", "hold it, or release it"),
        ("o", "show the output of its program"), ("/", "show only jobs with this text; Escape shows all"),
        ("?", "show this help"), ("q", "quit"),
    ]

    private static let span = 5

    var info = JSON.null
    /// The end of what a job's program has written.
    var output: (job: Int64, text: String)?
    var message: String?
    var tick = 0
    private(set) var samples: [TopSample] = []
    private(set) var mode = Mode.jobs
    private(set) var selected: Int64?
    private(set) var filter = ""

    var newest: TopSample? { samples.last }

    mutating func append(_ sample: TopSample) {
        // The daemon has restarted.
        if let uptime = sample.uptime, let last = newest?.uptime, uptime < last { samples = [] }
        samples = (samples + [sample]).suffix(Self.span)
    }

    /// How much these counts grow in a second; nil until time has passed between the first sample and the last.
    func rate(_ group: String, _ names: String...) -> Double? {
        guard let first = samples.first, let last = samples.last, let begin = first.uptime, let end = last.uptime,
            end - begin > 0.01
        else { return nil }
        return names.reduce(0) { sum, name in
            let (before, now) = (first.stats[group]?[name]?.double ?? 0, last.stats[group]?[name]?.double ?? 0)
            return sum + max(0, now - before) / (end - begin)
        }
    }

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

    var jobs: [JobSnapshot] {
        let text = filter.lowercased()
        return newest.map { $0.jobs + $0.others }?.filter { job in
            let words = [String(job.id), job.state, job.json.text("queue") ?? "", JobText(job, now: .now).title]
            return text.isEmpty || words.contains { $0.lowercased().contains(text) }
        } ?? []
    }

    mutating func press(_ key: Key) -> Action? {
        let before = mode
        if before != .filter { mode = .jobs }
        switch (before, key) {
        case (.jobs, _): return choose(key)
        case (.help, .character("q")): return .quit
        case (.cancels(let job), .character("y")), (.cancels(let job), .character("Y")): return .change(job, .cancel)
        case (.filter, .character(let character)): filter.append(character)
        case (.filter, .backspace): filter = String(filter.dropLast())
        case (.filter, .escape): (filter, mode) = ("", .jobs)
        case (.filter, _): mode = .jobs
        default: break
        }
        return nil
    }

    private mutating func choose(_ key: Key) -> Action? {
        let jobs = jobs
        let index = jobs.firstIndex { $0.id == selected }
        switch key {
        case .up: selected = index.map { jobs[max(0, $0 - 1)] }?.id ?? jobs.last?.id
        case .down: selected = index.map { jobs[min(jobs.count - 1, $0 + 1)] }?.id ?? jobs.first?.id
        case .escape: filter = ""
        case .character("q"), .character("Q"): return .quit
        case .character("/"): mode = .filter
        case .character("?"): mode = .help
        case .character(let character) where "crho".contains(character):
            // The first key only shows which job it would change.
            guard let index else {
                selected = jobs.first?.id
                return nil
            }
            let job = jobs[index]
            switch character {
            case "c": mode = .cancels(job.id)
            case "r": return .change(job.id, .retry(from: .failed))
            case "h": return .change(job.id, job.state == "held" ? .release : .hold)
            default:
                mode = .output(job.id)
                return .output(job.id)
            }
        default: break
        }
        return nil
    }
}
