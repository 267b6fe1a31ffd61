import ArgumentParser
import Foundation
import Glibc
import JobClient
import JobModel
import JobProtocol

struct RunCommand: DaemonCommand {
    static let configuration = verb(
        "run", "Run a program in the daemon as if it ran here.",
        example: "deferctl run --detach ffmpeg -i talk.mkv talk.mp4",
        """
        PROGRAM is the name of a program in the daemon's configuration, or else a command: its path, or a name that is \
        looked up in your PATH. Commands need a daemon of your own, or programs.any in the configuration. All \
        arguments after PROGRAM, options included, are passed to the program.

        In a daemon of your own, a command runs as if you had started it here: in this directory, with your environment \
        and umask. The daemon of another user gets none of these: there, a command and a configured program run in an \
        empty directory, with PATH, HOME, LANG, and what --env or the configuration sets. DEFERD_JOB, DEFERD_ATTEMPT \
        and DEFERD_RESTARTS are always set.

        What the program writes to standard output and standard error is written to the same streams here, as it comes. \
        Ctrl-C detaches, and the program goes on; pressed twice within a second, it cancels the job. The program runs \
        once, even if the daemon stops meanwhile. With --retries, an exit status of 75, a --timeout or a stop of the \
        daemon makes the daemon run it again.

        The exit status is that of the program, or 128 and the signal's number if a signal ended it.
        """)

    @Option(
        help: .value("json", "JSON for the program's standard input: a string as it is, or a line."),
        transform: { text in
            do { return try JSON(parsing: text, maximumDepth: 64) } catch {
                throw ValidationError("it must be JSON, such as '{\"size\": 3}' or '\"text\"'.")
            }
        })
    var input: JSON?

    @Flag(name: .customLong("stdin"), help: "Read standard input to its end, and pass it to the program.")
    var readsInput = false

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
    @OptionGroup(title: "Job options") var options: SpecOptions
    @OptionGroup var global: GlobalOptions

    @Argument(parsing: .captureForPassthrough, help: .value("program", "The program, and its arguments."))
    var words: [String] = []

    func validate() throws {
        guard let program = line.first else { throw ValidationError("Name the program to run.") }
        // The parser does not look for options among captured words.
        if words.first == "-h" || words.first == "--help" { throw CleanExit.helpRequest(self) }
        if words.first == "--version" { throw CleanExit.message(ProductVersion.current) }
        guard words.first == "--" || !program.hasPrefix("-") else {
            throw ValidationError("There is no option \(program); put \"--\" before a program of that name.")
        }
        if readsInput, input != nil { throw ValidationError("Use either --stdin or --input, not both.") }
        if scratch, directory != nil { throw ValidationError("Use either --scratch or --directory, not both.") }
    }

    /// The program and its arguments, without a `--` before or after the program.
    private var line: [String] {
        if words.first == "--" { return Array(words.dropFirst()) }
        return words.count > 1 && words[1] == "--" ? [words[0]] + words.dropFirst(2) : words
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let line = line
        guard let program = line.first else { return .usage }
        // Only commands run in a directory of the caller's choice.
        let isCommand = program.utf8.contains(UInt8(ascii: "/")) || directory != nil || scratch
        let input = try await standardInput()
        let named: JSON? = isCommand ? .none : options.spec(source: named(line, input))
        return try await invocation.submit(
            program: named,
            orElse: { client throws(CommandFailure) in
                try await command(line, input, for: client, invocation.console)
            }, options)
    }

    /// The members for the program's standard input.
    private func standardInput() async throws(CommandFailure) -> JSONObject {
        guard readsInput else { return ["input": input] }
        let bytes = try await InputFile.contents(of: "-", limit: RequestOptions.limit)
        guard let text = String(validating: bytes, as: UTF8.self) else {
            return ["inputBase64": .string(Base64.encode(bytes))]
        }
        return ["input": .string(text)]
    }

    private func named(_ line: [String], _ input: JSONObject) -> JSONObject {
        var source = input
        source["type"] = .string(SourceType.program.rawValue)
        source["program"] = line.first.map(JSON.string)
        if line.count > 1 { source["arguments"] = Array(line.dropFirst()).json }
        source["environment"] = Self.environment([:], variables)
        return source
    }

    /// The spec of a command, with this process's surroundings if the daemon is the caller's own.
    private func command(
        _ line: [String], _ input: JSONObject, for client: JobClient, _ console: Console
    ) async throws(CommandFailure) -> JSON {
        let isOwn = await Surroundings.mayBeSent(to: client)
        var (source, options) = (input, options)
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
            // Lists leave out a source with a long environment.
            options.label = options.label ?? line.joined(separator: " ").shortened(to: 256)
        }
        source["environment"] = Self.environment(environment, variables)
        return options.spec(source: source)
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
