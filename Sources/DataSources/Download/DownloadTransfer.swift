import SystemPackage
import DeferredKit
import JobModel
import Logging
import NIOCore
import NIOHTTP1

/// Fetches a file into its `.part`: from the URL or one of its mirrors, from the start or where it was broken off.
///
/// One task uses it; it is an object, so that the asynchronous steps of that task share it instead of copying it.
final class DownloadTransfer {
    /// Indirect, as each step that awaits one reserves stack for the whole value.
    indirect enum Outcome: Sendable {
        /// The file is whole; its result, but for its path, and where it came from as the spec writes it.
        case received(DownloadResult, source: String)
        /// The server says that the file of the last download is still the present one.
        case unchanged(DownloadRecord, RequestURL)
    }

    /// What the `.part` holds so far.
    private struct Partial {
        let part: DownloadedPart
        /// Both nil where a retry could not go on with it.
        let checkpoint: DownloadCheckpoint?
        let journal: DownloadJournal?
    }

    private let attempt: DownloadAttempt
    private let target: DownloadTarget
    private let checkpoint: DownloadCheckpoint?
    private var partial: Partial?
    /// Whether several connections may be of use: not once a server gave no ranges.
    private var maySplit: Bool

    private var spec: DownloadSpec { attempt.spec }
    private var services: DownloadServices { attempt.services }
    private var sources: [String] { [spec.url] + spec.mirrors }

    init(attempt: DownloadAttempt, target: DownloadTarget, checkpoint: DownloadCheckpoint?) {
        self.attempt = attempt
        self.target = target
        self.checkpoint = checkpoint
        maySplit = attempt.connections > 1
    }

    /// Tries the URL and then each mirror. `record` is of the file that is there, where it is to be validated.
    func run(unlessUnchanged record: DownloadRecord?) async throws(JobError) -> Outcome {
        do throws(JobError) {
            try await reopen()
        } catch {
            // The `.part` of the checkpoint is still there, for the next run.
            target.release()
            throw error
        }
        var failures: [JobError] = []
        for source in sources {
            do throws(JobError) {
                return try await transfer(from: source, unlessUnchanged: record)
            } catch {
                if [.storage, .exists, .internal].contains(error.kind) || Task.isCancelled { throw error }
                failures.append(error)
                if attempt.handle.control.isInterrupted { break }
            }
        }
        let isInterrupted = attempt.handle.control.isInterrupted
        let failure = isInterrupted ? failures[failures.count - 1] : Self.summary(of: failures)
        await keepForRetry(whichComes: failure.isRetryable && attempt.context.mayRetry && !isInterrupted)
        throw failure
    }

    /// The first failure, as it is the one about the URL that was asked for, with those of the mirrors.
    private static func summary(of failures: [JobError]) -> JobError {
        var summary = failures[0]
        guard failures.count > 1 else { return summary }
        summary.isRetryable = failures.contains(where: \.isRetryable)
        summary.failures = failures
        if summary.message.hasSuffix(".") { summary.message.removeLast() }
        let mirrors = failures.count == 2 ? "The mirror" : "Each of the \(failures.count - 1) mirrors"
        summary.message += "; \(mirrors.lowercased()) failed too."
        return summary
    }

    // MARK: Taking up an earlier transfer

    /// Throws where the transfer was stopped meanwhile.
    private func reopen() async throws(JobError) {
        guard let checkpoint, checkpoint.name == target.name,
            sources.contains(where: { Masking.masked(url: $0) == checkpoint.url })
        else { return }
        let target = target
        let size = await services.queue.run { target.reopenPart(of: checkpoint) }
        guard let size, let part = await DownloadedPart(reopened: target, size: size, checkpoint, services) else {
            return
        }
        if !checkpoint.hasHoles {
            do throws(JobError) {
                try await part.hashWritten(attempt.handle.control)
                try await cut(to: part.count)
            } catch {
                if attempt.handle.control.isInterrupted || Task.isCancelled { throw error }
                services.logger.warning(
                    "An unfinished download could not be read, so it begins again.",
                    metadata: ["path": "\(target.absolutePath)", "error": "\(error.message)"])
                return
            }
        }
        partial = Partial(
            part: part, checkpoint: checkpoint, journal: journal(of: checkpoint, saved: part.count))
    }

    /// Cuts off what of the `.part` does not count.
    private func cut(to size: Int64) async throws(JobError) {
        try await services.queue.run { [target] () throws(JobError) in try target.cutPart(to: size) }
    }

