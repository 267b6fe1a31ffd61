import ArgumentParser

/// The options of every verb, before or after its name.
typealias GlobalOptions = PlacedOptions<DeferctlCommand>

/// Options that a command of the type `Place` reads: for each such type, the parser reads options once.
struct PlacedOptions<Place>: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The daemon's socket.",
            discussion: """
                The default is $DEFERD_SOCKET, then $XDG_RUNTIME_DIR/deferd/deferd.sock if it exists, then \
                \(DaemonSocket.systemPath).
                """, valueName: "path"), completion: .file())
    var socket: String?

    @Flag(help: "Write JSON to standard output, one value per line.") var json = false

    @Flag(help: "Show times in UTC, not in local time.") var utc = false

    @Option(
        help: ArgumentHelp(
            "When to use colours: auto, always or never.",
            discussion: "auto means on a terminal, unless NO_COLOR is set or TERM is dumb.", valueName: "when"))
    var color = ColorChoice.auto
}

enum ColorChoice: String, ExpressibleByArgument, CaseIterable, Sendable {
    case auto, always, never

    /// Whether an output is coloured; `auto` respects `NO_COLOR` (https://no-color.org).
    func isColored(isTerminal: Bool, _ variables: [String: String]) -> Bool {
        switch self {
        case .always: true
        case .never: false
        case .auto: isTerminal && variables["NO_COLOR", default: ""].isEmpty && FileOutput.hasCursor(variables)
        }
    }
}

extension ArgumentHelp {
    static func value(_ name: String, _ abstract: String) -> ArgumentHelp { ArgumentHelp(abstract, valueName: name) }
}

/// The configuration of a verb, whose help ends with an example.
func verb(_ name: String, _ abstract: String, example: String, _ discussion: String = "") -> CommandConfiguration {
    CommandConfiguration(
        commandName: name, abstract: abstract,
        discussion: discussion + (discussion.isEmpty ? "" : "\n\n") + "Example: \(example)")
}

func whole(_ range: ClosedRange<Int>) -> @Sendable (String) throws -> Int {
    { text in
        guard let value = Int(text), range.contains(value) else {
            let upper = range.upperBound == .max ? " on" : " to \(range.upperBound)"
            throw ValidationError("it must be a whole number from \(range.lowerBound)\(upper).")
        }
        return value
    }
}
