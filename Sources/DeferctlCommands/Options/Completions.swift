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
    private static let patience = Duration.seconds(5)
    private static let mostJobs = 100

    /// Ids of jobs in the states that the verb accepts.
    static let jobs = CompletionKind.custom { words, index, _ in
        let (verb, others) = (verb(words), Set(words.enumerated().filter { $0.offset != index }.map(\.element)))
        return await lines(words) { client in
            let filter = JobClient.Filter(states: states(for: verb).map(\.rawValue))
            let jobs = try await client.list(filter, limit: mostJobs).jobs
            return jobs.map { candidate($0, now: .now) }.filter { !others.contains($0.word) }
        }
    }

    static let queues = suspendable("queue", find: { try await $0.queues() }) { queue in
        ["running", "queued"].map { "\(queue[$0]?.int ?? 0) \($0)" }.joined(separator: ", ")
    }

    static let schedules = suspendable("schedule", find: { try await $0.schedules() }, ScheduleTable.times)

    /// Names of queues or schedules; after `suspend` and `resume`, only those that the verb would change.
    private static func suspendable(
        _ member: String, find: @Sendable @escaping (JobClient) async throws -> [JSON],
        _ describe: @Sendable @escaping (JSON) -> String
    ) -> CompletionKind {
        .custom { words, _, _ in
            let verb = words.last { ["suspend", "resume"].contains($0) }
            return await lines(words) { client in
                try await find(client).compactMap { object in
                    let isSuspended = object["suspended"]?.bool == true
                    guard let name = object[member]?.string, verb != (isSuspended ? "suspend" : "resume") else {
                        return nil
                    }
                    return Candidate(word: name, description: (isSuspended ? "suspended, " : "") + describe(object))
                }
            }
        }
    }

    static let nodes = CompletionKind.custom { words, _, _ in
        await lines(words) { client in
            try await client.nodes().map {
                Candidate(word: $0["node"]?.string ?? "", description: $0["state"]?.string ?? "")
            }
        }
    }

    static let tags = CompletionKind.custom { words, _, _ in
        await lines(words) { client in tags(of: try await client.list(limit: mostJobs).jobs) }
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

    static func tags(of jobs: [JobSnapshot]) -> [Candidate] {
        var counts: [String: Int] = [:]
        for job in jobs { for tag in job.json["tags"]?.array ?? [] { counts[tag.string ?? "", default: 0] += 1 } }
        let sorted = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        return sorted.map { Candidate(word: $0.key, description: $0.value == 1 ? "1 job" : "\($0.value) jobs") }
    }

    static func verb(_ words: [String]) -> String? {
        words.dropFirst().first { DeferctlCommand.verbs[$0] != nil }
    }

    /// The socket on the command line, which may be in quotes.
    static func socket(_ words: [String]) -> String? {
        for (index, word) in words.enumerated() {
            let isOption = word == "--socket"
            guard isOption || word.hasPrefix("--socket="),
                let value = isOption ? words.dropFirst(index + 1).first : String(word.dropFirst("--socket=".count))
            else { continue }
            guard value.count >= 2, let quote = value.first, "'\"".contains(quote), value.last == quote else {
                return value
            }
            return String(value.dropFirst().dropLast())
        }
        return nil
    }

    /// The lines for the shell, or none if `find` takes too long.
    private static func lines(
        _ words: [String], _ find: @Sendable @escaping (JobClient) async throws -> [Candidate]
    ) async -> [String] {
        guard let path = try? SocketSearch().path(flag: socket(words)) else { return [] }
        let candidates = await withTaskGroup(of: [Candidate]?.self) { group in
            group.addTask { try? await JobClient.withConnection(path: path) { try await find($0) } }
            group.addTask {
                try? await Task.sleep(for: patience)
                return nil
            }
            defer { group.cancelAll() }
            return await group.next() ?? nil
        }
        let shell = CompletionShell.requesting
        return candidates?.compactMap { $0.line(for: shell) } ?? []
    }
}

/// A word that a shell offers, with a description.
struct Candidate: Sendable, Equatable {
    let word: String
    let description: String

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
            .compactMap { Candidate(word: $0, description: "").line(for: shell) }
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
