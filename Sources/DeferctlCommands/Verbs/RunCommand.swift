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

        A command runs in the current directory, by env(1); a configured program runs where the configuration says. \
        Neither inherits your environment; both get PATH, HOME, LANG, DEFERD_JOB, DEFERD_ATTEMPT, DEFERD_RESTARTS, \
        and what --env or the configuration sets.

        What the program writes to standard output and standard error is written to the same streams here, as it comes. \
        Ctrl-C detaches, and the program goes on; pressed twice within a second, it cancels the job. The program runs \
        once, even if the daemon stops meanwhile. With --retries, an exit status of 75, a --timeout or a stop of the \
        daemon makes the daemon run it again.

        The exit status is that of the program, or 128 and the signal's number if a signal ended it.
        """)

    @Option(
        help: .value("json", "JSON for the program's standard input, on one line."),
        transform: { text in
            do { return try JSON(parsing: text, maximumDepth: 64) } catch {
                throw ValidationError("it must be JSON, such as '{\"size\": 3}' or '\"text\"'.")
            }
        })
    var input: JSON?

    @Option(
        name: [.customLong("env"), .customShort("e")], parsing: .singleValue,
        help: .value("name=value", "A variable for the program's environment; may be repeated."),
        transform: { text in
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2, !parts[0].isEmpty else { throw ValidationError("it must be NAME=VALUE.") }
            return parts
        })
    var variables: [[String]] = []

    @Option(
        name: [.customLong("directory"), .customShort("C")], help: .value("dir", "Run a command in this directory."),
        completion: .directory)
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
        let named: JSON? = isCommand ? .none : self.named(line)
        let command: JSON? = Self.path(of: program).map { self.command([$0] + line.dropFirst()) }
        guard let first = named ?? command else {
            throw CommandFailure(.badData, "There is no program \(program.sanitized); check its path.")
        }
        return try await invocation.submit(
            first, orElse: named == .none ? .none : command, options, streams: true
        ) { job in
            if !invocation.writesJSON { try await invocation.write(job, raw: true) }
        }
    }

    private func named(_ line: [String]) -> JSON {
        spec([
            "program": line.first.map(JSON.string),
            "arguments": line.count > 1 ? .array(line.dropFirst().map(JSON.string)) : JSON?.none,
        ])
    }

    private func command(_ line: [String]) -> JSON {
        // Specs have no directory, but relative paths in the arguments need one.
        var prefix = scratch ? [] : ["/usr/bin/env", "-C", Self.absolute(directory ?? ".")]
        // env(1) would take this program for a variable.
        if !scratch, line.first?.utf8.contains(UInt8(ascii: "=")) == true {
            prefix += ["/bin/sh", "-c", #"exec "$0" "$@""#]
        }
        return spec(["command": .array((prefix + line).map(JSON.string))])
    }

    private func spec(_ members: JSONObject) -> JSON {
        var source = members
        source["type"] = .string(SourceType.program.rawValue)
        source["input"] = input
        if !variables.isEmpty {
            source["environment"] = .object(variables.reduce(into: JSONObject()) { $0[$1[0]] = .string($1[1]) })
        }
        return options.spec(source: source)
    }

    /// The absolute path of a program, which is looked up in PATH unless it has a slash.
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

    /// The path from the root, without ".". ".." stays, because the directory before it may be a link.
    static func absolute(_ path: String) -> String {
        let whole = path.hasPrefix("/") ? path : FileManager.default.currentDirectoryPath + "/" + path
        return "/" + whole.split(separator: "/").filter { $0 != "." }.joined(separator: "/")
    }
}
