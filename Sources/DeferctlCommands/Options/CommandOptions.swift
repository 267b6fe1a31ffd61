import ArgumentParser
import Foundation
import Glibc
import JobModel

/// The options for the environment and the directory of a command.
struct CommandOptions: ParsableArguments {
    @Option(
        name: [.customLong("env"), .customShort("e")], parsing: .singleValue,
        help: .value("name=value", "A variable for the program's environment; may be repeated."),
        transform: { text in
            guard let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")), equals != text.startIndex else {
                throw ValidationError("it must be NAME=VALUE.")
            }
            return [String(text[..<equals]), String(text[text.utf8.index(after: equals)...])]
        })
    var variables: [[String]] = []

    @Flag(
        name: .customLong("clean-env"),
        help: "Run a command with PATH, HOME, LANG and what --env sets, not with your environment.")
    var usesCleanEnvironment = false

    @Option(
        name: [.customLong("directory"), .customShort("C")],
        help: .value("dir", "Run a command as if it was started in this directory."), completion: .directory)
    var directory: String?

    @Flag(help: "Run a command in an empty directory of its own, which is removed afterwards.") var scratch = false

    func validate() throws {
        if scratch, directory != nil { throw ValidationError("Use either --scratch or --directory, not both.") }
    }

    /// Whether the caller chose a directory, which only commands have.
    var namesDirectory: Bool { directory != nil || scratch }

    /// The source of a configured program.
    func named(_ line: [String], _ input: JSONObject = [:]) -> JSONObject {
        var source = input
        source["type"] = .string(SourceType.program.rawValue)
        source["program"] = line.first?.json
        if line.count > 1 { source["arguments"] = Array(line.dropFirst()).json }
        source["environment"] = Self.environment([:], variables)
        return source
    }

    /// The source of a command, with this process's surroundings if the daemon is the caller's own.
    func source(
        _ line: [String], _ input: JSONObject = [:], isOwn: Bool, _ console: Console
    ) throws(CommandFailure) -> JSONObject {
        var source = input
        source["type"] = .string(SourceType.program.rawValue)
        var start: String?
        if let directory { start = try Self.absolute(directory) }
        if start == nil, isOwn, !scratch { start = try Surroundings.workingDirectory() }
        source["directory"] = start.map(JSON.string)
        let program = line.first ?? ""
        guard let path = try Self.path(of: program, in: start) else {
            throw CommandFailure(
                .badData,
                "There is no program \"\(program.cut(to: 60, mark: "..."))\", neither in your PATH nor in the daemon's "
                    + "configuration; check its name.")
        }
        source["command"] = ([path] + line.dropFirst()).json
        var environment: [String: String] = [:]
        if isOwn {
            source["umask"] = .string(Surroundings.umask())
            environment = ProgramSpec.usualEnvironment(home: NSHomeDirectory())
            if !usesCleanEnvironment {
                let own = try Surroundings()
                environment = own.environment
                if !own.omitted.isEmpty {
                    let names = own.omitted.joined(separator: ", ")
                    console.say("These variables are left out, as they are not UTF-8: \(names)")
                }
            }
        }
        source["environment"] = Self.environment(environment, variables)
        return source
    }

    private static func environment(_ variables: [String: String], _ set: [[String]]) -> JSON? {
        let all = set.reduce(into: variables) { $0[$1[0]] = $1[1] }.sorted { $0.key < $1.key }
        return all.isEmpty ? .none : .object(all.reduce(into: JSONObject()) { $0.append($1.key, .string($1.value)) })
    }

    /// The absolute path of a program started in `directory`, which is looked up in PATH unless it has a slash.
    private static func path(of word: String, in directory: String?) throws(CommandFailure) -> String? {
        if word.utf8.contains(UInt8(ascii: "/")) { return try absolute(word, in: directory) }
        guard !word.isEmpty, let list = getenv("PATH") else { return nil }
        let bytes = UnsafeBufferPointer(start: list, count: strlen(list)).map(UInt8.init(bitPattern:))
        for entry in bytes.split(separator: UInt8(ascii: ":")) {
            guard let entry = String(validating: entry, as: UTF8.self) else { continue }
            let path = try absolute("\(entry)/\(word)", in: directory)
            var facts = stat()
            if access(path, X_OK) == 0, stat(path, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG { return path }
        }
        return nil
    }

    /// The path from the root, without ".". ".." stays, because the directory before it may be a link.
    static func absolute(_ path: String, in directory: String? = nil) throws(CommandFailure) -> String {
        var whole = path
        if path.utf8.first != UInt8(ascii: "/") {
            let start = if let directory { directory } else { try Surroundings.workingDirectory() }
            whole = start + "/" + path
        }
        let parts = whole.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
        return "/" + parts.filter { $0 != "." }.joined(separator: "/")
    }
}
