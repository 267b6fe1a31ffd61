import ArgumentParser

/// A word that a shell offers, and what it stands for.
struct Candidate: Sendable, Equatable {
    let word: String
    let description: String

    /// The candidate as the script for `shell` reads it; nil where it cannot be offered there.
    func line(for shell: CompletionShell?) -> String? {
        // A line each: what is not plain text cannot be one.
        guard !word.isEmpty, word == word.sanitized else { return nil }
        switch shell {
        case .some(.zsh):
            let escaped = word.map { ":\\".contains($0) ? "\\\($0)" : String($0) }.joined()
            return "\(escaped):\(description.sanitized)"
        case .some(.fish): return "\(word)\t\(description.sanitized)"
        default:
            // bash expands the words that its compgen is given: a tag of somebody else's must not become a command.
            return word.allSatisfy(\.isPlainInShells) ? word : nil
        }
    }
}

extension Character {
    fileprivate var isPlainInShells: Bool { isASCII && (isLetter || isNumber || "_-.,/@%+=:".contains(self)) }
}
