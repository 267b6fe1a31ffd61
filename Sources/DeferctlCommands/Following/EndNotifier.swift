import FoundationEssentials
import Glibc
import JobClient
import JobModel

/// Tells the user that jobs have ended: by desktop notifications, or else by the terminal's bell and a sentence.
struct EndNotifier: Sendable {
    /// Whether there is `notify-send`, and a session that shows what it sends.
    private let hasDesktop: Bool

    init(_ variables: [String: String] = ProcessInfo.processInfo.environment) {
        let hasSession =
            variables["DBUS_SESSION_BUS_ADDRESS"] != nil
            || variables["XDG_RUNTIME_DIR"].map { access("\($0)/bus", F_OK) == 0 } ?? false
        let directories = (variables["PATH"] ?? "").split(separator: ":")
        hasDesktop = hasSession && directories.contains { access("\($0)/notify-send", X_OK) == 0 }
        // Nothing waits for the programs that show notifications.
        if hasDesktop { signal(SIGCHLD, SIG_IGN) }
    }

    /// The sentence to write if the event tells of an end that no notification was sent for.
    func tell(of event: JobEvent, on console: Console) -> String? {
        guard case .state(let job) = event.change, job.isFinished else { return nil }
        let text = JobText(job, now: .now)
        let (head, body) = ("Job \(job.id) \(job.state.sanitized)", text.title)
        if hasDesktop, Self.send(head, body) { return nil }
        if console.showsMessages { try? console.messages.write("\u{7}") }
        return "\(head): \(body)"
    }

    private static func send(_ head: String, _ body: String) -> Bool {
        var words =
            ["notify-send", "--app-name=deferd", "--", head, body].map { (word: String) in strdup(word) } + [nil]
        defer { for word in words { free(word) } }
        var process = pid_t()
        return posix_spawnp(&process, "notify-send", nil, nil, &words, environ) == 0
    }
}
