import JobClient
import JobModel

/// Reads what the programs of one job write, attempt after attempt, as events tell of it.
actor OutputFollower {
    typealias Writer = @Sendable ([JobClient.OutputPiece.Record]) async throws -> Void

    let job: Int64
    /// The attempt being read, and how much of it was.
    private var link: Int?
    private var attempt: Int
    private var offset: Int64 = 0
    private var restarts = 0
    /// The number of bytes that the daemon had dropped before they were read.
    private(set) var dropped: Int64 = 0
    private let needsOutput: Bool
    private let console: Console
    private let write: Writer

    /// Begins with an attempt; 0 is the latest. If it `needsOutput`, the error of a job without a program is thrown.
    init(
        of job: Int64, link: Int? = nil, attempt: Int, needsOutput: Bool = false, on console: Console,
        write: @escaping Writer
    ) {
        (self.job, self.link, self.attempt, self.needsOutput) = (job, link, attempt, needsOutput)
        (self.console, self.write) = (console, write)
    }

    /// Reads what an event tells of; after the last event, everything has been read.
    func receive(_ event: JobEvent.Change, from client: JobClient) async throws {
        switch event {
        case .output(let link, let attempt, _): try await read(link, attempt, client)
        case .state(let snapshot):
            // A run that was lost with the daemon is repeated as the same attempt.
            let restarts = snapshot.json["restarts"]?.int ?? 0
            if restarts != exchange(&self.restarts, with: restarts) { offset = 0 }
            if snapshot.state == "running" {
                // Its program may have written before this was asked for.
                try await read(
                    snapshot.json["link"]?.int ?? 0, max(1, snapshot.json["attempt"]?.int ?? 1), client)
            }
            guard snapshot.isFinished else { return }
            // Output may have come without an event. Of a job that was not followed, only the latest is wanted.
            if link != nil || attempt > 0 {
                for outcome in snapshot.json["outcomes"]?.array ?? [] {
                    guard let link = outcome["link"]?.int, link >= self.link ?? 0 else { continue }
                    try await read(link, outcome["attempts"]?.int ?? 1, client)
                }
            }
            try await read(from: client)
        case .progress: break
        }
    }

    /// Reads an attempt, once all earlier ones are read.
    private func read(_ link: Int, _ attempt: Int, _ client: JobClient) async throws {
        if self.link == nil, self.attempt == 0 { self.attempt = attempt }
        while self.link != link || self.attempt < attempt {
            if self.link != nil {
                try await read(from: client)
                self.attempt = self.link == link ? self.attempt + 1 : 1
            }
            (self.link, offset) = (link, 0)
        }
        try await read(from: client)
    }

    /// Reads the rest of the attempt that there is.
    func read(from client: JobClient) async throws {
        while let piece = try await piece(client), piece.next > offset {
            try await write(piece.records)
            let gap = piece.records.reduce(piece.next - offset) { $0 - Int64($1.bytes.count) }
            if gap > 0 {
                dropped += gap
                console.say(
                    "\(gap) bytes of output of job \(job) are missing here, which the daemon had no room to keep.")
            }
            offset = piece.next
            if piece.isLast { return }
        }
    }

    /// Nil if there is no such attempt, or no program.
    private func piece(_ client: JobClient) async throws(JobClientError) -> JobClient.OutputPiece? {
        do throws(JobClientError) {
            return try await client.output(of: job, link: link, attempt: attempt == 0 ? nil : attempt, from: offset)
        } catch {
            guard !needsOutput, error.rpc?.code == -32602 else { throw error }
            return nil
        }
    }
}

extension JobClient {
    /// More bytes than the lines that a screen shows have.
    private static let shownEnd: Int64 = 2048

    /// The end of what the job's program has written; empty if it wrote nothing, or the daemon does not say.
    func lastOutput(of job: Int64) async -> String {
        guard let piece = try? await output(of: job, from: -Self.shownEnd) else { return "" }
        return String(decoding: piece.records.flatMap(\.bytes), as: UTF8.self)
    }

    func lastLine(of job: Int64) async -> String? {
        await lastOutput(of: job).split(whereSeparator: { $0.isNewline }).last.map { String($0).sanitized }
    }
}
