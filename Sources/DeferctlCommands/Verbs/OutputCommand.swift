import ArgumentParser
import JobClient
import JobModel

struct OutputCommand: DaemonCommand {
    static let configuration = verb(
        "output", "Print what the programs of jobs have written.", example: "deferctl output -f 12",
        """
        Both streams are printed, in the order in which the program wrote. The output can be read while the program runs \
        and after any end, until the job is removed; of each attempt, the daemon keeps the beginning and the end. With \
        several jobs, or a list, whose children are read, the job's id precedes each line.

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
    @OptionGroup var ids: JobIDs

    func validate() throws {
        if follow, attempt != nil || link != nil {
            throw ValidationError("Use --follow without --attempt and --link; it follows every program of a job.")
        }
    }

    func perform(_ invocation: Invocation) async throws -> ExitStatus {
        let named = ids.jobs
        return try await Interruption(from: "output -f", jobs: named).run { [self] in
            try await invocation.withDaemon { client in
                let (jobs, hasLists) = try await writingJobs(client)
                let writer = OutputLines(
                    console: invocation.console, stream: stream, showsIDs: jobs.count > 1 || hasLists)
                guard follow else {
                    for job in jobs { try await read(job.id, from: client, writer) }
                    try await writer.end()
                    return .ok
                }
                // A watch does not tell of children that have ended.
                let followers = OutputFollowers(writer: writer) { client in
                    let ended = try await writingJobs(client).jobs.filter { $0.isFinished && !named.contains($0.id) }
                    for job in ended { try await read(job.id, from: client, writer) }
                    return Set(ended.map(\.id))
                }
                let ending = try await JobFollower(
                    connection: invocation.connection, interval: 0.05, showsChildren: true,
                    show: { try await followers.receive($0, from: $1) }
                ).follow(named, with: client)
                let told = await followers.ended
                for job in try await writingJobs(client).jobs where !told.contains(job.id) {
                    try await read(job.id, from: client, writer)
                }
                try await writer.end()
                return .worst(ending.missing)
            }
        }
    }

    /// The named jobs, or the children of those that are lists; and whether one is a list.
    private func writingJobs(_ client: JobClient) async throws -> (jobs: [JobSnapshot], hasLists: Bool) {
        var (jobs, hasLists) = ([JobSnapshot](), false)
        for id in ids.jobs {
            var room = JobFamily.limit
            let job = try await client.get(id)
            let family = try await JobFamily(of: job, perJob: JobFamily.limit, room: &room, from: client)
            hasLists = hasLists || ["list", "each"].contains(job.json["source"]?["type"]?.string)
            jobs += family.children.isEmpty ? [job] : Array(family.all.dropFirst())
        }
        return (jobs, hasLists)
    }

    private func read(_ job: Int64, from client: JobClient, _ writer: OutputLines) async throws {
        var offset: Int64 = 0
        while true {
            guard let piece = try await piece(of: job, at: offset, from: client) else { return }
            for record in piece.records { try await writer.write(record, of: job) }
            if let size = piece.missing(from: offset) { await writer.dropped(size, of: job) }
            if piece.isLast || piece.next == offset { return }
            offset = piece.next
        }
    }

    /// Nil for a child that runs no program.
    private func piece(
        of job: Int64, at offset: Int64, from client: JobClient
    ) async throws -> JobClient.OutputPiece? {
        guard ids.jobs.contains(job) else {
            return try await client.outputIfAny(of: job, link: link, attempt: attempt, from: offset)
        }
        return try await client.output(of: job, link: link, attempt: attempt, from: offset)
    }
}

/// Follows the output of several jobs and their children.
private actor OutputFollowers {
    private let writer: OutputLines
    private var followers: [Int64: OutputFollower] = [:]
    /// The jobs whose output was read to its end.
    private(set) var ended: Set<Int64> = []
    /// Reads the output of the children that have ended, once the watch has begun; none ends in between.
    private var readEnded: (@Sendable (JobClient) async throws -> Set<Int64>)?

    init(writer: OutputLines, readEnded: @escaping @Sendable (JobClient) async throws -> Set<Int64>) {
        (self.writer, self.readEnded) = (writer, readEnded)
    }

    func receive(_ event: JobEvent, from client: JobClient) async throws {
        if let read = exchange(&readEnded, with: nil) { ended = try await read(client) }
        let job = event.job
        guard !ended.contains(job) else { return }
        let follower =
            followers[job]
            ?? OutputFollower(of: job, fromLatest: true) { [writer] size in
                await writer.dropped(size, of: job)
            } write: { [writer] in
                try await writer.write($0, of: job)
            }
        followers[job] = follower
        try await follower.receive(event.change, from: client)
        guard case .state(let snapshot) = event.change, snapshot.isFinished else { return }
        followers[job] = nil
        ended.insert(job)
    }
}

/// Writes output, with the job's id before each line if several jobs write.
private actor OutputLines {
    /// The most bytes of a line that is kept until it ends.
    private static let longestLine = 64 << 10

    private let console: Console
    private let stream: OutputCommand.Stream?
    private let showsIDs: Bool
    private var filter = TerminalFilter()
    private var open: [Int64: [UInt8]] = [:]

    init(console: Console, stream: OutputCommand.Stream?, showsIDs: Bool) {
        (self.console, self.stream, self.showsIDs) = (console, stream, showsIDs)
    }

    func write(_ record: JobClient.OutputPiece.Record, of job: Int64) throws {
        guard stream.map({ ($0 == .err) == record.isError }) ?? true else { return }
        guard showsIDs else { return try put(record.bytes) }
        var lines = (open[job] ?? []) + record.bytes
        while let end = lines.firstIndex(of: UInt8(ascii: "\n")) {
            try put(Array("\(job) ".utf8) + lines[...end])
            lines.removeSubrange(...end)
        }
        open[job] = lines
        if lines.count > Self.longestLine { try end(of: job) }
    }

    func dropped(_ size: Int64, of job: Int64) {
        console.say(
            "\(size) bytes of output of job \(job) are missing here, as the daemon kept only the beginning and the end."
        )
    }

    /// Writes lines that did not end.
    func end() throws {
        for job in open.keys.sorted() { try end(of: job) }
    }

    private func end(of job: Int64) throws {
        guard let line = open.removeValue(forKey: job), !line.isEmpty else { return }
        try put(Array("\(job) ".utf8) + line + [UInt8(ascii: "\n")])
    }

    private func put(_ bytes: [UInt8]) throws {
        try console.data.write(console.showsData ? filter.filter(bytes) : bytes)
    }
}
