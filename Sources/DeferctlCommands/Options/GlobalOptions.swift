import ArgumentParser

/// The flags of every verb, before its name or behind it.
struct GlobalOptions: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp(
            "The daemon's socket.",
            discussion: """
                Without it: $DEFERD_SOCKET, then $XDG_RUNTIME_DIR/deferd/deferd.sock if there is one, then \
                \(SocketSearch.systemPath).
                """, valueName: "path"), completion: .file())
    var socket: String?

    @Flag(name: .long, help: "Write JSON to standard output, one value per line.")
    var json = false

    @Option(
        name: .long,
        help: ArgumentHelp(
            "Colours: auto, always or never.",
            discussion: "Left to itself on a terminal, unless NO_COLOR is set or TERM is dumb.", valueName: "when"))
    var color = ColorChoice.auto
}

/// The flags of verbs that submit a job and follow it.
struct FollowOptions: ParsableArguments {
    @Flag(name: .long, help: "Print the job's id and do not wait for it.")
    var detach = false

    @Flag(name: .shortAndLong, help: "Show no progress; messages about failures come all the same.")
    var quiet = false
}

/// The argument of verbs that act on several jobs.
struct JobIDs: ParsableArguments {
    @Argument(help: ArgumentHelp("The ids of the jobs.", valueName: "id"), completion: LiveCompletion.jobs)
    var jobs: [Int64]

    func validate() throws {
        if jobs.isEmpty { throw ValidationError("Name at least one job by its id.") }
    }
}
