import ArgumentParser

/// A word where a verb should stand.
enum UnknownVerb {
    /// Throws where the first of these arguments that is no option is no verb, or the one behind a verb that has verbs of its
    /// own is none of those, and names the verb that it may have been.
    static func refuse(_ arguments: some Sequence<String>) throws(CommandFailure) {
        var rest = Array(arguments)[...]
        guard var word = nextWord(&rest) else { return }
        // "help" is the parser's own, which shows the program's help for what is no verb.
        if word == "help" {
            guard let verb = nextWord(&rest) else { return }
            word = verb
        }
        guard DeferctlCommand.verbs.contains(word) else {
            throw unknown(word, among: DeferctlCommand.verbs, of: "deferctl")
        }
        let verb = DeferctlCommand.configuration.groupedSubcommands.flatMap { $0.subcommands }.first {
            $0.configuration.commandName == word
        }
        let verbs = verb?.configuration.subcommands.compactMap { $0.configuration.commandName } ?? []
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

    /// Removes the arguments up to the first that is no option, and gives that.
    private static func nextWord(_ arguments: inout ArraySlice<String>) -> String? {
        while let argument = arguments.popFirst() {
            if ["--socket", "--color"].contains(argument) {
                _ = arguments.popFirst()
            } else if !argument.hasPrefix("-") {
                return argument
            } else if !["--json"].contains(argument), !argument.hasPrefix("--socket="), !argument.hasPrefix("--color=")
            {
                // An option that only the parser knows, or a request of a shell for completions.
                return nil
            }
        }
        return nil
    }

    /// How many letters have to be changed, put in, taken out or swapped with their neighbour.
    static func distance(_ left: String, _ right: String) -> Int {
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
