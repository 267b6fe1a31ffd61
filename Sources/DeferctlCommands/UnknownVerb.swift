import ArgumentParser
import JobModel

/// The check of the verbs on the command line, because the parser calls a misspelt one an unexpected argument.
enum UnknownVerb {
    /// Throws if the verb, or the second verb of a verb that has verbs of its own, is unknown; suggests the nearest one.
    static func refuse(_ arguments: some Sequence<String>) throws(CommandFailure) {
        var rest = Array(arguments)[...]
        guard var word = nextWord(&rest) else { return }
        // For an unknown verb, the parser's own "help" would show the help of the program.
        if word == "help" {
            guard let verb = nextWord(&rest) else { return }
            word = verb
        }
        guard let verbs = DeferctlCommand.verbs[word] else {
            throw unknown(word, among: DeferctlCommand.verbs.keys.sorted(), of: "deferctl")
        }
        guard !verbs.isEmpty, let second = nextWord(&rest), !verbs.contains(second) else { return }
        throw unknown(second, among: verbs, of: "deferctl \(word)")
    }

    /// Verbs that have moved.
    private static let moved = ["queues": "queue list", "suspend": "queue suspend", "resume": "queue resume"]

    private static func unknown(_ word: String, among verbs: [String], of command: String) -> CommandFailure {
        let nearest = moved[word].map { "deferctl \($0)" } ?? word.nearest(among: verbs)
        let hint = nearest.map { " Did you mean \($0)?" } ?? ""
        let whose = command == "deferctl" ? "" : " of \(command)"
        return CommandFailure(
            .usage,
            "There is no verb \"\(word.cut(to: 60, mark: "..."))\"\(whose).\(hint) See all with: \(command) --help")
    }

    /// Removes the arguments up to the first word, and returns it; nil if an option that only the parser knows comes before.
    private static func nextWord(_ arguments: inout ArraySlice<String>) -> String? {
        while let argument = arguments.popFirst() {
            if ["--socket", "--color"].contains(argument) {
                _ = arguments.popFirst()
            } else if !argument.hasPrefix("-") {
                return argument
            } else if !["--json", "--utc"].contains(argument), !argument.hasPrefix("--socket="),
                !argument.hasPrefix("--color=")
            {
                return nil
            }
        }
        return nil
    }
}
