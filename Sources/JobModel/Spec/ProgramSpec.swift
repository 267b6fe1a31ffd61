/// The run of a `program` source: a configured program or a command, with its input.
package struct ProgramSpec: Sendable, Equatable {
    /// The program to run.
    package enum Subject: Sendable, Equatable {
        /// The name of a configuration entry.
        case named(String)
        /// A whole command line; its first element is an absolute path.
        case command([String])
    }

    /// The form of the standard output in the result.
    package enum Output: String, Sendable, CaseIterable {
        /// As text less one final newline, or in Base64 if it is not UTF-8.
        case text
        /// As the JSON value that it is.
        case json
        case none
    }

    package var subject: Subject
    /// Arguments appended to the command.
    package var arguments: [String]
    /// The JSON line on standard input; nil if standard input is empty.
    package var input: JSON?
    /// Variables added to the environment.
    package var environment: [String: String]
    package var output: Output

    /// Returns a command without the directory that `deferctl run` puts before it.
    package static func shown(_ command: [String]) -> ArraySlice<String> {
        command.count > 3 && command[0] == "/usr/bin/env" && command[1] == "-C" ? command[3...] : command[...]
    }

    static let members = ["type", "program", "command", "arguments", "input", "environment", "output"]
    /// The maximum number of a command's elements; the kernel bounds the whole, with arguments.
    package static let longestCommand = 1000
    package static let mostArguments = 100
    package static let mostVariables = 100
    /// The maximum size of an argument or variable, in bytes; the kernel accepts none longer.
    static let longestText = 128 << 10

    init(_ reader: MemberReader) throws(SpecError) {
        let command = try reader.strings(
            "command", atMost: Self.longestCommand, ofAtMost: Self.longestText, flaw: Self.flaw(ofText:))
        let name = try reader.string("program", flaw: Self.flaw(ofText:))
        switch (name, command) {
        case (let name?, nil):
            guard !name.isEmpty else { throw reader.fault("program", "\"program\" must not be empty.") }
            subject = .named(name)
        case (nil, let command?):
            if !reader.isOpen("command") {
                guard let path = command.first else {
                    throw reader.fault("command", "\"command\" must hold the path of a program.")
                }
                let isOpen = reader.mode == .template && TemplateText.hasExpression(path)
                guard isOpen || path.hasPrefix("/") else {
                    throw SpecError(
                        reader.pointer(to: "command").appending(0),
                        "The first element of \"command\" must be an absolute path.")
                }
            }
            subject = .command(command)
        case (nil, nil): throw reader.missing("program")
        case (_?, _?):
            throw reader.fault("command", "\"program\" and \"command\" exclude each other; leave one of them out.")
        }
        arguments =
            try reader.strings(
                "arguments", atMost: Self.mostArguments, ofAtMost: Self.longestText, flaw: Self.flaw(ofText:)) ?? []
        input = reader.object["input"]
        environment = try Self.environment(reader)
        output = try reader.choice("output") ?? .text
    }

    /// Returns why a string cannot be passed to a program: a NUL would end it.
    private static func flaw(ofText text: String) -> String? {
        text.utf8.contains(0) ? "A program's arguments and variables cannot contain NUL characters." : nil
    }

    private static func environment(_ reader: MemberReader) throws(SpecError) -> [String: String] {
        guard let written = reader.value("environment"), !reader.isOpen("environment") else { return [:] }
        let variables = try MemberReader(
            written, at: reader.pointer(to: "environment"), mode: reader.mode, isStored: reader.isStored)
        guard variables.object.members.count <= mostVariables else {
            throw reader.fault("environment", "\"environment\" holds more than \(mostVariables) variables.")
        }
        var environment: [String: String] = [:]
        for member in variables.object.members {
            if let reason = flaw(ofVariable: member.name) { throw variables.fault(member.name, reason) }
            environment[member.name] = try variables.string(
                member.name, member.value, atMost: longestText, flaw: flaw(ofText:))
        }
        return environment
    }

    /// Returns why a spec may not set this variable, or nil if it may.
    ///
    /// `LD_` variables control the dynamic linker, and `DEFERD_` variables belong to the daemon.
    package static func flaw(ofVariable name: String) -> String? {
        if name.isEmpty { return "A variable needs a name." }
        if name.utf8.contains(UInt8(ascii: "=")) || name.utf8.contains(0) {
            return "A variable's name cannot contain \"=\" or NUL characters."
        }
        if let prefix = ["LD_", "DEFERD_"].first(where: { name.utf8.starts(with: $0.utf8) }) {
            return "A variable whose name begins with \(prefix) cannot be set; choose another name."
        }
        return nil
    }
}
