import ArgumentParser
import JobClient
import JobModel

/// What a shell offers that only the daemon knows: ids of jobs, names of queues, tags.
///
/// Whoever presses Tab waits for it, so it takes half a second at most, and is silent where no daemon answers.
enum LiveCompletion {
    private static let patience = Duration.milliseconds(500)
    /// The most jobs that are asked for.
    private static let mostJobs = 100

    /// Ids of jobs in the states that the verb on the command line is for.
    static let jobs = CompletionKind.custom { words, index, _ in
        let (verb, others) = (verb(words), Set(words.enumerated().filter { $0.offset != index }.map(\.element)))
        return await lines(words) { client in
            var filter = JobClient.Filter()
            filter.states = states(for: verb).map(\.rawValue)
            let jobs = try await client.list(filter, limit: mostJobs).jobs
            return jobs.map { candidate($0, now: .now) }.filter { !others.contains($0.word) }
        }
    }

    /// Names of queues; of those only that a verb can suspend or resume.
    static let queues = suspendable("queue", find: { try await $0.queues() }) { queue in
        ["running", "queued"].map { "\(queue[$0]?.int ?? 0) \($0)" }.joined(separator: ", ")
    }

    /// Names of schedules; of those only that a verb can suspend or resume.
    static let schedules = suspendable("schedule", find: { try await $0.schedules() }, ScheduleTable.times)

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

    /// The tags of the newest jobs.
    static let tags = CompletionKind.custom { words, _, _ in
        await lines(words) { client in tags(of: try await client.list(limit: mostJobs).jobs) }
    }

    /// The states of the jobs that a verb is for; none means all.
    static func states(for verb: String?) -> [JobState] {
        switch verb {
        case "watch", "wait", "cancel": [.running, .scheduled, .queued]
        case "retry": [.failed, .cancelled]
        case "remove": [.succeeded, .failed, .cancelled]
        case "result": [.succeeded, .failed]
        default: []
        }
    }

    static func candidate(_ job: JobSnapshot, now: Timestamp) -> Candidate {
        let text = JobText(job, now: now)
        let detail = text.detail
        let state = job.state + (detail.isEmpty ? "" : " (\(detail))")
        return Candidate(word: String(job.id), description: "\(state) \(text.title.cutInside(to: 60))")
    }

    static func tags(of jobs: [JobSnapshot]) -> [Candidate] {
        var counts: [String: Int] = [:]
        for job in jobs { for tag in job.json["tags"]?.array ?? [] { counts[tag.string ?? "", default: 0] += 1 } }
        let sorted = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        return sorted.map { Candidate(word: $0.key, description: $0.value == 1 ? "1 job" : "\($0.value) jobs") }
    }

    /// The verb among the words of a command line.
    static func verb(_ words: [String]) -> String? {
        let verbs = Set(DeferctlCommand.verbs)
        return words.dropFirst().first { verbs.contains($0) }
    }

    /// The socket that the words name, as they were typed.
    static func socket(_ words: [String]) -> String? {
        for (index, word) in words.enumerated() {
            if word == "--socket", words.indices.contains(index + 1) { return unquoted(words[index + 1]) }
            if word.hasPrefix("--socket=") { return unquoted(String(word.dropFirst("--socket=".count))) }
        }
        return nil
    }

    private static func unquoted(_ word: String) -> String {
        guard word.count >= 2, let quote = word.first, "'\"".contains(quote), word.last == quote else { return word }
        return String(word.dropFirst().dropLast())
    }

    /// The lines for the shell that asks, of what `find` finds in time.
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
