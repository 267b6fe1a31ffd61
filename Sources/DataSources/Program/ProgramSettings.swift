import FoundationEssentials
import JobModel

/// Which programs jobs may run, and where.
package struct ProgramSettings: Sendable, Equatable {
    package struct Entry: Sendable, Equatable {
        /// The command line; its first element is an absolute path.
        package var command: [String]
        /// The most seconds for a run.
        package var timeout: Double?
        /// The working directory; nil for an empty one of its own.
        package var directory: String?
        package var environment: [String: String] = [:]
        package var variables: [String] = []
        /// The most bytes of output that are kept; nil for `limits.output`.
        package var output: Int?

        package init(command: [String] = []) { self.command = command }
    }

    package var entries: [String: Entry] = [:]
    /// Whether specs may contain commands.
    package var allowsAny = false
    /// Whether the daemon belongs to the user who submits commands, so that they get that user's environment and no other.
    package var belongsToCaller = false
    /// The directory in which programs get theirs; it is made if it is missing, and private to the daemon.
    package var directory = ""
    /// The program guard, `deferd-guard`, which is installed beside the running program.
    package var guardProgram: String = {
        let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        return URL(filePath: own ?? "").deletingLastPathComponent().appending(path: "deferd-guard").path
    }()

    package init() {}

    /// The configured program `name`; an empty entry for a command without a name, if those are allowed.
    func entry(_ name: String?) throws(JobError) -> Entry {
        guard let name else {
            if allowsAny { return Entry() }
            throw JobError(
                .policy,
                "Commands of your own are not allowed here; use a program that the configuration names (\"programs\").")
        }
        if let entry = entries[name] { return entry }
        throw JobError(
            .invalid, "There is no program \"\(name.echoed)\"; ask the administrator to name it under \"programs\".")
    }

    /// Throws unless jobs may set a variable of a configured program.
    ///
    /// No list of harmful names can be complete: glibc alone loads code that some of its variables name.
    func check(variable: String, of name: String) throws(JobError) {
        guard try !entry(name).variables.contains(variable) else { return }
        throw JobError(
            .policy,
            "Jobs may not set the variable \"\(variable.echoed)\" of the program \"\(name.echoed)\"; leave it out, or ask "
                + "the administrator to list it under \"variables\".")
    }
}
