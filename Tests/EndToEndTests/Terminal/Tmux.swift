import Foundation
import Synchronization
import TestSupport
import Testing

/// A real terminal in tmux, in which a shell runs: a test reads what a person would see.
final class Tmux: Sendable {
    private static let program = "/usr/bin/tmux"
    static let isThere = Files.exists(program)
    static let whyNot: Comment = "tmux is not installed; apt-get install tmux"

    private let socket: String
    /// Tells the end of one command from that of another.
    private let commands = Atomic(0)

    /// Runs `body` in a terminal of this size, whose shell knows `deferctl` by its name and the daemon by its socket.
    static func with<Value>(
        _ daemon: Daemon, columns: Int = 80, rows: Int = 24, environment: [String: String] = [:],
        _ body: (Tmux) async throws -> Value
    ) async throws -> Value {
        try await TemporaryDirectory.with { directory in
            let terminal = Tmux(socket: directory.path + "/tmux")
            let bin = URL(fileURLWithPath: BuiltProgram.deferctl).deletingLastPathComponent().path
            let variables = [
                "PATH": bin + ":/usr/bin:/bin", "DEFERD_SOCKET": daemon.socket, "LC_ALL": "C.UTF-8", "PS1": "$ ",
                "HISTFILE": "/dev/null",
            ].merging(environment) { $1 }.map { "\($0.key)=\($0.value)" }
            // No shell of the user's, no files of theirs.
            let shell = ["/usr/bin/env", "-u", "NO_COLOR"] + variables + ["/bin/bash", "--noprofile", "--norc"]
            do {
                try await terminal.tmux(["new-session", "-d", "-x", "\(columns)", "-y", "\(rows)"] + shell)
                try await terminal.shows("$")
                let value = try await body(terminal)
                try await terminal.tmux(["kill-server"])
                return value
            } catch {
                _ = try? await terminal.tmux(["kill-server"])
                throw error
            }
        }
    }

    private init(socket: String) {
        self.socket = socket
    }

    @discardableResult
    private func tmux(_ arguments: [String]) async throws -> String {
        let (end, output, errors) = try await ChildProcess.run(
            [Self.program, "-u", "-S", socket, "-f", "/dev/null"] + arguments)
        try #require(end == .code(0), "tmux \(arguments): \(errors)")
        return output
    }

    /// Types text.
    func type(_ text: String) async throws { try await tmux(["send-keys", "-l", text]) }

    /// Types text and presses Return.
    func enter(_ line: String) async throws {
        try await type(line)
        try await press("Enter")
    }

    /// Presses a key by tmux's name for it: `q`, `C-c`, `Tab`.
    func press(_ key: String) async throws { try await tmux(["send-keys", key]) }

    func resize(columns: Int, rows: Int) async throws {
        try await tmux(["resize-window", "-x", "\(columns)", "-y", "\(rows)"])
    }

    /// The content of the screen, line by line; with `styles`, including the control sequences for colours.
    func screen(styles: Bool = false) async throws -> [String] {
        try await tmux(["capture-pane", "-p"] + (styles ? ["-e"] : [])).split(
            separator: "\n", omittingEmptySubsequences: false
        ).map(String.init)
    }

    /// A value of the terminal, such as `alternate_on`.
    func value(_ name: String) async throws -> String {
        try await tmux(["display-message", "-p", "#{\(name)}"]).trimmingCharacters(in: .newlines)
    }

    /// Waits until the screen is as wanted, however long that takes, and returns it.
    @discardableResult
    func shows(
        _ what: String, styles: Bool = false, where isWanted: ([String]) -> Bool
    ) async throws -> [String] {
        let deadline = ContinuousClock.now + .seconds(Patience.seconds)
        while true {
            let screen = try await screen(styles: styles)
            if isWanted(screen) { return screen }
            guard ContinuousClock.now < deadline else {
                throw DeadlinePassed(awaited: what, seconds: Patience.seconds, instead: screen.joined(separator: "\n"))
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Waits until a line holds `text`.
    @discardableResult
    func shows(_ text: String) async throws -> [String] {
        try await shows("line with \"\(text)\"") { screen in screen.contains { $0.contains(text) } }
    }

    /// Runs a command, and returns the screen once it has ended, up to a line with its status: `ended=0`.
    func run(_ command: String, styles: Bool = false) async throws -> [String] {
        let number = commands.add(1, ordering: .relaxed).newValue
        // Spelt so that the line with the command itself is not taken for its end.
        try await enter("clear; \(command); echo \"en\"ded=$? of \(number)")
        func isEnd(_ line: String) -> Bool { line.hasPrefix("ended=") && line.hasSuffix(" of \(number)") }
        let screen = try await shows("end of \(command)", styles: styles) { $0.contains(where: isEnd) }
        let output = screen.prefix { !isEnd($0) }
        return output + [String(screen[output.count].prefix { $0 != " " })]
    }
}