    private func journal(of checkpoint: DownloadCheckpoint, saved size: Int64?) -> DownloadJournal {
        DownloadJournal(
            checkpoint, saved: size, target: target, context: attempt.context, services: services,
            clock: attempt.handle.clock)
    }

    /// Keeps the `.part` if a retry can resume it. If the retry is automatic, other jobs must not replace the file until then.
    private func keepForRetry(whichComes isComing: Bool) async {
        guard attempt.context.mayResume, let partial, let journal = partial.journal, partial.part.count > 0,
            // Without a checkpoint, no later attempt would find it.
            await journal.close()
        else { return }
        if isComing { target.keep(after: attempt.context.attempt) } else { target.release() }
    }

    // MARK: One server

    private func transfer(
        from source: String, unlessUnchanged record: DownloadRecord?
    ) async throws(JobError) -> Outcome {
        let url = try services.policy.url(source)
        let name = Masking.masked(url: source)
        if let partial, let checkpoint = partial.checkpoint, checkpoint.url == name {
            let outcome =
                checkpoint.hasHoles
                ? try await fetch(partial, from: source, at: url, nil)
                : try await resume(checkpoint, partial.part.count, from: source, at: url)
            if let outcome { return outcome }
        }
        let record = record?.url == name ? record : nil
        let response = try await attempt.open(
            url, [("If-None-Match", record?.etag), ("If-Modified-Since", record?.lastModified)])
        defer { response.close() }
        if response.status == 304, let record { return .unchanged(record, response.url) }
        return try await receive(response, from: source)
    }

    /// Asks for the rest. Nil where the server's answer does not continue what is there.
    private func resume(
        _ checkpoint: DownloadCheckpoint, _ offset: Int64, from source: String, at url: RequestURL
    ) async throws(JobError) -> Outcome? {
        let response = try await attempt.open(
            url, [("Range", "bytes=\(offset)-"), ("If-Range", checkpoint.validator.text)])
        defer { response.close() }
        switch response.status {
        case 206:
            guard let range = ContentRange(response), range.start == offset,
                // Without a known length, the end of the file looks like the end of a part.
                let total = range.total ?? checkpoint.total, total == range.end,
                checkpoint.total == nil || total == checkpoint.total,
                checkpoint.validator.fits(response.head.headers),
                response.contentLength == nil || response.contentLength == range.end - offset
            else { return nil }
            try await append(response, total: total)
            return try received(response, from: source, resumedFrom: offset)
        case 416:
            await response.discard()
            return nil
        // Another version, or a server without support for ranges: this is the whole file.
        default: return try await receive(response, from: source)
        }
    }

    /// Takes the whole file from a response to an ordinary request.
    private func receive(_ response: IncomingResponse, from source: String) async throws(JobError) -> Outcome {
        guard response.isSuccess, response.status != 206 else {
            await response.discard()
            throw response.statusError
        }
        if let outcome = try await split(response, from: source) { return outcome }
        _ = try await begin(response, from: source)
        try await append(response, total: response.contentLength)
        return try received(response, from: source, resumedFrom: 0)
    }

    /// Begins a new `.part` for the version that `response` brings.
    private func begin(
        _ response: IncomingResponse, withHoles: Bool = false, from source: String
    ) async throws(JobError) -> Partial {
        partial = nil
        let total = response.contentLength
        let part = try await DownloadedPart(new: target, withHolesBelow: withHoles ? total : nil, services)
        let checkpoint = Validator(response.head.headers).map { validator in
            DownloadCheckpoint(
                url: Masking.masked(url: source), validator: validator, total: total,
                directory: target.path.directory, name: target.name, part: part.identity,
                bootID: services.files.bootID, hasHoles: withHoles)
        }
        let begun = Partial(
            part: part, checkpoint: checkpoint, journal: checkpoint.map { journal(of: $0, saved: nil) })
        partial = begun
        return begun
    }

    // MARK: Several connections

    /// Begins a new `.part` that several connections fill, the first of them with what `response` brings. Nil where one
    /// connection has to do.
    private func split(_ response: IncomingResponse, from source: String) async throws(JobError) -> Outcome? {
        guard maySplit, response.status == 200, let total = response.contentLength,
            total >= 2 * SegmentMap.smallest, case .tag? = Validator(response.head.headers),
            response.field("Accept-Ranges")?.lowercased() != "none",
            await services.queue.run({ [target] in target.freeBytes ?? .max }) > total
        else { return nil }
        let url = try services.policy.url(source)
        let begun = try await begin(response, withHoles: true, from: source)
        if let outcome = try await fetch(begun, from: source, at: url, response) { return outcome }
        let again = try await attempt.open(url)
        defer { again.close() }
        return try await receive(again, from: source)
    }

