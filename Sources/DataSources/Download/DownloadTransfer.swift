import JobModel
import NIOCore

/// Fetches a file into its `.part`: from the URL or one of its mirrors, from the start or where it was broken off.
///
/// One task uses it. A class, so that the asynchronous steps of that task share it instead of copying it.
final class DownloadTransfer {
    /// Indirect, as each step that awaits an outcome reserves stack for the whole value.
    indirect enum Outcome: Sendable {
        /// The file is complete: its result without its path, and the URL as the spec has it.
        case received(JSONObject, source: String)
        /// The server says that the file of the last download is current.
        case unchanged(RequestURL)
    }

    private let attempt: DownloadAttempt
    private let target: DownloadTarget
    private let checkpoint: DownloadCheckpoint?
    private var part: DownloadedPart?
    /// Whether to use several connections: not after a server sent something else than the range it was asked for.
    private var maySplit: Bool

    private var spec: DownloadSpec { attempt.spec }
    private var transfer: Transfer { attempt.transfer }

    init(attempt: DownloadAttempt, target: DownloadTarget, checkpoint: DownloadCheckpoint?) {
        self.attempt = attempt
        self.target = target
        self.checkpoint = checkpoint
        maySplit = attempt.connections > 1
    }

    /// Tries the URL and then each mirror. `record` describes the existing file if it is to be validated.
    func run(unlessUnchanged record: DownloadRecord?) async throws(JobError) -> Outcome {
        do throws(JobError) {
            try await reopen()
        } catch {
            // The next run finds the `.part` of the checkpoint.
            target.release()
            throw error
        }
        var failures: [JobError] = []
        // The URLs before the one whose server named the file have failed.
        let first = attempt.opened.look { $0?.source } ?? spec.url
        for source in spec.sources.drop(while: { $0 != first }) {
            do throws(JobError) {
                return try await fetch(source, unlessUnchanged: record)
            } catch {
                if [.storage, .exists, .internal].contains(error.kind) || Task.isCancelled { throw error }
                failures.append(error)
                if transfer.control.isInterrupted { break }
            }
        }
        let failure = transfer.control.isInterrupted ? failures[failures.count - 1] : Self.summary(of: failures)
        // Without a checkpoint, no later attempt would find the file.
        if transfer.context.mayResume, let part, part.count > 0, await part.close() { target.release() }
        throw failure
    }

    /// The failure of the URL itself, with those of the mirrors.
    static func summary(of failures: [JobError]) -> JobError {
        var summary = failures[0]
        guard failures.count > 1 else { return summary }
        summary.isRetryable = failures.contains(where: \.isRetryable)
        summary.failures = failures
        if summary.message.hasSuffix(".") { summary.message.removeLast() }
        summary.message +=
            failures.count == 2 ? "; the mirror failed too." : "; all \(failures.count - 1) mirrors failed too."
        return summary
    }

    // MARK: - Resuming

    /// Reopens the `.part` of an earlier attempt; throws if the transfer is stopped meanwhile.
    private func reopen() async throws(JobError) {
        guard let checkpoint, checkpoint.name == target.name, checkpoint.isFrom(spec) else { return }
        let size = await transfer.userFiles.run { [target] in target.reopenPart(of: checkpoint) }
        guard let size,
            let part = try await DownloadedPart(reopened: target, size: size, checkpoint, spec.checksum, transfer)
        else { return }
        if !part.hasHoles {
            do throws(JobError) {
                try await part.hashWritten()
                // What follows may be of a block that was not written whole.
                try await transfer.userFiles.run { [target] () throws(JobError) in try target.cutPart(to: part.count) }
            } catch {
                if transfer.control.isInterrupted || Task.isCancelled { throw error }
                // It starts from the beginning.
                return
            }
        }
        self.part = part
    }

    // MARK: - One server

    private func fetch(_ source: String, unlessUnchanged record: DownloadRecord?) async throws(JobError) -> Outcome {
        let url = try transfer.rules.access.url(source)
        let name = Masking.masked(url: source)
        if let opened = attempt.opened.take() { return try await receive(opened.response, from: source, at: url) }
        if let part, part.checkpoint?.url == name,
            let outcome = try await complete(part, from: source, at: url, nil)
        {
            return outcome
        }
        let record = record?.url == name ? record : nil
        let response = try await attempt.open(
            url, [("If-None-Match", record?.etag), ("If-Modified-Since", record?.lastModified)])
        if response.status == 304, record != nil {
            response.close()
            return .unchanged(response.url)
        }
        return try await receive(response, from: source, at: url)
    }

    /// Fetches a new `.part`, beginning with a response to a request for the whole file.
    private func receive(
        _ response: IncomingResponse, from source: String, at url: RequestURL
    ) async throws(JobError) -> Outcome {
        defer { response.close() }
        guard response.isSuccess else {
            await response.discard()
            throw response.statusError
        }
        if let error = response.partError { throw error }
        var isSplit = false
        if maySplit, response.status == 200, let total = response.contentLength, total >= 2 * SegmentMap.smallest,
            Validator(response.head.headers)?.isTag == true
        {
            isSplit = response.field("Accept-Ranges")?.lowercased() != "none"
        }
        self.part = nil
        let part = try await DownloadedPart(
            new: target, for: response, from: source, hasHoles: isSplit, spec.checksum, transfer)
        self.part = part
        // A later attempt must find the file under this name, whatever the server then calls it.
        if attempt.isNamedByServer { _ = await part.close() }
        if let outcome = try await complete(part, from: source, at: url, response) { return outcome }
        return try await receive(try await attempt.open(url), from: source, at: url)
    }

    /// Fetches the missing bytes of `part`; nil if the server cannot continue it, so that the file must be fetched
    /// anew.
    private func complete(
        _ part: DownloadedPart, from source: String, at url: RequestURL, _ response: IncomingResponse?
    ) async throws(JobError) -> Outcome? {
        let fetch = PartFetch(of: url, into: part, attempt, from: response)
        switch await fetch.run() {
        case .failed(let error):
            // Without its part, the file is removed, which may make the missing room.
            if error.kind == .storage { self.part = nil }
            throw error
        case .otherVersion(let other):
            maySplit = false
            guard let other else { return nil }
            return try await receive(other, from: source, at: url)
        case .complete:
            // An earlier server sent all bytes, but not the end of its answer. No later one has confirmed the version.
            guard let answer = fetch.firstAnswer else { return nil }
            try await part.hashWritten()
            if let mismatch = part.digest.mismatch {
                self.part = nil
                throw JobError(
                    .checksum, "\(SourceMessage.quoted(answer.url)) \(mismatch); check the URL and the checksum.")
            }
            let modified = spec.remoteTime ? answer.field("Last-Modified").flatMap(HTTPDate.time) : nil
            try await part.sync(setting: modified)
            // The engine may have given up a run that was stopped meanwhile; the next attempt resumes the file.
            try transfer.control.check()
            let result = attempt.result(
                path: target.absolutePath, size: part.count, status: answer.status, etag: answer.field("ETag"),
                lastModified: answer.field("Last-Modified"), sha256: part.digest.sha256, resumedFrom: part.resumed,
                url: answer.url.description)
            return .received(result, source: source)
        }
    }
}
