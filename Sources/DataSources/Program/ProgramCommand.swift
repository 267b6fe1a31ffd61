import CLinux
import Foundation
import JobModel

/// How to start a program: its command line, environment and limits.
struct ProgramCommand: Sendable {
    /// The path of the program, and its arguments.
    private let words: [String]
    private let variables: [String: String]
    /// The working directory; nil for an empty one of its own.
    let directory: String?
    /// The most seconds for a run.
    let timeout: Double?
    /// The most bytes of output that are kept.
    let output: Int

    init(_ spec: ProgramSpec, _ context: SourceContext, _ settings: SourceSettings) throws(JobError) {
        var variables = [
            "PATH": Self.path, "HOME": NSHomeDirectory(), "LANG": "C.UTF-8", "DEFERD_JOB": String(context.job),
            "DEFERD_ATTEMPT": String(context.attempt), "DEFERD_RESTARTS": String(context.restarts),
        ]
        variables.merge(spec.environment) { $1 }
        let entry: ProgramSettings.Entry
        switch spec.subject {
        case .named(let name):
            entry = try settings.programs.entry(name)
            words = entry.command + spec.arguments
            // Expressions can have filled in the program's name.
            for variable in spec.environment.keys.sorted() {
                try settings.programs.check(variable: variable, of: name)
            }
            // Jobs cannot override the administrator's variables.
            variables.merge(entry.environment) { $1 }
        case .command(let command):
            entry = try settings.programs.entry(nil)
            words = command + spec.arguments
        }
        self.variables = variables
        directory = entry.directory
        timeout = [entry.timeout, context.timeout].compactMap(\.self).min()
        output = entry.output ?? settings.limits.output
    }

    private static let path = "/usr/local/bin:/usr/bin:/bin"

    /// The request to the program guard to run the program in `directory`.
    func block(in directory: String) -> [UInt8] {
        let header = deferd_guard_block(arguments: UInt32(words.count), variables: UInt32(variables.count))
        var bytes = withUnsafeBytes(of: header, Array.init)
        for text in [directory, words.first ?? ""] + words + variables.map({ "\($0.key)=\($0.value)" }) {
            bytes += text.utf8
            bytes.append(0)
        }
        return bytes
    }
}
