import CLinux
import Foundation
import Glibc
import JobModel

/// A program as it is started: its command line, its environment and its bounds.
struct ProgramCommand: Sendable {
    /// The command and the arguments; the first is the path of the program.
    let words: [String]
    /// In the order in which they are handed over; each name stands there once.
    let variables: [(name: String, value: String)]
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
        var variables = Variables()
        for (name, value) in Self.surroundings { variables.set(name, value) }
        variables.set("DEFERD_JOB", String(context.job))
        variables.set("DEFERD_ATTEMPT", String(context.attempt))
        let entry: ProgramSettings.Entry
        switch spec.subject {
        case .named(let name):
            entry = try settings.entry(name)
            words = entry.command + spec.arguments
            for variable in spec.environment { variables.set(variable.name, variable.value) }
            // What the configuration says stands: the administrator has written the program for it. So does PATH, by which a
            // shell script finds what it runs.
            variables.set("PATH", Self.path)
            for (name, value) in entry.environment.sorted(by: { $0.key < $1.key }) { variables.set(name, value) }
        case .command(let command):
            try settings.checkAny()
            entry = ProgramSettings.Entry()
            words = command + spec.arguments
            for variable in spec.environment { variables.set(variable.name, variable.value) }
        }
        self.variables = variables.list
        directory = entry.directory
        timeout = [entry.timeout, context.timeout].compactMap(\.self).min()
        output = min(entry.output ?? limits.body, limits.body)
    }

    private static let path = "/usr/local/bin:/usr/bin:/bin"

    private static let surroundings: [(String, String)] = [
        ("PATH", path), ("HOME", NSHomeDirectory()), ("LANG", "C.UTF-8"),
    ]

    /// Variables of which a later one of a name replaces an earlier one.
    private struct Variables {
        private(set) var list: [(name: String, value: String)] = []

        mutating func set(_ name: String, _ value: String) {
            if let index = list.firstIndex(where: { $0.name == name }) {
                list[index].value = value
            } else {
                list.append((name, value))
            }
        }
    }

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
        for variable in variables { add("\(variable.name)=\(variable.value)") }
        return bytes
    }
}
