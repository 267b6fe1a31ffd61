import ArgumentParser

/// The flags that every verb takes, before its name or behind it.
struct GlobalOptions: ParsableArguments {
    @Option(
        name: .long,
        help: ArgumentHelp(
            "The daemon's socket.",
            discussion: """
                Without it: $DEFERD_SOCKET, then $XDG_RUNTIME_DIR/deferd/deferd.sock if there is one, then \
                \(SocketSearch.systemPath).
                """, valueName: "path"))
    var socket: String?

    @Flag(name: .long, help: "Write JSON to standard output, one value per line.")
    var json = false
}
