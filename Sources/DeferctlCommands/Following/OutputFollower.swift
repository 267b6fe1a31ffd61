import JobClient
import JobModel

/// Reads what the programs of one job write, attempt after attempt, as events tell of it.
actor OutputFollower {
    let job: Int64
    /// The attempt being read, and how much of it was.
    private var link: Int?
    private var attempt: Int
    private var offset: Int64 = 0
    private var restarts = 0
    private let write: @Sendable (JobClient.OutputPiece.Record) async throws -> Void
    private let dropped: @Sendable (Int64) async -> Void

    /// Begins with the first attempt, or with the latest. `write` is called with the output, `dropped` with the size of what the
    /// daemon did not keep.
    init(
        of job: Int64, fromLatest: Bool = false, dropped: @escaping @Sendable (Int64) async -> Void,
        write: @escaping @Sendable (JobClient.OutputPiece.Record) async throws -> Void
    ) {
        (self.job, self.write, self.dropped) = (job, write, dropped)
        attempt = fromLatest ? 0 : 1
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
            try await read(client)
        case .progress: break
        }
    }

    private func read(_ link: Int, _ attempt: Int, _ client: JobClient) async throws {
        if self.link == nil, self.attempt == 0 { self.attempt = attempt }
        try await move(to: link, attempt, client)
        try await read(client)
    }

    /// Goes on to an attempt, once all earlier ones are read.
    private func move(to link: Int, _ attempt: Int, _ client: JobClient) async throws {
        while self.link == link && self.attempt < attempt {
            try await read(client)
            (self.attempt, offset) = (self.attempt + 1, 0)
        }
        guard self.link != link else { return }
        if self.link != nil {
            try await read(client)
            self.attempt = 1
        }
        (self.link, offset) = (link, 0)
        try await move(to: link, attempt, client)
    }

    /// Reads the rest of the attempt that there is.
    private func read(_ client: JobClient) async throws {
        while let piece = try await piece(client), piece.next > offset {
            try await pass(piece)
            if piece.isLast { return }
        }
    }

    private func pass(_ piece: JobClient.OutputPiece) async throws {
        for record in piece.records { try await write(record) }
        if let size = piece.missing(from: offset) { await dropped(size) }
        offset = piece.next
    }

    /// Nil if the attempt has no output.
    private func piece(_ client: JobClient) async throws -> JobClient.OutputPiece? {
        try await client.outputIfAny(of: job, link: link, attempt: attempt == 0 ? nil : attempt, from: offset)
    }
}

extension JobClient.OutputPiece {
    /// The number of bytes that the daemon dropped between `offset`, where this piece was asked for, and its end; nil if none.
    func missing(from offset: Int64) -> Int64? {
        let missing = records.reduce(next - offset) { $0 - Int64($1.bytes.count) }
        return missing > 0 ? missing : nil
    }
}

extension JobClient {
    /// Reads output; nil if there is no such attempt, or no program.
    func outputIfAny(
        of job: Int64, link: Int?, attempt: Int?, from offset: Int64
    ) async throws(JobClientError) -> OutputPiece? {
        do throws(JobClientError) {
            return try await output(of: job, link: link, attempt: attempt, from: offset)
        } catch {
            guard error.rpc?.code == -32602 else { throw error }
            return nil
        }
    }

    /// More bytes than the lines that a screen shows have.
    private static let shownEnd: Int64 = 2048

    /// The end of what the job's program has written; empty if it wrote nothing, or the daemon does not say.
    func lastOutput(of job: Int64) async -> String {
        guard let piece = try? await output(of: job, from: -Self.shownEnd) else { return "" }
        return String(decoding: piece.records.flatMap(\.bytes), as: UTF8.self)
    }

    /// The last line that the job's program has written.
    func lastLine(of job: Int64) async -> String? {
        await lastOutput(of: job).split(whereSeparator: { $0.isNewline }).last.map { String($0).sanitized }
    }
}
