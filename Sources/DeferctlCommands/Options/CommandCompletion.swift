import ArgumentParser
import FoundationEssentials
import Glibc

/// The completions of `run`: programs in PATH, then the paths of files.
enum CommandCompletion {
    private static let most = 1000

    static let words = CompletionKind.custom { words, index, prefix in
        let before = words.prefix(max(0, index)).drop { $0 != "run" }.dropFirst()
        let shell = CompletionShell.requesting
        return candidates(for: prefix, isProgram: before.allSatisfy { $0.hasPrefix("-") }).sorted().prefix(most)
            .compactMap { Candidate(word: $0, description: "").line(for: shell) }
    }

    static func candidates(
        for prefix: String, isProgram: Bool, path: String = ProcessInfo.processInfo.environment["PATH"] ?? ""
    ) -> Set<String> {
        guard isProgram, !prefix.contains("/") else { return paths(prefix) }
        return path.split(separator: ":").reduce(into: []) { found, directory in
            found.formUnion(
                names(in: String(directory)).filter {
                    $0.hasPrefix(prefix) && !isDirectory("\(directory)/\($0)")
                        && access("\(directory)/\($0)", X_OK) == 0
                })
        }
    }

    /// The paths that begin so; of a single directory, what is in it, as a shell puts a space behind a single word.
    private static func paths(_ prefix: String) -> Set<String> {
        let directory = prefix.lastIndex(of: "/").map { String(prefix[...$0]) } ?? ""
        let found = names(in: directory.isEmpty ? "." : directory).map { directory + $0 }.filter {
            $0.hasPrefix(prefix)
        }
        if found.count == 1, isDirectory(found[0]) {
            let inner = names(in: found[0])
            if !inner.isEmpty { return Set(inner.map { "\(found[0])/\($0)" }) }
        }
        return Set(found)
    }

    private static func names(in directory: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    }

    private static func isDirectory(_ path: String) -> Bool {
        var facts = stat()
        return stat(path, &facts) == 0 && facts.st_mode & S_IFMT == S_IFDIR
    }
}
