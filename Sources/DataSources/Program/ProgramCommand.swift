import CLinux
import FoundationEssentials
import JobModel
import SystemPackage

/// How to start a program: its command line, environment and limits.
struct ProgramCommand: Sendable {
    private let words: [String]
    private let variables: [String: String]
    private let umask: UInt32
    /// The working directory; nil for an empty one of its own.
    let directory: String?
    /// The most seconds for a run.
    let timeout: Double?
    /// The most bytes of output that are kept.
    let output: Int

    init(_ spec: ProgramSpec, _ context: SourceContext, _ settings: SourceSettings) throws(JobError) {
        var variables = ProgramSpec.usualEnvironment(home: FileManager.default.homeDirectoryForCurrentUser.path)
        variables.merge(spec.environment ?? [:]) { $1 }
        let entry: ProgramSettings.Entry
        switch spec.subject {
        case .named(let name):
            entry = try settings.programs.entry(name)
            words = entry.command + spec.arguments
            // Expressions can have filled in the program's name.
            for variable in spec.environment?.keys.sorted() ?? [] {
                try settings.programs.check(variable: variable, of: name)
            }
            // Jobs cannot override the administrator's variables.
            variables.merge(entry.environment) { $1 }
        case .command(let command):
            entry = try settings.programs.entry(nil)
            words = command + spec.arguments
            if settings.programs.belongsToCaller, let environment = spec.environment { variables = environment }
        }
        variables["DEFERD_JOB"] = String(context.job)
        variables["DEFERD_ATTEMPT"] = String(context.attempt)
        variables["DEFERD_RESTARTS"] = String(context.restarts)
        self.variables = variables
        umask = spec.umask
        directory = spec.directory ?? entry.directory
        timeout = [entry.timeout, context.timeout].compactMap(\.self).min()
        output = entry.output ?? settings.limits.output
    }

    /// The request to the program guard to run the program in `directory`.
    func block(in directory: String) -> [UInt8] {
        let header = deferd_guard_block(
            arguments: UInt32(words.count), variables: UInt32(variables.count), umask: umask)
        var bytes = withUnsafeBytes(of: header, Array.init)
        for text in [directory] + words + variables.map({ "\($0.key)=\($0.value)" }) {
            bytes += text.utf8
            bytes.append(0)
        }
        return bytes
    }

    /// What to do if the kernel refused to run a program.
    static func advice(on error: Errno) -> String {
        error == .argListTooLong
            ? "pass fewer or shorter arguments and variables, or the name of a file that holds them."
            : "check that it exists and may be executed."
    }
}
