import ArgumentParser

/// The flags of every verb, before its name or behind it.
struct GlobalOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The daemon's socket.",
            discussion: """
                Without it: $DEFERD_SOCKET, then $XDG_RUNTIME_DIR/deferd/deferd.sock if there is one, then \
                \(SocketSearch.systemPath).
                """, valueName: "path"), completion: .file())
    var socket: String?

    @Flag(help: "Write JSON to standard output, one value per line.") var json = false

    @Option(
        help: ArgumentHelp(
            "Colours: auto, always or never.",
            discussion: "Left to itself on a terminal, unless NO_COLOR is set or TERM is dumb.", valueName: "when"))
    var color = ColorChoice.auto
}

/// The flags of verbs that submit a job and follow it.
struct FollowOptions: ParsableArguments {
    @Flag(help: "Print the job's id and do not wait for it.") var detach = false
    @Flag(name: .shortAndLong, help: "Show no progress; messages about failures come all the same.") var quiet = false
}

/// The argument of verbs that act on several jobs.
struct JobIDs: ParsableArguments {
    @Argument(help: .value("id", "The ids of the jobs."), completion: LiveCompletion.jobs) var jobs: [Int64]

    func validate() throws {
        if jobs.isEmpty { throw ValidationError("Name at least one job by its id.") }
    }
}

/// When colours are shown: the choices of `--color`.
enum ColorChoice: String, ExpressibleByArgument, CaseIterable, Sendable {
    case auto, always, never

    /// Whether what goes to an output is coloured. Left to itself it is on a terminal that can, unless `NO_COLOR` is set
    /// (https://no-color.org).
    func isColored(isTerminal: Bool, _ variables: [String: String]) -> Bool {
        switch self {
        case .always: true
        case .never: false
        case .auto: isTerminal && variables["NO_COLOR", default: ""].isEmpty && FileOutput.hasCursor(variables)
        }
    }
}

extension ArgumentHelp {
    /// What an option or argument is for, with a word for its value.
    static func value(_ name: String, _ abstract: String) -> ArgumentHelp {
        ArgumentHelp(abstract, valueName: name)
    }
}
