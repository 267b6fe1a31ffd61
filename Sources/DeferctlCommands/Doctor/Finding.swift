import JobModel

/// One thing that `deferctl doctor` looked at: how it is, and what to do about it.
struct Finding: Sendable, Equatable {
    enum Level: String, Sendable {
        case ok
        /// Worth knowing; all is well nevertheless.
        case note
        /// It works, but will not for long, or not for all.
        case warning
        case error

        /// Whether something has to be done.
        var isTrouble: Bool { self == .warning || self == .error }

        fileprivate var style: TextStyle {
            switch self {
            case .ok: .good
            case .note: .plain
            case .warning: .warning
            case .error: .bad
            }
        }
    }

    /// What was looked at, in one word.
    let check: String
    let level: Level
    /// One sentence.
    let message: String
    /// What to do next, as a sentence or a command.
    var next: String?

    init(_ check: String, _ level: Level, _ message: String, next: String? = nil) {
        self.check = check
        self.level = level
        self.message = message
        self.next = next
    }

    var json: JSON {
        var object = JSONObject()
        object["check"] = .string(check)
        object["level"] = .string(level.rawValue)
        object["message"] = .string(message)
        object["next"] = next.map(JSON.string)
        return .object(object)
    }

    /// The lines for people, within `width` columns where a width is given.
    func lines(width: Int?, palette: Palette) -> [String] {
        let head = level.rawValue.padded(to: 9) + check.padded(to: 10)
        // On a very narrow terminal the sentence stands below.
        let isNarrow = width.map { $0 < 50 } ?? false
        let indent = isNarrow ? 4 : head.columns
        let margin = String(repeating: " ", count: indent)
        func wrapped(_ text: String) -> [String] {
            (width.map { text.sanitized.wrapped(to: max(10, $0 - indent)) } ?? [text.sanitized]).map { margin + $0 }
        }
        var body = wrapped(message)
        let start = palette.paint(level.rawValue, level.style) + String(head.dropFirst(level.rawValue.count))
        if isNarrow { body.insert(start, at: 0) } else { body[0] = start + body[0].dropFirst(indent) }
        if let next { body += wrapped("-> " + next) }
        return body
    }
}
