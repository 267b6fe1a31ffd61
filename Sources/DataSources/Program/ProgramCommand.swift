import CLinux
import Foundation
import Glibc
import JobModel

/// A program as it is started: its command line, its environment and its bounds.
struct ProgramCommand: Sendable {
    /// The command and the arguments; the first is the path of the program.
    let words: [String]
    /// Its environment.
    let variables: [String: String]
    /// Where it runs; nil for an empty directory of its own.
    let directory: String?
    /// Seconds that it may run, or nil.
    let timeout: Double?
    /// Bytes of its output.
    let output: Int

    /// What `spec` runs by `settings`.
    init(
        _ spec: ProgramSpec, _ context: SourceContext, settings: ProgramSettings, limits: JobLimits
    ) throws(JobError) {
        var variables = [
            "PATH": Self.path, "HOME": NSHomeDirectory(), "LANG": "C.UTF-8", "DEFERD_JOB": String(context.job),
            "DEFERD_ATTEMPT": String(context.attempt),
        ]
        for variable in spec.environment { variables[variable.name] = variable.value }
        let entry: ProgramSettings.Entry
        switch spec.subject {
        case .named(let name):
            entry = try settings.entry(name)
            words = entry.command + spec.arguments
            // What the configuration says stands: the administrator has written the program for it. So does PATH, by which a
            // shell script finds what it runs.
            variables["PATH"] = Self.path
            variables.merge(entry.environment) { $1 }
        case .command(let command):
            try settings.checkAny()
            entry = ProgramSettings.Entry()
            words = command + spec.arguments
        }
        self.variables = variables
        directory = entry.directory
        timeout = [entry.timeout, context.timeout].compactMap(\.self).min()
        output = min(entry.output ?? limits.body, limits.body)
    }

    private static let path = "/usr/local/bin:/usr/bin:/bin"

    /// What the program guard is given: where to run what.
    func block(in directory: String) -> [UInt8] {
        var bytes: [UInt8] = []
        withUnsafeBytes(
            of: deferd_guard_block(arguments: UInt32(words.count), variables: UInt32(variables.count))
        ) { bytes += $0 }
        func add(_ text: String) {
            bytes += text.utf8
            bytes.append(0)
        }
        add(directory)
        add(words.first ?? "")
        for word in words { add(word) }
        for (name, value) in variables { add("\(name)=\(value)") }
        return bytes
    }
}
