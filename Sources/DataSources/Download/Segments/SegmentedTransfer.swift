import DeferredKit
import JobModel
import LoopTasks
import NIOCore
import NIOHTTP1
import Synchronization

/// Fetches the missing bytes of a `.part` over several connections at once, all of one version of the file.
///
/// Each connection is a child task, on the transfer's event loop. One that fails leaves the rest of its segment to the others; the
/// transfer fails with the last of them. Another child hashes what is there from the first byte on, reading it again.
final class SegmentedTransfer: Sendable {
    /// How it ended, unless it failed.
    enum Outcome: Sendable {
        case complete
        /// The server gave no range of this version, so nothing of what is there can be relied on.
        case otherVersion
    }

    /// What becomes of a connection.
    private enum Connection: Sendable {
        case done
        case otherVersion
        case failed(JobError)
    }

    private enum Report: Sendable {
        case connection(Connection)
        /// The file is hashed to its end, or as far as a cancelled task came.
        case hashed(Result<Void, JobError>)
        /// The connections together are too slow; nil once the speed is no longer measured.
        case slow(JobError?)
    }

    /// How often in a row a segment is taken up again of which hardly anything came, and what that is, in bytes: a server may
    /// answer each request with one byte.
    private static let mostResumes = 5
    private static let hardlyAnything: Int64 = 16 << 10

