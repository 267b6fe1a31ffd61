import ArgumentParser

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

    private static func unknown(_ word: String, among verbs: [String], of command: String) -> CommandFailure {
        let nearest = verbs.map { (verb: $0, distance: distance(word, $0)) }.min { $0.distance < $1.distance }
        let hint =
            nearest.flatMap { $0.distance <= max(1, $0.verb.count / 3) ? " Did you mean \($0.verb)?" : nil } ?? ""
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
            } else if argument != "--json", !argument.hasPrefix("--socket="), !argument.hasPrefix("--color=") {
                return nil
            }
        }
        return nil
    }

    /// The number of letters to change, insert, delete or swap with their neighbours.
    private static func distance(_ left: String, _ right: String) -> Int {
        let (a, b) = (Array(left.utf8.prefix(64)), Array(right.utf8))
        var before: [Int] = []
        var last = Array(0...b.count)
        for i in a.indices {
            var row = [i + 1]
            for j in b.indices {
                var least = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { least = min(least, before[j - 1] + 1) }
                row.append(least)
            }
            (before, last) = (last, row)
        }
        return last[b.count]
    }
}
