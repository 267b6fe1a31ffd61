import ArgumentParser
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
        The daemon keeps as much of it as limits.output allows: if the program writes faster than this one, bytes can be \
        lost. Messages then say how many, and the exit status is 74 if the program succeeded.

        Ctrl-C detaches, and the program goes on; pressed twice within a second, it cancels the job. The program runs \
        once, even if the daemon stops meanwhile. With --retries, an exit status of 75, a --timeout or a stop of the \
        daemon makes the daemon run it again.

        The exit status is that of the program, or 128 and the signal's number if a signal ended it.
        """)

    @Option(
        help: .value("json", "JSON for the program's standard input: a string as it is, or a line."),
        transform: JSON.argument)
    var input: JSON?

    @Flag(name: .customLong("stdin"), help: "Read standard input to its end, and pass it to the program.")
    var readsInput = false

    @OptionGroup(title: "Surroundings") var surroundings: CommandOptions
    @OptionGroup(title: "Job options") var options: SpecOptions
    // The parser looks for the program's options before a verb that captures words, and not after it.
    @ParentCommand var program: DeferctlCommand
    @OptionGroup var own: PlacedOptions<RunCommand>

    @Argument(
        parsing: .captureForPassthrough, help: .value("program", "The program, and its arguments."),
        completion: CommandCompletion.words)
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
    }

    /// The program and its arguments, without a `--` before the program.
    private var line: [String] { words.first == "--" ? Array(words.dropFirst()) : words }

    var global: GlobalOptions {
        var options = program.global
        options.socket = own.socket ?? options.socket
        options.json = own.json || options.json
        options.utc = own.utc || options.utc
        options.color = own.color == .auto ? options.color : own.color
        return options
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let line = line
        // Only commands run in a directory of the caller's choice.
        let isCommand = line[0].utf8.contains(UInt8(ascii: "/")) || surroundings.namesDirectory
        var input: JSONObject = ["input": self.input]
        if readsInput {
            let member = try await InputLines.member("input", of: "-")
            input[member.name] = member.value
        }
        let named: JSON? = isCommand ? .none : options.spec(source: surroundings.named(line, input))
        return try await invocation.submit(
            options, program: named,
            making: { [input] client throws(CommandFailure) in
                let isOwn = await Surroundings.mayBeSent(to: client)
                var options = options
                // Lists leave out a source with a long environment.
                if isOwn { options.label = options.label ?? line.joined(separator: " ").shortened(to: 256) }
                return options.spec(source: try surroundings.source(line, input, isOwn: isOwn, invocation.console))
            })
    }
}
