import ArgumentParser
import FoundationEssentials
import Glibc
import JobClient
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
        if start == nil, isOwn, !scratch { start = try Surroundings.workingDirectory(or: "name one with -C") }
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
            environment = ProgramSpec.usualEnvironment(home: FileManager.default.homeDirectoryForCurrentUser.path)
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
        let entries = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
        for entry in entries where !word.isEmpty {
            let path = try absolute("\(entry)/\(word)", in: directory)
            if access(path, X_OK) == 0, isFile(path, S_IFREG) { return path }
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

/// The environment, working directory and umask of this process, which a command runs in if the daemon is the user's own.
struct Surroundings: Sendable {
    /// The variables of this process that are UTF-8.
    let environment: [String: String]
    /// The names of the other variables, escaped.
    let omitted: [String]

    /// Reads the variables that this process was started with.
    init() throws(CommandFailure) {
        guard let bytes = FileManager.default.contents(atPath: "/proc/self/environ") else {
            throw CommandFailure(
                .bug, "/proc/self/environ cannot be read, so the environment is unknown; use --clean-env.")
        }
        var (variables, omitted) = ([String: String](), [String]())
        for line in bytes.split(separator: 0) {
            let parts = line.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty else { continue }
            guard let name = String(validating: parts[0], as: UTF8.self),
                let value = String(validating: parts[1], as: UTF8.self)
            else {
                omitted.append(String(escaping: parts[0]))
                continue
            }
            // As getenv(3) finds it.
            if variables[name] == nil { variables[name] = value }
        }
        (environment, self.omitted) = (variables, omitted)
    }

    /// The path of this process's directory; without one, the error says what to do, or else `other`.
    static func workingDirectory(or other: String = "name an absolute path") throws(CommandFailure) -> String {
        guard let path = getcwd(nil, 0) else {
            throw CommandFailure(
                .badData,
                "The current directory cannot be found (\(String(cString: strerror(errno)))); change to one that exists, or "
                    + "\(other).")
        }
        defer { free(path) }
        guard let text = String(validatingCString: path) else {
            throw CommandFailure.notUTF8("The current directory", path, "change to another, or \(other).")
        }
        return text
    }

    /// The path of a transfer as the daemon gets it: one of the caller's own gets a path in this process's directory, without
    /// symbolic links, which the daemon does not follow. A link to a directory is that directory, and one to a file that
    /// `isRead` is that file.
    static func path(_ text: String, isOwn: Bool, isRead: Bool = false) throws(CommandFailure) -> String {
        let home = text.hasPrefix("~/") ? ProcessInfo.processInfo.environment["HOME"] : nil
        let path = home.map { $0 + text.dropFirst() } ?? text
        guard isOwn else { return path }
        let whole = try CommandOptions.absolute(path)
        if isRead || isFile(whole, S_IFDIR), let real = try real(whole) { return real }
        return try inRealDirectory(whole)
    }

    /// The absolute path without symbolic links in its directories, as far as they exist: the daemon makes the others.
    private static func inRealDirectory(_ path: String) throws(CommandFailure) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return path }
        let parent = String(path[..<slash])
        let directory = if let real = try real(parent + "/") { real } else { try inRealDirectory(parent) }
        return (directory == "/" ? "" : directory) + path[slash...]
    }

    /// The path without symbolic links; nil if there is nothing.
    private static func real(_ path: String) throws(CommandFailure) -> String? {
        guard let real = realpath(path, nil) else { return nil }
        defer { free(real) }
        guard let text = String(validatingCString: real) else {
            throw CommandFailure.notUTF8("The path", real, "name another.")
        }
        return text
    }

    /// The umask of this process, in octal digits.
    static func umask() -> String {
        // The call that reads it also sets it.
        let mask = Glibc.umask(0o777)
        _ = Glibc.umask(mask)
        return String(mask, radix: 8)
    }

    /// Whether it is the caller's own daemon, and takes any path of theirs.
    static func takesPaths(_ client: JobClient) async throws(CommandFailure) -> Bool {
        guard await mayBeSent(to: client) else { return false }
        do { return try await client.info()["instance"] == "user" } catch { throw CommandFailure(error) }
    }

    /// Whether the daemon belongs to the caller, who then trusts it with the environment.
    ///
    /// systemd itself, process 1, listens for the system's daemon, which runs as another user.
    static func mayBeSent(to client: JobClient) async -> Bool {
        guard let peer = await client.peer else { return false }
        return peer.uid == geteuid() && peer.pid > 1
    }
}

extension CommandFailure {
    static func notUTF8(_ subject: String, _ text: UnsafePointer<CChar>, _ advice: String) -> CommandFailure {
        let bytes = UnsafeBufferPointer(start: text, count: strlen(text)).map(UInt8.init(bitPattern:))
        return CommandFailure(
            .badData, "\(subject) \"\(String(escaping: bytes))\" is not UTF-8 and cannot be sent; \(advice)")
    }
}

extension String {
    /// The text of bytes that are not UTF-8: all but ASCII is escaped.
    init(escaping bytes: some Sequence<UInt8>) {
        self = bytes.map { byte in
            byte < 0x80 ? String(Unicode.Scalar(byte)) : "\\x" + String(byte, radix: 16)
        }.joined()
    }
}