    /// Fetches what is missing; nil where the server gives no ranges of this version, so that the file is fetched from its start.
    private func fetch(
        _ begun: Partial, from source: String, at url: RequestURL, _ response: IncomingResponse?
    ) async throws(JobError) -> Outcome? {
        guard let checkpoint = begun.checkpoint, case .tag(let tag) = checkpoint.validator,
            let total = checkpoint.total
        else { return nil }
        let transfer = SegmentedTransfer(
            of: url, tag: tag, total: total, into: begun.part, attempt, target, begun.journal, from: response)
        let outcome = await transfer.run()
        try checkJournal()
        switch outcome {
        case .failure(let error):
            // Removing it may make the room that is missing.
            if error.kind == .storage { partial = nil }
            throw error
        case .success(.otherVersion):
            partial = nil
            maySplit = false
            return nil
        case .success(.complete):
            guard let answer = transfer.firstAnswer else { preconditionFailure("Something was asked for.") }
            try await cut(to: total)
            return try received(answer, from: source, resumedFrom: begun.part.resumed)
        }
    }

    private func append(_ response: IncomingResponse, total: Int64?) async throws(JobError) {
        let journal = partial?.journal
        // A discarding group keeps nothing of tasks that have ended, however many a long download starts.
        let outcome = await withDiscardingTaskGroup { group in
            do throws(JobError) {
                try await fill(from: response, total: total) { part in
                    guard let journal, journal.isDue(at: part.hashed) else { return }
                    group.addTask { await journal.makeEntry(of: part.written) }
                }
                return Result<Void, JobError>.success(())
            } catch {
                return .failure(error)
            }
        }
        try checkJournal()
        try outcome.get()
    }

    private func checkJournal() throws(JobError) {
        do throws(JobError) {
            try partial?.journal?.check()
        } catch {
            partial = nil
            throw error
        }
    }

    /// Writes the body into the `.part`; `grown` is called from time to time.
    private func fill(
        from response: IncomingResponse, total: Int64?, _ grown: (DownloadedPart) -> Void
    ) async throws(JobError) {
        guard let part = partial?.part else { preconditionFailure("There is a part before anything is added to it.") }
        let limiter = spec.rate.map { RateLimiter(bytesPerSecond: $0, attempt.handle) }
        func tell() {
            grown(part)
            attempt.handle.report(ProgressUpdate(completed: part.hashed, total: total))
        }
        tell()
        while let blocks = try await response.next() {
            for piece in limiter?.pieces(of: blocks) ?? [blocks] {
                try await limiter?.wait(
                    for: piece.reduce(0) { $0 + $1.readableBytes }, attempt.handle.control)
                do throws(JobError) {
                    try await part.append(piece)
                    try await attempt.checkRoomForMore(of: target, at: part.hashed)
                } catch {
                    // A piece that could not be written whole is of no use, and removing it may make the room that is
                    // missing.
                    partial = nil
                    throw error
                }
                tell()
            }
        }
        if let total, part.hashed != total {
            throw JobError(
                .network,
                "\(SourceMessage.quoted(response.url)) ended after \(part.hashed) of \(total) bytes; try again.",
                retryable: true)
        }
    }

    private func received(
        _ response: IncomingResponse, from source: String, resumedFrom: Int64
    ) throws(JobError) -> Outcome {
        guard let part = partial?.part else { preconditionFailure("There is a part before it is complete.") }
        let digest = part.digest
        if let wanted = spec.sha256, wanted != digest {
            // Not one byte of it can be relied on.
            partial = nil
            throw JobError(
                .checksum,
                "\(SourceMessage.quoted(response.url)) has the SHA-256 \(digest) instead of \(wanted); check the URL and the checksum."
            )
        }
        let result = DownloadResult(
            size: part.hashed, status: response.status, etag: response.field("ETag"),
            lastModified: response.field("Last-Modified"), sha256: digest, resumedFrom: resumedFrom,
            attempts: attempt.context.attempt, url: response.url.description)
        return .received(result, source: source)
    }
}
