import ArgumentParser
import FoundationEssentials
import Glibc
import JobClient
import JobModel

/// The completions that a shell gets from the daemon: ids of jobs, names of queues, schedules and nodes, tags.
///
/// The user waits for them after pressing Tab. They are empty if no daemon runs, or if it does not answer within five
/// seconds: a daemon that is merely busy answers sooner.
enum LiveCompletion {
    private static let patience: UInt32 = 5
    private static let mostJobs = 100

    static let jobs = CompletionKind.custom { words, index, _ in
        let (verb, others) = (verb(words), Set(words.enumerated().filter { $0.offset != index }.map(\.element)))
        return await lines(words) { client in
            let filter = JobClient.Filter(states: states(for: verb).map(\.rawValue))
            let jobs = try await client.list(filter, limit: mostJobs).jobs
            return jobs.map { candidate($0, now: .now) }.filter { !others.contains($0.word) }
        }
    }

    static let queues = names("queue") { try await $0.queues() }
    static let schedules = names("schedule") { try await $0.schedules() }
    static let nodes = names("node") { try await $0.nodes() }

    private static func names(
        _ member: String, of find: @Sendable @escaping (JobClient) async throws -> [JSON]
    ) -> CompletionKind {
        .custom { words, _, _ in
            await lines(words) { try await find($0).map { Candidate(word: $0[member]?.string ?? "") } }
        }
    }

    static let tags = CompletionKind.custom { words, _, _ in
        await lines(words) { client in
            let jobs = try await client.list(limit: mostJobs).jobs
            let tags = jobs.flatMap { $0.json["tags"]?.array ?? [] }.compactMap(\.string)
            return Set(tags).sorted().map { Candidate(word: $0) }
        }
    }

    /// The states of jobs that a verb accepts; empty for all.
    static func states(for verb: String?) -> [JobState] {
        switch verb {
        case "watch", "wait", "cancel", "set": [.running, .scheduled, .held, .queued]
        case "hold": [.running, .scheduled, .queued]
        case "release": [.scheduled, .held]
        case "retry": [.failed, .cancelled]
        case "remove": [.succeeded, .failed, .cancelled]
        case "result": [.succeeded, .failed]
        default: []
        }
    }

    static func candidate(_ job: JobSnapshot, now: Timestamp) -> Candidate {
        let text = JobText(job, now: now)
        return Candidate(word: String(job.id), description: "\(text.stateAndDetail) \(text.title.cutInside(to: 60))")
    }

    static func verb(_ words: [String]) -> String? {
        words.dropFirst().first { DeferctlCommand.verbs[$0] != nil }
    }

    static func socket(_ words: [String]) -> String? {
        if let word = words.first(where: { $0.hasPrefix("--socket=") }) {
            return String(word.dropFirst("--socket=".count))
        }
        return words.drop { $0 != "--socket" }.dropFirst().first
    }

    /// The lines for the shell, or none if `find` takes too long.
    private static func lines(
        _ words: [String], _ find: @Sendable @escaping (JobClient) async throws -> [Candidate]
    ) async -> [String] {
        signal(SIGALRM) { _ in _exit(0) }
        alarm(patience)
        let path = socket(words) ?? JobClient.defaultPath
        let candidates = try? await JobClient.withConnection(path: path) { try await find($0) }
        return candidates?.compactMap { $0.line(for: CompletionShell.requesting) } ?? []
    }
}

/// A word that a shell offers, with a description.
struct Candidate: Sendable, Equatable {
    let word: String
    var description = ""

    /// The line that the script for `shell` reads; nil if the word cannot be offered safely.
    func line(for shell: CompletionShell?) -> String? {
        guard !word.isEmpty, word == word.sanitized else { return nil }
        switch shell {
        case .some(.zsh):
            let escaped = word.map { ":\\".contains($0) ? "\\\($0)" : String($0) }.joined()
            return "\(escaped):\(description.sanitized)"
        case .some(.fish): return "\(word)\t\(description.sanitized)"
        default:
            // bash expands the words given to compgen: another user's tag must not become a command.
            return word.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "_-.,/@%+=:".contains($0)) }
                ? word : nil
        }
    }
}

/// The completions of `run`: programs in PATH, then the paths of files.
enum CommandCompletion {
    private static let most = 1000

    static let words = CompletionKind.custom { words, index, prefix in
        let before = words.prefix(max(0, index)).drop { $0 != "run" }.dropFirst()
        let shell = CompletionShell.requesting
        return candidates(for: prefix, isProgram: before.allSatisfy { $0.hasPrefix("-") }).sorted().prefix(most)
            .compactMap { Candidate(word: $0).line(for: shell) }
    }

    static func candidates(
        for prefix: String, isProgram: Bool, path: String = ProcessInfo.processInfo.environment["PATH"] ?? ""
    ) -> Set<String> {
        guard isProgram, !prefix.contains("/") else { return paths(prefix) }
        return path.split(separator: ":").reduce(into: []) { found, directory in
            found.formUnion(
                names(in: String(directory)).filter {
                    $0.hasPrefix(prefix) && !isFile("\(directory)/\($0)", S_IFDIR)
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
        if found.count == 1, isFile(found[0], S_IFDIR) {
            let inner = names(in: found[0])
            if !inner.isEmpty { return Set(inner.map { "\(found[0])/\($0)" }) }
        }
        return Set(found)
    }

    private static func names(in directory: String) -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
    }
}