    private let url: RequestURL
    private let tag: String
    private let total: Int64
    private let part: DownloadedPart
    private let attempt: DownloadAttempt
    private let target: DownloadTarget
    private let journal: DownloadJournal?
    private let limiter: RateLimiter?
    private let map: Mutex<SegmentMap>
    private let answer: Mutex<IncomingResponse?>
    private let growth = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))

    private var handle: TransferHandle { attempt.handle }

    /// `answer` is of a request for the whole file, and still has its body.
    init(
        of url: RequestURL, tag: String, total: Int64, into part: DownloadedPart, _ attempt: DownloadAttempt,
        _ target: DownloadTarget, _ journal: DownloadJournal?, from answer: IncomingResponse?
    ) {
        self.url = url
        self.tag = tag
        self.total = total
        self.part = part
        self.attempt = attempt
        self.target = target
        self.journal = journal
        limiter = attempt.spec.rate.map { RateLimiter(bytesPerSecond: $0, attempt.handle) }
        map = Mutex(SegmentMap(total: total, taken: part.written, connections: attempt.connections))
        self.answer = Mutex(answer)
    }

    /// The head of the first answer that brought something.
    var firstAnswer: IncomingResponse? { answer.withLock(\.self) }

    func run() async -> Result<Outcome, JobError> {
        let whole = firstAnswer
        return await withTaskGroup(of: Report.self) { group in
            group.addTask { .hashed(await self.hash()) }
            group.addTask { .slow(await self.watchSpeed()) }
            var (open, lastFailure) = (attempt.connections, JobError?.none)
            for number in 0..<open {
                group.addTask { .connection(await self.fetch(beginningWith: number == 0 ? whole : nil)) }
            }
            var outcome: Result<Outcome, JobError>?
            for await report in group {
                switch report {
                case .hashed(.success): if part.hashed == total { outcome = .success(.complete) }
                case .hashed(.failure(let error)): outcome = .failure(error)
                case .slow(let error): if let error { outcome = .failure(error) }
                case .connection(.otherVersion): outcome = .success(.otherVersion)
                case .connection(let end):
                    open -= 1
                    if case .failed(let error) = end {
                        lastFailure = error
                        if isFatal(error) { outcome = .failure(error) }
                    }
                    if open == 0, part.count < total { outcome = outcome ?? .failure(lastFailure ?? brokenOff) }
                }
                guard outcome == nil else { break }
            }
            group.cancelAll()
            await group.waitForAll()
            return outcome ?? .failure(TransferControl.cancelled)
        }
    }

    /// Whether no other connection can do better.
    private func isFatal(_ error: JobError) -> Bool {
        [.storage, .exists, .internal, .cancelled].contains(error.kind) || handle.control.isInterrupted
            || Task.isCancelled
    }

    private func hash() async -> Result<Void, JobError> {
        growth.continuation.yield()
        for await _ in growth.stream {
            do throws(JobError) { try await part.hashWritten(handle.control) } catch { return .failure(error) }
            if part.hashed == total { break }
        }
        return .success(())
    }

    /// Gives an error once all connections together move fewer bytes than `http.lowSpeed` asks for. Where the job limits its own
    /// rate, each is looked at by itself while it waits for its server.
    private func watchSpeed() async -> JobError? {
        let limit = attempt.services.transport.lowSpeed
        guard limit.seconds > 0, limiter == nil else { return nil }
        while true {
            let before = part.count
            do throws(JobError) {
                try await handle.control.sleep(
                    until: handle.clock.now + .seconds(saturating: limit.seconds), by: handle.clock)
            } catch {
                return nil
            }
            guard part.count - before < Int64(limit.bytes) else { continue }
            return JobError(
                .timeout,
                "All connections together moved fewer than \(limit.bytes) bytes in \(SourceMessage.seconds(limit.seconds)); try again, or change http.lowSpeed.",
                retryable: true)
        }
    }

    // MARK: One connection

    private func fetch(beginningWith whole: IncomingResponse?) async -> Connection {
        defer { whole?.close() }
        var whole = whole
        var failures = 0
        while let segment = map.withLock({ $0.begin() }) {
            defer { map.withLock { $0.end(segment) } }
            while let rest = rest(of: segment) {
                var failure: JobError?
                do throws(JobError) {
                    try handle.control.check()
                    if let response = whole {
                        whole = nil
                        try await fill(segment, from: response, upTo: total)
                    } else {
                        guard let (response, range) = try await answer(for: rest) else { return .otherVersion }
                        try await fill(segment, from: response, upTo: range.end)
                    }
                } catch {
                    failure = error
                    // The connection is not opened again, and other jobs wait for as long as the server wants.
                    if error.retryAfter != nil { attempt.context.reportRefusal(error) }
                    guard [.network, .timeout].contains(error.kind), !isFatal(error) else { return .failed(error) }
                }
                guard let next = self.rest(of: segment) else {
                    if failure == nil { failures = 0 }
                    break
                }
                failures = next.lowerBound - rest.lowerBound < Self.hardlyAnything ? failures + 1 : 0
                if failures > Self.mostResumes { return .failed(failure ?? brokenOff) }
            }
        }
        return .done
    }

    private func rest(of segment: SegmentMap.ID) -> Range<Int64>? { map.withLock { $0.rest(of: segment) } }

    private var brokenOff: JobError {
        JobError(.network, "\(SourceMessage.quoted(url)) ended before its last byte; try again.", retryable: true)
    }

    /// Asks for a range; nil where the answer is not just that, of the same version.
    private func answer(for rest: Range<Int64>) async throws(JobError) -> (IncomingResponse, ContentRange)? {
        let response = try await attempt.open(
            url, [("Range", "bytes=\(rest.lowerBound)-\(rest.upperBound - 1)"), ("If-Range", tag)],
            isPart: limiter == nil)
        guard response.isSuccess || response.status == 416 else {
            await response.discard()
            throw response.statusError
        }
        guard response.status == 206, let range = ContentRange(response), range.start == rest.lowerBound,
            range.end <= rest.upperBound, range.total == total, Validator.tag(tag).fits(response.head.headers),
            response.contentLength == nil || response.contentLength == range.end - range.start
        else {
            response.close()
            return nil
        }
        answer.withLock { $0 = $0 ?? response }
        return (response, range)
    }

    /// Writes the body, which ends at `end`, into a segment, which may end before or be split meanwhile.
    private func fill(
        _ segment: SegmentMap.ID, from response: IncomingResponse, upTo end: Int64
    ) async throws(JobError) {
        defer { response.close() }
        handle.report(ProgressUpdate(completed: part.count, total: total))
        while let blocks = try await response.next() {
            for piece in limiter?.pieces(of: blocks) ?? [blocks] {
                try await limiter?.wait(for: piece.reduce(0) { $0 + $1.readableBytes }, handle.control)
                let size = piece.reduce(0) { $0 + $1.readableBytes }
                let (offset, count) = map.withLock { $0.take(size, for: segment, upTo: end) }
                guard count > 0 else { return }
                try await part.write(Self.first(count, of: piece), at: offset)
                growth.continuation.yield()
                let written = part.written
                handle.report(ProgressUpdate(completed: written.count, total: total))
                if let journal, journal.isDue(at: written.count) { await journal.makeEntry(of: written) }
                try await attempt.checkRoomForMore(of: target, at: written.count)
            }
            guard let rest = rest(of: segment), rest.lowerBound < end else { return }
        }
    }

    /// The first `count` bytes of `blocks`.
    private static func first(_ count: Int, of blocks: [ByteBuffer]) -> [ByteBuffer] {
        var rest = count
        return blocks.compactMap { block in
            var block = block
            let piece = block.readSlice(length: min(rest, block.readableBytes))
            rest -= piece?.readableBytes ?? 0
            return piece
        }
    }
}
