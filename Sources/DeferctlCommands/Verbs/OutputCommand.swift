import ArgumentParser
import JobClient
import JobModel

struct OutputCommand: DaemonCommand {
    static let configuration = verb(
        "output", "Print what the programs of jobs have written.", example: "deferctl output -f 12",
        """
        Both streams are printed, in the order in which the program wrote. The output can be read while the program runs \
        and after any end, until the job is removed; of each attempt, the daemon keeps the beginning and the end. With \
        several jobs, or a list, whose children are read, the job's id precedes each line. With --json, each piece is an \
        object with the job, the stream (out or err), and the text or, if it is not UTF-8, its base64. Jobs without output \
        are reported, and the exit status is 65.

        On a terminal, control characters are escaped.
        """)

    enum Stream: String, ExpressibleByArgument, CaseIterable { case out, err }

    @Flag(name: .shortAndLong, help: "Go on until the jobs are finished.") var follow = false
    @Option(help: .value("name", "Only standard output (out), or only standard error (err).")) var stream: Stream?
    @Option(help: .value("number", "This attempt (default: the latest)."), transform: whole(1...Int.max))
    var attempt: Int?
    @Option(help: .value("number", "The program of this link (default: the latest)."), transform: whole(0...Int.max))
    var link: Int?
    @OptionGroup var global: GlobalOptions
    @Argument(help: .value("id", "The ids of the jobs."), completion: LiveCompletion.jobs) var jobs: [Int64]

    func validate() throws {
        if follow, attempt != nil || link != nil {
            throw ValidationError("Use --follow without --attempt and --link; it follows every program of a job.")
        }
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let interruption = Interruption(from: "output -f", jobs: jobs, by: invocation.socket.command)
        return try await invocation.withDaemon(interruption) { [self] client in
            let (writing, hasLists, missing) = try await writingJobs(client)
            let printer = OutputPrinter(
                command: self, console: invocation.console,
                showsIDs: max(jobs.count, writing.count) > 1 || hasLists)
            guard follow else {
                for failure in missing { invocation.console.say(failure.message.sanitized) }
                return .worst(missing.map(\.status) + (try await printer.read(writing, from: client)))
            }
            let follower = JobFollower(
                connection: invocation.connection, interval: 0.05, showsChildren: true,
                endedBefore: { try await writingJobs($0).jobs.filter(\.isFinished) },
                show: { try await printer.receive($0, from: $1) })
            let ending = try await follower.follow(jobs, with: client)
            // The daemon may have closed this connection.
            let rest = try await invocation.withDaemon { try await printer.read(writingJobs($0).jobs, from: $0) }
            return .worst(ending.missing + rest)
        }
    }

    /// The named jobs that exist, with the children of those that are lists; whether one is a list; and the failures of
    /// the others.
    private func writingJobs(
        _ client: JobClient
    ) async throws -> (jobs: [JobSnapshot], hasLists: Bool, missing: [CommandFailure]) {
        var (writing, hasLists, missing) = ([JobSnapshot](), false, [CommandFailure]())
        for id in jobs {
            var room = JobFamily.limit
            let job: JobSnapshot
            do throws(JobClientError) { job = try await client.get(id) } catch {
                guard error.isNotFound else { throw error }
                missing.append(CommandFailure(error))
                continue
            }
            let family = try await JobFamily(of: job, perJob: JobFamily.limit, room: &room, from: client)
            hasLists = hasLists || ["list", "each"].contains(job.json["source"]?["type"]?.string)
            // Its own programs come after its lists.
            writing += family.all.dropFirst() + [job]
        }
        return (writing, hasLists, missing)
    }
}

/// Prints the output of jobs, with the job's id before each line if there are several.
private actor OutputPrinter {
    private static let longestLine = 64 << 10

    private let command: OutputCommand
    private let console: Console
    private let showsIDs: Bool
    private var filter = TerminalFilter()
    private var open: [Int64: [UInt8]] = [:]
    private var followers: [Int64: OutputFollower] = [:]
    /// The jobs whose output was read to its end.
    private var ended: Set<Int64> = []

    init(command: OutputCommand, console: Console, showsIDs: Bool) {
        (self.command, self.console, self.showsIDs) = (command, console, showsIDs)
    }

    /// Prints the output of all jobs that was not printed so far, and ends the last lines. Jobs without output are reported,
    /// with a status for each.
    func read(_ jobs: [JobSnapshot], from client: JobClient) async throws -> [ExitStatus] {
        var missing: [ExitStatus] = []
        for job in jobs where ended.insert(job.id).inserted {
            // A job with children may run no program.
            let needsOutput = !command.follow && command.jobs.contains(job.id) && job.json["children"] == nil
            // The watch of a list that is cancelled ends before its children.
            let follower = followers[job.id] ?? follower(of: job.id, needsOutput: needsOutput)
            do { try await follower.read(from: client) } catch let error as JobClientError where error.rpc != nil {
                let failure = CommandFailure(error)
                guard failure.status == .badData else { throw error }
                missing.append(failure.status)
                console.say(failure.message.sanitized)
            }
        }
        for job in open.keys.sorted() { try end(of: job) }
        return missing
    }

    func receive(_ event: JobEvent, from client: JobClient) async throws {
        let job = event.job
        guard !ended.contains(job) else { return }
        let follower = followers[job] ?? follower(of: job)
        followers[job] = follower
        try await follower.receive(event.change, from: client)
        guard case .state(let snapshot) = event.change, snapshot.isFinished else { return }
        followers[job] = nil
        ended.insert(job)
    }

    private func follower(of job: Int64, needsOutput: Bool = false) -> OutputFollower {
        OutputFollower(
            of: job, link: command.link, attempt: command.attempt ?? 0, needsOutput: needsOutput, on: console
        ) { try await self.write($0, of: job) }
    }

    private func write(_ records: [JobClient.OutputPiece.Record], of job: Int64) throws {
        for record in records where command.stream.map({ ($0 == .err) == record.isError }) ?? true {
            if command.global.json {
                let text = String(validating: record.bytes, as: UTF8.self)
                let object: JSONObject = [
                    "job": job.json, "stream": record.isError ? "err" : "out", "text": text?.json,
                    "base64": text == nil ? Base64.encode(record.bytes).json : JSON?.none,
                ]
                try console.line(.object(object))
                continue
            }
            guard showsIDs else {
                try put(record.bytes)
                continue
            }
            var (text, lines) = ([UInt8](), ((open[job] ?? []) + record.bytes)[...])
            while let end = lines.firstIndex(of: UInt8(ascii: "\n")) {
                text += Array("\(job) ".utf8) + lines[...end]
                lines = lines[(end + 1)...]
            }
            try put(text)
            open[job] = Array(lines)
            if lines.count > Self.longestLine { try end(of: job) }
        }
    }

    /// Writes a line that did not end.
    private func end(of job: Int64) throws {
        guard let line = open.removeValue(forKey: job), !line.isEmpty else { return }
        try put(Array("\(job) ".utf8) + line + [UInt8(ascii: "\n")])
    }

    private func put(_ bytes: [UInt8]) throws {
        try console.data.write(console.showsData ? filter.filter(bytes) : bytes)
    }
}
