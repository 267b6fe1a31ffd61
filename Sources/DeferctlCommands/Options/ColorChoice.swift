import ArgumentParser

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
