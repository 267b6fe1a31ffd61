import DataSources
import JobModel

/// What `programs` says: the programs by name, and whether any other may be run.
struct ProgramEntries: Sendable, Equatable {
    var entries: [String: ProgramSettings.Entry] = [:]
    /// Nil where it does not say.
    var allowsAny: Bool?

    /// What `later` sets counts: its programs replace all of these together.
    func overridden(by later: ProgramEntries) -> ProgramEntries {
        ProgramEntries(
            entries: later.entries.isEmpty ? entries : later.entries, allowsAny: later.allowsAny ?? allowsAny)
    }
}

extension ConfigurationValue {
    /// Programs by name, each with a map of `command`, `timeout`, `directory`, `environment` and `output`, and `any`; in a
    /// variable `name=path` separated by commas.
    func programs() throws(Misfit) -> ProgramEntries {
        var programs = ProgramEntries()
        for pair in try pairs("must be names with commands, such as \"resize: {command: [/usr/local/bin/resize]}\"") {
            if pair.name == "any" {
                programs.allowsAny = try pair.read(ConfigurationValue.flag)
                continue
            }
            guard (1...64).contains(pair.name.utf8.count) else {
                throw Misfit(reason: "holds a name that is not 1 to 64 bytes long", line: pair.line)
            }
            programs.entries[pair.name] = try Self.program(pair)
        }
        return programs
    }

    private static func program(_ pair: Member) throws(Misfit) -> ProgramSettings.Entry {
        var (entry, commandLine) = (ProgramSettings.Entry(), pair.line)
        if pair.value.members == nil { entry.command = try pair.read(command) }
        for member in pair.value.members ?? [] {
            switch member.name {
            case "command":
                entry.command = try member.read(of: pair.name, command)
                commandLine = member.line
            case "timeout":
                entry.timeout = try member.read(of: pair.name) { value in
                    { () throws(Misfit) in try value.seconds(0.001...31_622_400) }
                }
            case "directory": entry.directory = try member.read(of: pair.name, ConfigurationValue.path)
            case "output":
                entry.output = try member.read(of: pair.name) { value in
                    { () throws(Misfit) in try value.integer(1...1 << 32) }
                }
            case "environment": entry.environment = try member.read(of: pair.name, variables)
            default:
                throw member.misfit(
                    "is not known; known are command, timeout, directory, environment and output", of: pair.name)
            }
        }
        let most = ProgramSpec.longestCommand
        guard let path = entry.command.first, path.hasPrefix("/"), entry.command.count <= most,
            !entry.command.contains(where: { $0.utf8.contains(0) })
        else {
            throw Misfit(
                reason: "\(pair.name): needs \"command\", a list of at most \(most) elements without NUL, the first of "
                    + "which is the absolute path of a program", line: commandLine)
        }
        return entry
    }

    private func command() throws(Misfit) -> [String] {
        if case .scalar(let path) = self { [path] } else { try strings() }
    }

    private func variables() throws(Misfit) -> [String: String] {
        guard let members else { throw Misfit(reason: "must be names with values") }
        var variables: [String: String] = [:]
        for variable in members {
            // The administrator may well tell the dynamic linker something.
            let flaw = ProgramSpec.flaw(ofVariable: variable.name.hasPrefix("LD_") ? "LD" : variable.name)
            guard flaw == nil, case .scalar(let text) = variable.value, !text.utf8.contains(0) else {
                throw variable.misfit("cannot be set: \(flaw ?? "its value must be one text")")
            }
            variables[variable.name] = text
        }
        return variables
    }
}
