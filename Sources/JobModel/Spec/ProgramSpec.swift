/// The run of a `program` source: a configured program or a command, with its input and surroundings.
package struct ProgramSpec: Sendable, Equatable {
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

    /// What the program can read from its standard input.
    package enum Input: Sendable, Equatable {
        case bytes([UInt8])
        case line(JSON)

        /// The number of ``bytes``.
        package var size: Int {
            switch self {
            case .bytes(let bytes): bytes.count
            case .line(let json): json.size + 1
            }
        }

        package var bytes: [UInt8] {
            switch self {
            case .bytes(let bytes): bytes
            case .line(let json): json.utf8 + [UInt8(ascii: "\n")]
            }
        }
    }

    package var subject: Subject
    /// Arguments appended to the command.
    package var arguments: [String]
    /// Nil if standard input is empty.
    package var input: Input?
    /// Nil for the usual variables.
    package var environment: [String: String]?
    /// The working directory of a command; nil for an empty one of its own.
    package var directory: String?
    /// The file mode creation mask.
    package var umask: UInt32
    /// Whether a command reports progress on its standard output, as configured programs do.
    package var reportsProgress: Bool
    package var output: Output

    static let members = [
        "type", "program", "command", "arguments", "input", "inputBase64", "environment", "directory", "umask",
        "progress", "output",
    ]
    /// The maximum size of an argument or variable, in bytes; the kernel accepts none longer, and bounds their sum.
    static let longestText = 128 << 10

    /// The run of a program with the surroundings that its configuration says.
    package init(_ subject: Subject, input: Input) {
        (self.subject, self.input, arguments) = (subject, input, [])
        (umask, reportsProgress, output) = (0o077, false, .none)
    }

    init(_ reader: MemberReader) throws(SpecError) {
        let command = try reader.strings(
            "command", atMost: .max, ofAtMost: Self.longestText, flaw: Self.flaw(ofText:))
        let name = try reader.string("program", flaw: Self.flaw(ofText:))
        switch (name, command) {
        case (let name?, nil):
            guard !name.isEmpty else { throw reader.fault("program", "\"program\" must not be empty.") }
            for member in ["directory", "umask", "progress"] where reader.value(member) != nil {
                throw reader.fault(
                    member, "Only a \"command\" can have a \"\(member)\"; a program has what its configuration says.")
            }
            subject = .named(name)
        case (nil, let command?):
            if !reader.isOpen("command") {
                guard let path = command.first else {
                    throw reader.fault("command", "\"command\" must hold the path of a program.")
                }
                let isOpen = reader.mode == .template && TemplateText.hasExpression(path)
                guard isOpen || path.utf8.first == UInt8(ascii: "/") else {
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
            try reader.strings("arguments", atMost: .max, ofAtMost: Self.longestText, flaw: Self.flaw(ofText:)) ?? []
        input = try Self.input(reader)
        let variables = try reader.fields(
            "environment", atMost: Self.longestText, nameFlaw: Self.flaw(ofVariable:), flaw: Self.flaw(ofText:))
        environment = variables.map { Dictionary(uniqueKeysWithValues: $0.map { ($0.name, $0.value) }) }
        output = try reader.choice("output") ?? .text
        directory = try reader.string("directory") { text in
            let isAbsolute = text.utf8.first == UInt8(ascii: "/")
            return Self.flaw(ofText: text) ?? (isAbsolute ? nil : "\"directory\" must be an absolute path.")
        }
        umask =
            try reader.parsed("umask", "\"umask\" must be one to four octal digits, at most 0777.", by: Self.mask)
            ?? 0o077
        reportsProgress = try reader.flag("progress") ?? false
    }

    private static func input(_ reader: MemberReader) throws(SpecError) -> Input? {
        let bytes = try reader.base64("inputBase64")
        // Null is a value here, too.
        guard let input = reader.object["input"] else { return bytes.map(Input.bytes) }
        guard reader.value("inputBase64") == nil else {
            throw reader.fault("inputBase64", "Give either \"input\" or \"inputBase64\", not both.")
        }
        return input.string.map { .bytes(Array($0.utf8)) } ?? .line(input)
    }

    private static func mask(_ text: String) -> UInt32? {
        let isOctal = (1...4).contains(text.utf8.count) && text.utf8.allSatisfy { (0x30...0x37).contains($0) }
        guard isOctal else { return nil }
        return UInt32(text, radix: 8).flatMap { $0 <= 0o777 ? $0 : nil }
    }

    /// Returns why a string cannot be passed to a program: a NUL would end it.
    private static func flaw(ofText text: String) -> String? {
        text.utf8.contains(0) ? "A program's arguments, variables and directory cannot contain NUL characters." : nil
    }

    /// Returns why no variable can have this name, or nil if one can.
    package static func flaw(ofVariable name: String) -> String? {
        if name.isEmpty { return "A variable needs a name." }
        if name.utf8.contains(UInt8(ascii: "=")) || name.utf8.contains(0) {
            return "A variable's name cannot contain \"=\" or NUL characters."
        }
        return nil
    }

    /// The variables of a program for which the spec and the configuration set no others.
    package static func usualEnvironment(home: String) -> [String: String] {
        ["PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": home, "LANG": "C.UTF-8"]
    }
}
