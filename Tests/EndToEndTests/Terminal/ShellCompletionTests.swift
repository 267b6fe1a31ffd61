import JobModel
import TestSupport
import Testing

/// Completion by Tab, in real shells: jobs of the daemon, with states and URLs if a shell shows them.
@Suite(.enabled(if: Tmux.isThere, Tmux.whyNot)) struct ShellCompletionTests {
    /// A shell, and how it is brought to complete deferctl's words.
    struct Shell: Sendable, CustomTestStringConvertible {
        let name: String
        let start: String
        /// Whether descriptions are shown beside the words.
        var describes = true
        var isThere: Bool { Files.exists("/bin/" + name) || Files.exists("/usr/bin/" + name) }
        var testDescription: String { name }
    }

    private static let shells = [
        Shell(name: "bash", start: "source <(deferctl --generate-completion-script bash)", describes: false),
        Shell(
            name: "zsh",
            start: "mkdir \"$HOME/z\"; deferctl --generate-completion-script zsh > \"$HOME/z/_deferctl\"; exec zsh -f"),
        Shell(
            name: "fish",
            start: "deferctl --generate-completion-script fish > \"$HOME/c.fish\"; exec fish --no-config"),
    ]

    /// Runs `body` in a terminal with the shell, ready.
    private func with(
        _ shell: Shell, _ daemon: Daemon, socket: String? = nil, _ body: (Tmux) async throws -> Void
    ) async throws {
        guard shell.isThere else { return print("\(shell.name) is not installed, so its completion was not tried.") }
        try await TemporaryDirectory.with { home in
            var variables = ["HOME": home.path, "XDG_CONFIG_HOME": home.path, "XDG_DATA_HOME": home.path]
            variables["DEFERD_SOCKET"] = socket
            try await Tmux.with(daemon, columns: 120, rows: 40, environment: variables) { terminal in
                try await terminal.enter(shell.start)
                if shell.name == "zsh" {
                    try await terminal.enter(
                        "PS1='zsh> '; fpath=($HOME/z $fpath); autoload -U compinit; compinit -u -D")
                } else if shell.name == "fish" {
                    try await terminal.enter("source $HOME/c.fish; function fish_prompt; echo 'fish> '; end")
                }
                // The shell has read all input so far.
                try await terminal.enter("echo re\"\"ady; clear; echo be\"\"gun")
                try await terminal.shows("begun") { $0.contains { $0.hasPrefix("begun") } }
                try await body(terminal)
            }
        }
    }

    @Test(arguments: shells) func ids_areOfferedByState(_ shell: Shell) async throws {
        try await Daemon.run { daemon, wire in
            _ = try await wire.submit(.failure("invalid", ["label": "the failed one"]))
            _ = try await wire.wait(1)
            for label in ["first timer", "second timer"] {
                _ = try await wire.submit(.timer(1000, ["label": .string(label)]))
            }
            try await with(shell, daemon) { terminal in
                // One verb has this beginning, and one job can be retried.
                try await terminal.type("deferctl retr")
                try await terminal.press("Tab")
                try await terminal.shows("deferctl retry")
                try await terminal.press("Tab")
                try await terminal.shows("the id") { $0.contains { $0.contains("deferctl retry 1") } }
                // Deletes the line. A Ctrl-C would be a signal, which overtakes the input.
                try await terminal.press("C-u")
                // Two jobs can be cancelled, and the shell shows their descriptions.
                try await terminal.type("clear; deferctl cancel ")
                try await terminal.press("Tab")
                try await terminal.press("Tab")
                let screen = try await terminal.shows("both ids") { screen in
                    shell.describes
                        ? ["first timer", "second timer"].allSatisfy { label in
                            screen.contains { $0.contains("running") && $0.contains(label) }
                        }
                        : screen.contains {
                            $0.split(separator: " ") == ["2", "3"] || $0.split(separator: " ") == ["3", "2"]
                        }
                }
                #expect(!screen.contains { $0.contains("the failed one") })
            }
        }
    }

    @Test(arguments: shells) func verbsFlagsAndSchedules_areCompleted(_ shell: Shell) async throws {
        try await Daemon.run { daemon, wire in
            for name in ["nightly", "weekly"] {
                _ = try await wire.call(
                    "schedule.set",
                    [
                        "schedule": .string(name), "every": 100_000,
                        "spec": ["source": ["type": "value", "value": 1]],
                    ])
            }
            try await with(shell, daemon) { terminal in
                for (typed, completed) in [
                    ("ru", "run"), ("run --inp", "run --input"), ("upl", "upload"),
                    ("upload --che", "upload --checksum"),
                    ("download --seg", "download --segments"), ("sched", "schedule"),
                    ("schedule sus", "schedule suspend"),
                    ("schedule add --cal", "schedule add --calendar"), ("schedule add --ov", "schedule add --overlap"),
                    ("schedule show nig", "schedule show nightly"), ("schedule run week", "schedule run weekly"),
                    ("schedule remove nig", "schedule remove nightly"),
                ] {
                    try await terminal.type("deferctl " + typed)
                    try await terminal.press("Tab")
                    // zsh first shows the description of a flag.
                    if shell.name == "zsh", typed.contains("--") { try await terminal.press("Tab") }
                    try await terminal.shows("deferctl " + completed)
                    try await terminal.press("C-u")
                }
            }
        }
    }

    @Test(arguments: shells) func tagsOfOthers_areWordsAndNoCommands(_ shell: Shell) async throws {
        try await Daemon.run { daemon, wire in
            let trap = daemon.directory.path + "/trap"
            let tags: JSON = [
                "night", "nightly", .string("$(touch \(trap))"), .string("`touch \(trap)`"), "\u{1B}[31m", "a\nb",
            ]
            _ = try await wire.submit(.timer(1000, ["tags": tags]))
            try await with(shell, daemon) { terminal in
                try await terminal.type("deferctl list --tag ")
                // The first may insert the common prefix, the second nothing, and the third shows them.
                for _ in 1...3 { try await terminal.press("Tab") }
                try await terminal.shows("nightly")
                try await terminal.press("C-u")
                try await terminal.type("clear; deferctl list --tag nightl")
                try await terminal.press("Tab")
                try await terminal.shows("deferctl list --tag nightly")
                #expect(!Files.exists(trap))
            }
        }
    }

    @Test(arguments: shells) func nothingIsOffered_orSaid_whenNoDaemonRuns(_ shell: Shell) async throws {
        try await Daemon.run { daemon in
            try await with(shell, daemon, socket: "/nowhere/s") { terminal in
                try await terminal.type("deferctl show ")
                try await terminal.press("Tab")
                // Follows the output of the completion.
                try await terminal.type("17")
                let screen = try await terminal.shows("deferctl show 17")
                #expect(!screen.contains { $0.contains("cannot be reached") || $0.contains("deferctl:") })
            }
        }
    }
}
