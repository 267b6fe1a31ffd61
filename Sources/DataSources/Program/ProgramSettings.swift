import Foundation
import JobModel

/// Which programs may be run, and where.
package struct ProgramSettings: Sendable, Equatable {
    /// A program that the configuration names.
    package struct Entry: Sendable, Equatable {
        /// The whole command line, its first element an absolute path.
        package var command: [String]
        /// Seconds that one run may take.
        package var timeout: Double?
        /// Where it runs; nil for an empty directory of its own.
        package var directory: String?
        package var environment: [String: String]
        /// Bytes of its output; nil for `limits.body`.
        package var output: Int?

        package init(
            command: [String] = [], timeout: Double? = nil, directory: String? = nil,
            environment: [String: String] = [:], output: Int? = nil
        ) {
            self.command = command
            self.timeout = timeout
            self.directory = directory
            self.environment = environment
            self.output = output
        }
    }

    /// By name.
    package var entries: [String: Entry] = [:]
    /// Whether a spec may give a command of its own.
    package var allowsAny = false
    /// What the directories of programs are made in; it is made where it is missing, and is the daemon's alone.
    package var directory = ""
    /// The program guard: `deferd-guard`, which is installed beside the running program.
    package var guardProgram: String = {
        let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return URL(filePath: own ?? "").deletingLastPathComponent().appending(path: "deferd-guard").path
    }()

    package init() {}

    /// Refuses a name that is not configured (kind `invalid`), and without a name any command where none is allowed (`policy`).
    func check(_ name: String?) throws(JobError) {
        if let name { _ = try entry(name) } else { try checkAny() }
    }

    func entry(_ name: String) throws(JobError) -> Entry {
        guard let entry = entries[name] else {
            throw JobError(
                .invalid,
                "There is no program \"\(name.echoed)\"; ask the administrator to name it under \"programs\".")
        }
        return entry
    }

    func checkAny() throws(JobError) {
        guard allowsAny else {
            throw JobError(
                .policy,
                "Commands of your own are not allowed here; use a program that the configuration names (\"programs\").")
        }
    }
}
