import Glibc
import JobModel
import TestOrigin
import TestSupport
import Testing

/// The screen of deferctl in a real terminal.
@Suite(.enabled(if: Tmux.isThere, Tmux.whyNot)) struct TerminalTests {
    @Test func top_showsWhatRuns_followsTheSize_andGivesTheTerminalBack() async throws {
        try await Daemon.run(configuration: "queues: {default: 16, night: 2}") { daemon, wire in
            let id = try await wire.submit(.timer(1000, ["label": "first timer"]))
            try await Tmux.with(daemon) { terminal in
                let before = try await terminal.run("stty -g")
                try await terminal.enter("clear; deferctl top --interval 0.2; echo en\"ded=\"$?")
                let screen = try await terminal.shows("first timer")
                #expect(screen[0].hasPrefix("deferd "))
                #expect(screen[1].contains("1 running"))
                #expect(screen.contains { $0.hasPrefix("night ") })
                #expect(try await terminal.value("alternate_on") == "1")
                #expect(try await terminal.value("cursor_flag") == "0")
                // Including later jobs.
                _ = try await wire.submit(.timer(1000, ["label": "second timer"]))
                try await terminal.shows("second timer")
                func showsQueues(_ screen: [String]) -> Bool {
                    screen.contains { $0.hasPrefix("JOB") && $0.contains("QUEUE") }
                }
                #expect(showsQueues(screen))
                try await terminal.resize(columns: 30, rows: 15)
                let narrow = try await terminal.shows("a narrow table") { screen in
                    screen.contains { $0.hasPrefix("JOB") } && !showsQueues(screen)
                        && screen.contains("q quits, ? helps")
                }
                #expect(narrow.contains { $0.contains("first") })
                try await terminal.resize(columns: 80, rows: 24)
                try await terminal.shows("a wide table", where: showsQueues)
                try await terminal.press("q")
                try await terminal.shows("ended=0")
                #expect(try await terminal.value("alternate_on") == "0")
                #expect(try await terminal.value("cursor_flag") == "1")
                #expect(try await terminal.run("stty -g") == before)
            }
            _ = try await wire.call("job.cancel", .job(id))
        }
    }

    @Test(arguments: [(SIGTERM, 143), (SIGHUP, 129), (SIGQUIT, 131)])
    func top_givesTheTerminalBack_whenASignalEndsIt(signal: Int32, status: Int) async throws {
        try await Daemon.run { daemon in
            try await Tmux.with(daemon) { terminal in
                let before = try await terminal.run("stty -g")
                // The shell that becomes deferctl says which process that will be.
                try await terminal.enter(
                    "clear; (ulimit -c 0; echo $BASHPID > '\(daemon.directory.path)/pid'; exec deferctl top); echo en\"ded=\"$?"
                )
                try await terminal.shows("q quits")
                let text = String(decoding: try Files.bytes(daemon.directory.path + "/pid"), as: UTF8.self)
                kill(try #require(pid_t(text.dropLast())), signal)
                try await terminal.shows("ended=\(status)")
                #expect(try await terminal.value("alternate_on") == "0")
                #expect(try await terminal.value("cursor_flag") == "1")
                #expect(try await terminal.run("stty -g") == before)
            }
        }
    }

    @Test(arguments: [60, 200]) func top_changesJobs_byKeys(columns: Int) async throws {
        try await Daemon.run { daemon, wire in
            _ = try await wire.submit(.timer(1000, ["label": "first timer"]))
            _ = try await wire.submit(.failure("invalid", ["label": "what failed"]))
            _ = try await wire.submit(.timer(1000, ["label": "for later", "delay": 1000]))
            try await Tmux.with(daemon, columns: columns) { terminal in
                try await terminal.enter("clear; deferctl top --interval 0.2; echo en\"ded=\"$?")
                func selects(_ label: String) async throws {
                    try await terminal.shows("mark at \(label)") { screen in
                        screen.contains { $0.hasPrefix("▸") && $0.contains(label) }
                    }
                }
                try await terminal.shows("what failed")
                // The running jobs come first, then the newest others.
                try await terminal.press("Down")
                try await selects("first timer")
                try await terminal.press("Down")
                try await selects("for later")
                try await terminal.press("h")
                try await terminal.shows("Job 3 is held.")
                try await terminal.shows("1 held")
                try await terminal.press("h")
                try await terminal.shows("no held job") { !$0.contains { $0.contains("held") } }
                // It runs now, as the newest.
                try await terminal.press("Down")
                try await selects("first timer")
                try await terminal.press("c")
                try await terminal.shows("Cancel job 1? y/n")
                try await terminal.press("n")
                try await terminal.shows("q quits")
                try await terminal.type("cy")
                try await terminal.shows("the cancelled job") { screen in
                    screen.contains { $0.contains("first timer") && $0.contains("cancelled") }
                }
                try await terminal.type("/what")
                try await terminal.shows("only the failed job") { screen in
                    screen.contains { $0.contains("what failed") } && !screen.contains { $0.contains("first timer") }
                }
                try await terminal.press("Enter")
                try await terminal.press("Down")
                try await selects("what failed")
                try await terminal.press("r")
                try await terminal.shows("Job 2 is ")
                try await terminal.press("?")
                try await terminal.shows("retry it")
                try await terminal.press("Escape")
                try await terminal.shows("what failed")
                try await terminal.press("q")
                try await terminal.shows("ended=0")
            }
        }
    }

    @Test func top_showsOutput_ofAJob() async throws {
        try await Daemon.run(flags: ["--instance", "user"]) { daemon in
            _ = try await daemon.deferctl(["run", "--detach", "sh", "-c", "echo hello there; sleep 1000"])
            try await Tmux.with(daemon) { terminal in
                try await terminal.enter("deferctl top --interval 0.2")
                try await terminal.shows("JOB")
                try await terminal.press("Down")
                try await terminal.shows("▸")
                try await terminal.press("o")
                try await terminal.shows("the output") { $0.contains("hello there") && $0.contains("output of job 1") }
                try await terminal.press("q")
                try await terminal.shows("JOB")
                try await terminal.press("C-c")
            }
            _ = try await daemon.connect().call("job.cancel", .job(1))
        }
    }

    @Test func top_goesOn_whenItWasStoppedForAWhile() async throws {
        try await Daemon.run { daemon in
            try await Tmux.with(daemon) { terminal in
                try await terminal.enter("deferctl top")
                try await terminal.shows("q quits")
                try await terminal.press("C-z")
                try await terminal.shows("Stopped")
                #expect(try await terminal.value("alternate_on") == "0")
                try await terminal.enter("fg")
                try await terminal.shows("q quits")
                #expect(try await terminal.value("alternate_on") == "1")
                try await terminal.press("C-c")
                // The previous content of the screen is back, and nothing drawn remains.
                try await terminal.shows("the shell") { screen in
                    screen.contains { $0.contains("Stopped") } && !screen.contains { $0.contains("q quits") }
                }
            }
        }
    }

    @Test func watch_drawsABarForEachJob_withRates() async throws {
        try await GuidedOrigin.withDaemon { origin, daemon, wire in
            var exchanges: [GuidedOrigin.Exchange] = []
            for name in ["a", "b", "c"] {
                _ = try await wire.submit(.download(origin.url("/" + name), to: name))
                let exchange = try await origin.exchange("/" + name)
                exchange.sendHead("200 OK", [("Content-Length", "1000000")])
                exchange.send([UInt8](repeating: 1, count: 250_000))
                exchanges.append(exchange)
            }
            try await Tmux.with(daemon) { terminal in
                try await terminal.enter("clear; deferctl watch 1 2 3; echo en\"ded=\"$?")
                try await terminal.shows("three bars") { $0.count { $0.contains("━") && $0.contains("25 %") } == 3 }
                for exchange in exchanges {
                    exchange.send([UInt8](repeating: 1, count: 750_000))
                    exchange.finish()
                }
                let screen = try await terminal.shows("ended=0")
                #expect(screen.count { $0.contains("succeeded") && $0.contains("1.0 MB") } == 3)
            }
        }
    }

    @Test func list_fitsTheTerminal_andIsWholeInAPipe() async throws {
        try await Daemon.run { daemon, wire in
            let url = "http://127.0.0.1:1/" + String(repeating: "abcdefghij/", count: 20) + "the-end"
            _ = try await wire.submit(.fetch(.string(url), ["retry": ["max": 0], "queue": "default"]))
            _ = try await wire.wait(1)
            _ = try await wire.submit(.timer(1000, ["label": "日本語の題名がここにあって、とても長い"]))
            try await Tmux.with(daemon, columns: 40) { terminal in
                let screen = try await terminal.run("deferctl list", styles: true)
                let lines = screen.filter { $0.contains("failed") || $0.contains("running") }
                // One line each: nothing was wrapped.
                #expect(lines.count == 2)
                #expect(lines.contains { $0.contains("\u{1B}[31mfailed") && $0.contains("…") && $0.contains("end") })
                #expect(lines.contains { $0.contains("日本") && $0.contains("…") })
                for command in ["deferctl list --color never", "NO_COLOR=1 deferctl list", "TERM=dumb deferctl list"] {
                    let plain = try await terminal.run(command, styles: true)
                    #expect(plain.contains { $0.contains("failed") }, "\(command)")
                    #expect(!plain.joined().contains("\u{1B}[31m"), "\(command)")
                }
                let piped = try await terminal.run("deferctl list | grep -c '\(url)$'")
                #expect(piped.contains("1"))
                // Given before the verb's name it holds as well.
                let colored = try await terminal.run("deferctl --color always list | grep -c $'\\e\\[31m'")
                #expect(colored.contains("1"))
            }
        }
    }

    @Test func controlCharacters_neverReachTheTerminal() async throws {
        try await Daemon.run { daemon, wire in
            let evil = "a\u{1B}]0;owned\u{7}\u{9B}31m\u{202E}b\r\nc"
            _ = try await wire.submit(.failure("invalid", ["label": .string(evil)]))
            _ = try await wire.wait(1)
            _ = try await wire.submit([
                "source": ["type": "error", "kind": "invalid", "message": .string(evil)], "tags": [.string(evil)],
            ])
            _ = try await wire.wait(2)
            _ = try await wire.submit(.timer(1000, ["label": .string(evil)]))
            try await Tmux.with(daemon, columns: 120) { terminal in
                for command in ["list", "show 1", "show 2", "doctor", "top --count 1", "retry 2", "wait 2", "watch 2"] {
                    // As where TERM says nothing, too.
                    for prefix in ["", "TERM= "] {
                        let screen = try await terminal.run("\(prefix)deferctl \(command)")
                        #expect(try await terminal.value("pane_title") != "owned", "\(command)")
                        let isSpelt = screen.contains { $0.contains("\\x1b]0;owned\\x07") }
                        #expect(isSpelt || ["retry 2", "wait 2"].contains(command), "\(command): \(screen)")
                    }
                }
                try await terminal.enter("clear; deferctl top")
                let top = try await terminal.shows("q quits")
                #expect(top.contains { $0.contains("\\x1b]0;owned\\x07") })
                try await terminal.press("q")
                try await terminal.shows("the shell") { $0.contains("$") }
                // The input appears in an error, and nowhere else.
                let screen = try await terminal.run("deferctl list --state $'\\e]0;owned\\a'")
                #expect(screen.contains { $0.contains("\\x1b]0;owned") })
                #expect(try await terminal.value("pane_title") != "owned")
            }
        }
    }

    @Test func strangers_areToldWhatToDo_whereNothingIsThere() async throws {
        try await Daemon.run { daemon in
            try await Tmux.with(daemon, columns: 120) { terminal in
                #expect(try await terminal.run("deferctl list").joined().contains("You have no jobs. Submit one with:"))
                let nope = try await terminal.run("deferctl list --queue nope").joined()
                #expect(nope.contains("None of your jobs matches"))
                #expect(try await terminal.run("deferctl list | cat") == ["ended=0"])
                #expect(try await terminal.run("deferctl list --json") == ["ended=0"])
                #expect(try await terminal.run("deferctl lsit").joined().contains("Did you mean list?"))
                try await terminal.enter("clear; deferctl submit")
                try await terminal.shows("Ctrl-D")
                try await terminal.press("C-d")
                try await terminal.shows("has no job spec")
            }
        }
    }

    @Test func output_endsQuietly_whenItsReaderHasGone() async throws {
        try await Daemon.run { daemon in
            try await Tmux.with(daemon) { terminal in
                let screen = try await terminal.run(
                    "deferctl top --json --interval 0.2 | head -n 1 | wc -l; echo \"${PIPESTATUS[@]}\"")
                #expect(screen.contains("1"))
                #expect(screen.contains("141 0 0"))
                #expect(!screen.contains { $0.hasPrefix("deferctl:") })
            }
        }
    }

    @Test func doctor_saysWhatToDo_onANarrowTerminal() async throws {
        try await Daemon.run { daemon, wire in
            _ = try await wire.call("queue.set", ["queue": "default", "suspended": true])
            _ = try await wire.submit(.timer(1000))
            try await Tmux.with(daemon, columns: 40, rows: 60) { terminal in
                let screen = try await terminal.run("deferctl doctor")
                #expect(screen.contains { $0.contains("deferctl queue resume default") })
                #expect(screen.contains("ended=1"))
                // Broken by us between words, and never by the terminal.
                #expect(screen.allSatisfy { $0.unicodeScalars.count <= 40 })
                let missing = try await terminal.run("deferctl --socket /nowhere/s doctor")
                #expect(
                    missing.map { $0.drop { $0 == " " } }.joined(separator: " ").contains("deferd --socket /nowhere/s"))
                #expect(missing.contains("ended=69"))
            }
        }
    }
}
