import Foundation
import TestSupport
import Testing

/// A real systemd, booted for one scenario from the units of this repository and the programs just built.
enum BootedSystem {
    /// The output and the exit status of a scenario.
    struct Transcript: CustomStringConvertible {
        let status: Int32
        let output: String
        let errors: String

        /// The lines `say NAME VALUE` wrote, in their order.
        func said(_ name: String) -> [String] {
            output.split(separator: "\n").filter { $0.hasPrefix(name + ": ") }.map {
                String($0.dropFirst(name.count + 2))
            }
        }

        var description: String { "status \(status)\n\(output)\n\(errors)" }
    }

    /// Why nothing can be booted here, or nil.
    static let obstacle: String? = {
        guard geteuid() == 0 else { return "booting needs root" }
        guard let mounts = try? String(contentsOfFile: "/proc/self/mounts", encoding: .utf8),
            mounts.split(separator: "\n").contains(where: { $0.split(separator: " ").dropFirst(2).first == "cgroup2" })
        else { return "booting needs a cgroup2 mount" }
        for program in programs where !FileManager.default.isExecutableFile(atPath: program.path) {
            return "\(program.path) is not built"
        }
        guard run("/bin/bash", [tool.path, "--", "/bin/true"])?.status == 0 else {
            return "Tests/SystemdTests/boot.sh cannot boot a systemd here"
        }
        return nil
    }()

    private static let repository = URL(filePath: #filePath).appending(path: "../../..").standardizedFileURL
    private static let tool = repository.appending(path: "Tests/SystemdTests/boot.sh")
    private static let programs = ["deferd", "deferd-guard", "deferctl"].map {
        URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent().appending(path: $0)
    }

    /// Boots, runs the scenario in bash and takes the system down.
    ///
    /// - Parameters:
    ///   - scenario: commands that follow `prelude`; the first failure ends the scenario.
    ///   - files: additional files below /etc/systemd/system, by their relative path.
    static func run(_ scenario: String, files: [String: String] = [:]) async throws -> Transcript {
        let units = FileManager.default.temporaryDirectory.appending(path: "deferd-units-\(UUID().uuidString)")
        try FileManager.default.copyItem(at: repository.appending(path: "systemd"), to: units)
        defer { try? FileManager.default.removeItem(at: units) }
        for (path, text) in files {
            let file = units.appending(path: path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(),
                withIntermediateDirectories: true
            )
            try Data(text.utf8).write(to: file)
        }
        let arguments =
            [tool.path, "--units", units.path] + programs.flatMap { ["--program", $0.path] }
            + ["--", "timeout", "60", "bash", "-euo", "pipefail", "-c", prelude + scenario]
        let transcript = try #require(
            await withCheckedContinuation { done in
                // A boot blocks for seconds: keep it off the few threads that run the tests.
                Thread { done.resume(returning: run("/bin/bash", arguments)) }.start()
            }
        )
        try #require(transcript.status == 0, "\(transcript)")
        return transcript
    }

    private static let prelude = #"""
        socket=/run/deferd/deferd.sock
        say() { echo "$1: ${*:2}"; }
        show() { systemctl show --property "$1" --value "${2:-deferd.service}"; }
        client() { deferctl --socket "$socket" "$@"; }
        # Submits a job; gives its id.
        submit() { client submit - <<<"$1" | sed -nE '1s/[^0-9]*([0-9]+).*/\1/p'; }
        # The id of the process that answers on the socket.
        answering() { client info --json | grep -oE '"pid" ?: ?[0-9]+' | grep -oE '[0-9]+'; }
        # Waits, without polling, until the journal holds that message, or that many of them, and prints them. The
        # output must not be /dev/null: grep would read on to the end then.
        awaiting() { timeout 40 grep -m "${2:-1}" -E -- "$1" < <(journalctl --follow --lines all --output cat); }
        trap '[ $? = 0 ] || journalctl --output short-monotonic --no-hostname | tail -n 40 >&2' EXIT
        # What an installation has made before the service starts.
        systemd-sysusers /etc/systemd/system/deferd.sysusers
        # The manager notes each notification it gets.
        systemctl log-level debug

        """#

    private static func run(_ program: String, _ arguments: [String]) -> Transcript? {
        (try? SystemProgram([program] + arguments)).map {
            Transcript(status: $0.status, output: $0.outputText, errors: $0.errorText)
        }
    }
}
