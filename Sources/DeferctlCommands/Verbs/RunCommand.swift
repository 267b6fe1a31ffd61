import ArgumentParser
import Foundation
import Glibc
import JobClient
import JobModel
import JobProtocol

/// Runs a program and prints what it writes.
struct RunCommand: DaemonCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Run a program in the daemon, and print what it writes.",
        discussion: """
            PROGRAM is the name of a program in the daemon's configuration, or else a command of yours: its path, or a \
            word that is looked up in your PATH. Commands need a daemon of your own, or programs.any in the \
            configuration. What stands behind PROGRAM is the program's, options too.

            A command runs in your present directory, by env(1), a configured program where the configuration says; \
            neither with your environment, but with a clean one: PATH, HOME, LANG, DEFERD_JOB, DEFERD_ATTEMPT, and what \
            --env or the configuration sets.

            Its standard output is printed, and of one that fails the end of its standard error. An exit status of 75 \
            has it run again, --retries times at most, and so does its --timeout; no other status does.

            Example: deferctl run --detach ffmpeg -i talk.mkv talk.mp4
            """)

    @Option(help: .value("json", "What the program reads from its standard input, as one line.")) var input: String?

    @Option(
        name: [.customLong("env"), .customShort("e")], parsing: .singleValue,
        help: .value("name=value", "A variable for its environment; may be given again for more."))
    var variables: [String] = []

    @Option(
        name: [.customLong("directory"), .customShort("C")], help: .value("dir", "Run a command in this directory."),
        completion: .directory)
    var directory: String?

    @Flag(help: "Run a command in an empty directory of its own, which is removed afterwards.") var scratch = false
    @OptionGroup(title: "Job options") var options: SpecOptions
    @OptionGroup var following: FollowOptions
    @OptionGroup var global: GlobalOptions

    @Argument(parsing: .captureForPassthrough, help: .value("program", "The program, and its arguments."))
    var words: [String] = []

    func validate() throws {
        guard let program = line.first else { throw ValidationError("Say which program to run.") }
        // What is captured for the program is not looked through for these.
        if words.first == "-h" || words.first == "--help" { throw CleanExit.helpRequest(self) }
        if words.first == "--version" { throw CleanExit.message(ProductVersion.current) }
        guard words.first == "--" || !program.hasPrefix("-") else {
            throw ValidationError("There is no option \(program); put a program of that name behind \"--\".")
        }
        if scratch, directory != nil { throw ValidationError("--scratch and --directory exclude each other.") }
        if let input, Self.json(input) == .none {
            throw ValidationError("--input must be JSON, such as '{\"size\": 3}' or '\"text\"'.")
        }
        for variable in variables
        where variable.utf8.first == UInt8(ascii: "=") || !variable.utf8.contains(UInt8(ascii: "=")) {
            throw ValidationError("--env must be NAME=VALUE, not \"\(variable)\".")
        }
    }

    /// The program and its arguments, without the `--` that may stand before or behind the program.
    private var line: [String] {
        if words.first == "--" { return Array(words.dropFirst()) }
        return words.count > 1 && words[1] == "--" ? [words[0]] + words.dropFirst(2) : words
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let line = line
        guard let program = line.first else { return .usage }
        // A directory is given for commands only.
        let isCommand = program.utf8.contains(UInt8(ascii: "/")) || directory != nil || scratch
        let named: JSON? = isCommand ? .none : self.named(line)
        let command: JSON? = Self.path(of: program).map { self.command([$0] + line.dropFirst()) }
        guard let first = named ?? command else {
            throw CommandFailure(.badData, "There is no program \(program.sanitized); check its path.")
        }
        return try await Submitting(invocation: invocation, options: following).run(
            first, orElse: named == .none ? .none : command
        ) { job in
            if invocation.writesJSON { return }
            try await Self.write(job, invocation)
        }
    }

    // MARK: - The spec

    private static func json(_ text: String) -> JSON? {
        do { return try JSON(parsing: text, maximumDepth: 64) } catch { return .none }
    }

    private func named(_ line: [String]) -> JSON {
        var source = common
        source["program"] = line.first.map(JSON.string)
        if line.count > 1 { source["arguments"] = .array(line.dropFirst().map(JSON.string)) }
        return options.spec(source: source)
    }

    private func command(_ line: [String]) -> JSON {
        var source = common
        // Specs have no directory, so that what is relative in the arguments needs this.
        var prefix = scratch ? [] : ["/usr/bin/env", "-C", Self.absolute(directory ?? ".")]
        // To env(1) that is a variable.
        if !scratch, line.first?.utf8.contains(UInt8(ascii: "=")) == true {
            prefix += ["/bin/sh", "-c", #"exec "$0" "$@""#]
        }
        source["command"] = .array((prefix + line).map(JSON.string))
        return options.spec(source: source)
    }

    private var common: JSONObject {
        var source = JSONObject()
        source["type"] = .string(SourceType.program.rawValue)
        source["input"] = input.flatMap(Self.json)
        guard !variables.isEmpty else { return source }
        var environment = JSONObject()
        for variable in variables {
            let parts = variable.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            environment[String(parts[0])] = .string(String(parts[1]))
        }
        source["environment"] = .object(environment)
        return source
    }

    // MARK: - Paths

    /// The absolute path of the program that `word` names: as it is with a slash, else in one of the directories of PATH.
    private static func path(of word: String) -> String? {
        if word.utf8.contains(UInt8(ascii: "/")) { return absolute(word) }
        for directory in (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":") {
            let path = absolute("\(directory)/\(word)")
            var isDirectory: ObjCBool = false
            if access(path, X_OK) == 0, FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory),
                !isDirectory.boolValue
            {
                return path
            }
        }
        return nil
    }

    /// The same path from the root on, as lists show it: without "." in it. ".." stays, as what is before it may be a link.
    static func absolute(_ path: String) -> String {
        let whole = path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
        return "/" + whole.split(separator: "/").filter { $0 != "." }.joined(separator: "/")
    }

    // MARK: - The result

    /// Writes text as it is and JSON as JSON; the newline at the end of a text, which the result lacks, comes back.
    private static func write(_ job: JobSnapshot, _ invocation: Invocation) async throws {
        let output = ResultOutput(invocation: invocation)
        guard let text = job.result?.string else { return try await output.write(job) }
        try output.write(text: text)
    }
}
