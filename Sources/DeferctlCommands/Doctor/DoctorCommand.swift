import ArgumentParser
import JobClient
import JobModel

struct DoctorCommand: DaemonCommand {
    static let configuration = verb(
        "doctor", "Look for problems: socket, rights, versions, disks, limits, queues, failed jobs, units.",
        example: "deferctl doctor",
        """
        Each finding is ok, a note, a warning or an error, with what to do next. The exit status is 0 if there is no \
        warning and no error, 1 if there is one, 69 if the daemon cannot be reached, and 77 if you may not use it.
        """)

    @OptionGroup var global: GlobalOptions

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let (_, origin) = try invocation.search.location(flag: global.socket)
        return try await Examination(invocation: invocation, origin: origin) { finding in
            try invocation.show([finding.json], as: finding.lines(invocation.console.format))
        }.run()
    }
}

/// The result of one check of `deferctl doctor`, with what to do about it.
struct Finding: Sendable, Equatable {
    enum Level: String, Sendable {
        case ok
        /// Worth knowing, but no problem.
        case note
        /// A problem soon, or for some users.
        case warning
        case error

        /// Whether something must be done.
        var isTrouble: Bool { self == .warning || self == .error }
    }

    let check: String
    let level: Level
    let message: String
    /// What to do next, as a sentence or a command.
    let next: String?

    init(_ check: String, _ level: Level, _ message: String, next: String? = nil) {
        (self.check, self.level, self.message, self.next) = (check, level, message, next)
    }

    var json: JSON {
        .object(["check": check.json, "level": level.rawValue.json, "message": message.json, "next": next?.json])
    }

    func lines(_ format: TextFormat) -> [String] {
        let head = level.rawValue.padded(to: 9) + check.padded(to: 10)
        let texts = [message.sanitized] + (next.map { ["-> \($0.sanitized)"] } ?? [])
        var lines = String.hanging(texts, behind: head, within: format.width)
        lines[0] = format.paint(StyledText(state: level.rawValue)) + lines[0].dropFirst(level.rawValue.count)
        return lines
    }
}
