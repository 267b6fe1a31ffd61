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
                programs.allowsAny = try Self.flag(pair)
                continue
            }
            guard (1...64).contains(pair.name.utf8.count) else {
                throw Misfit(reason: "holds a name that is not 1 to 64 bytes long", line: pair.line)
            }
            programs.entries[pair.name] = try Self.program(pair)
        }
        return programs
    }

    /// `true` or `false`.
    func flag() throws(Misfit) -> Bool { try Self.flag(Member(name: "", value: try text())) }

    private static func flag(_ member: Member) throws(Misfit) -> Bool {
        guard member.inner.isEmpty, member.list == nil, ["true", "false"].contains(member.value) else {
            throw Misfit(
                reason: "\(member.name.isEmpty ? "" : "\(member.name): ")must be true or false", line: member.line)
        }
        return member.value == "true"
    }

    private static func program(_ pair: Member) throws(Misfit) -> ProgramSettings.Entry {
        var entry = ProgramSettings.Entry()
        if pair.inner.isEmpty, !pair.value.isEmpty { entry.command = [pair.value] }
        for member in pair.inner {
            func misfit(_ reason: String) -> Misfit {
                Misfit(reason: "\(pair.name).\(member.name): \(reason)", line: member.line)
            }
            let value = member.list.map(ConfigurationValue.list) ?? .scalar(member.value)
            do throws(Misfit) {
                switch member.name {
                case "command": entry.command = member.list ?? [member.value]
                case "timeout": entry.timeout = try value.seconds(0.001...31_622_400)
                case "directory": entry.directory = try value.path()
                case "output": entry.output = try value.integer(1...1 << 32)
                case "environment": entry.environment = try environment(member)
                default:
                    throw Misfit(reason: "is not known; known are command, timeout, directory, environment and output")
                }
            } catch {
                throw error.line == nil ? misfit(error.reason) : error
            }
        }
        guard let path = entry.command.first, path.hasPrefix("/") else {
            throw Misfit(
                reason: "\(pair.name): needs \"command\", a list whose first element is the absolute path of a program",
                line: pair.inner.first { $0.name == "command" }?.line ?? pair.line)
        }
        guard entry.command.count <= ProgramSpec.longestCommand, !entry.command.contains(where: { $0.utf8.contains(0) })
        else {
            throw Misfit(
                reason:
                    "\(pair.name): \"command\" has at most \(ProgramSpec.longestCommand) elements, and none holds NUL",
                line: pair.line)
        }
        return entry
    }

    private static func environment(_ member: Member) throws(Misfit) -> [String: String] {
        guard member.list == nil, member.value.isEmpty else { throw Misfit(reason: "must be names with values") }
        var environment: [String: String] = [:]
        for variable in member.inner {
            // The administrator may well tell the dynamic linker something.
            let flaw = ProgramSpec.flaw(ofVariable: variable.name.hasPrefix("LD_") ? "LD" : variable.name)
            guard flaw == nil, !variable.value.utf8.contains(0), variable.list == nil else {
                throw Misfit(
                    reason:
                        "\(member.name): \"\(variable.name)\" cannot be set: \(flaw ?? "its value must be one text")",
                    line: variable.line)
            }
            environment[variable.name] = variable.value
        }
        return environment
    }
}
