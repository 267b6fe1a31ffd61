import DataSources
import JobModel
import YAML

/// The value of `programs`: the programs by name, and whether any other may be run.
struct ProgramEntries: Sendable, Equatable {
    var entries: [String: ProgramSettings.Entry] = [:]
    /// The lines of the programs in the file.
    var lines: [String: Int] = [:]
    var allowsAny: Bool?

    /// These programs, unless `later` sets others: a variable replaces all programs of a file.
    func overridden(by later: ProgramEntries) -> ProgramEntries {
        var programs = later.entries.isEmpty ? self : later
        programs.allowsAny = later.allowsAny ?? allowsAny
        return programs
    }
}

extension ConfigurationValue {
    private static let programSettings: [ConfigurationSetting<ProgramSettings.Entry>] = [
        .init("command", \.command) { try $0.command() },
        .init("timeout", \.timeout) { try $0.seconds(0.001...31_622_400) },
        .init("directory", \.directory) { try $0.path() },
        .init("environment", \.environment) { try $0.variables() },
        .init("variables", \.variables) { try $0.variableNames() },
        .init("output", \.output) { try $0.integer(2...1 << 32) },
    ]

    /// Programs by name, and `any`; in a variable, `name=path` separated by commas.
    func programs() throws -> ProgramEntries {
        var programs = ProgramEntries()
        try forEach("must be names with commands, such as \"resize: {command: [/usr/local/bin/resize]}\"") { member in
            if member.name == "any" {
                programs.allowsAny = try member.value.flag()
                return
            }
            try member.checkName()
            var entry = ProgramSettings.Entry()
            try member.value.read(into: &entry, Self.programSettings)
            guard !entry.command.isEmpty else { throw ConfigurationErrors("needs \"command\"") }
            programs.entries[member.name] = entry
            programs.lines[member.name] = member.line
        }
        return programs
    }

    /// The name of a program, or a command, whose first element is an absolute path.
    func hook() throws -> ProgramSpec.Subject? {
        try single == nil ? .command(command()) : optionalText().map { ProgramSpec.Subject.named($0) }
    }

    private func command() throws -> [String] {
        let command = try single.map { [$0] } ?? strings()
        guard command.first?.hasPrefix("/") == true, !command.contains(where: { $0.utf8.contains(0) }) else {
            throw ConfigurationErrors("must be a list without NUL that begins with the absolute path of a program")
        }
        return command
    }

    private func variableNames() throws -> [String] {
        try strings().map { name in
            if let flaw = Self.flaw(ofVariable: name, reserved: ["LD_", "DEFERD_"]) {
                throw ConfigurationErrors("contains \"\(name)\": \(flaw)")
            }
            return name
        }
    }

    /// `LD_` variables control the dynamic linker, and `DEFERD_` variables belong to the daemon.
    private static func flaw(ofVariable name: String, reserved: [String]) -> String? {
        ProgramSpec.flaw(ofVariable: name)
            ?? reserved.first(where: name.hasPrefix).map { "Names that begin with \($0) are reserved." }
    }

    private func variables() throws -> [String: String] {
        guard let members else { throw ConfigurationErrors("must be names with values") }
        return try members.reduce(into: [:]) { variables, variable in
            try variable.located {
                // An administrator may configure the dynamic linker.
                let flaw = Self.flaw(ofVariable: variable.name, reserved: ["DEFERD_"])
                guard flaw == nil, let text = variable.value.single, !text.utf8.contains(0) else {
                    throw ConfigurationErrors("cannot be set: \(flaw ?? "its value must be one text")")
                }
                variables[variable.name] = text
            }
        }
    }
}
