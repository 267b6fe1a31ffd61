import DeferredKit
import JobModel
import LoopTasks
import NIOCore
import Synchronization

/// Fetches the missing bytes of a `.part` file over one or several connections, all of the same version of the file.
///
/// Each connection is a child task on the transfer's event loop. If one fails, the others take over the rest of its
/// segment; the fetch fails with the last of them.
final class PartFetch: Sendable {
    enum Outcome: Sendable {
        case complete
        /// A server sent something else than the missing bytes of this version: maybe the whole file, in this response.
        case otherVersion(IncomingResponse?)
        case failed(JobError)
    }

    /// How often in a row a segment is resumed after less than ``hardlyAnything``, in bytes.
    private static let mostResumes = 5
    private static let hardlyAnything: Int64 = 16 << 10

    private let url: RequestURL
    private let part: DownloadedPart
    private let attempt: DownloadAttempt
    private let limiter: RateLimiter
    private let connections: Int
    private let map: Mutex<SegmentMap>
    private let answer: Mutex<IncomingResponse?>

    private var transfer: Transfer { attempt.transfer }
    private var total: Int64? { part.total }
    /// Whether `http.lowSpeed` applies to all connections together, and not to each while it waits for its server.
    private var isSharedSpeed: Bool {
        part.hasHoles && !limiter.isLimited && transfer.context.queueRate?.isLimited != true
    }

    /// `answer` is an unread response with the whole file; nil to ask for the missing bytes.
    init(of url: RequestURL, into part: DownloadedPart, _ attempt: DownloadAttempt, from answer: IncomingResponse?) {
        self.url = url
        self.part = part
        self.attempt = attempt
        limiter = attempt.transfer.context.rate ?? RateLimiter(bytesPerSecond: attempt.spec.rate)
        // Only a file with holes is fetched over several connections.
        connections = part.hasHoles ? attempt.connections : 1
        map = Mutex(SegmentMap(total: part.total, taken: part.written))
        self.answer = Mutex(answer)
    }

    /// The first response that brought some of the bytes.
    var firstAnswer: IncomingResponse? { answer.withLock(\.self) }

    func run() async -> Outcome {
        // Ends with this function; if it fails, it interrupts the transfer.
        async let _ = part.saveCheckpoints()
        guard isSharedSpeed else { return await fetchAll(beginningWith: firstAnswer) }
        return await withTaskGroup(of: Outcome?.self) { group in
            group.addTask { await self.watchSpeed().map(Outcome.failed) }
            group.addTask { await self.fetchAll(beginningWith: self.firstAnswer) }
            defer { group.cancelAll() }
            for await case let outcome? in group { return outcome }
            return .failed(TransferControl.cancelled)
        }
    }

    /// Fetches over all connections; an outcome that no other connection can better ends them all.
    private func fetchAll(beginningWith whole: IncomingResponse?) async -> Outcome {
        // All have a segment before the first one brings bytes.
        let segments = map.withLock { map in (0..<connections).map { _ in map.begin() } }
        return await withTaskGroup(of: Outcome.self) { group in
            for (number, segment) in segments.enumerated() {
                group.addTask { await self.fetch(segment, beginningWith: number == 0 ? whole : nil) }
            }
            var (final, failure, isRefused) = (Outcome?.none, brokenOff, false)
            for await outcome in group {
                switch outcome {
                case .complete: break
                case .otherVersion(let response):
                    if final == nil { final = outcome } else { response?.close() }
                case .failed(let error):
                    failure = error
                    // A server that refuses ranges may still send the whole file.
                    if error.kind == .http { isRefused = true }
                    if isFatal(error) { final = final ?? outcome }
                }
                if final != nil { group.cancelAll() }
            }
            if let final { return final }
            if map.withLock(\.isComplete) { return .complete }
            return isRefused ? .otherVersion(nil) : .failed(failure)
        }
    }

    /// Whether no other connection can do better.
    private func isFatal(_ error: JobError) -> Bool {
        [.storage, .exists, .internal, .cancelled].contains(error.kind) || transfer.control.isInterrupted
            || Task.isCancelled
    }

    /// Returns an error when all connections together move fewer bytes than `http.lowSpeed` demands.
    private func watchSpeed() async -> JobError? {
        let limit = transfer.settings.http.lowSpeed
        guard limit.seconds > 0 else { return nil }
        while true {
            let before = part.count
            do throws(JobError) {
                try await transfer.control.sleep(for: .seconds(saturating: limit.seconds))
            } catch {
                return nil
            }
            if part.count - before < Int64(limit.bytes), isSharedSpeed {
                return JobError(transport: TransferError.slow(limit), to: url)
            }
        }
    }

    // MARK: - One connection

    private func fetch(_ first: SegmentMap.ID?, beginningWith whole: IncomingResponse?) async -> Outcome {
        defer { whole?.close() }
        var (first, whole) = (first, whole)
        var failures = 0
        while let segment = first.take() ?? map.withLock({ $0.begin() }) {
            defer { map.withLock { $0.end(segment) } }
            while let rest = rest(of: segment) {
                var failure: JobError?
                do throws(JobError) {
                    try transfer.control.check()
                    var (response, end) = (whole.take(), Int64?.some(total ?? .max))
                    if response == nil { (response, end) = try await ask(for: rest) }
                    guard let response, let end else { return .otherVersion(response) }
                    try await fill(segment, from: response, upTo: end)
                } catch {
                    guard part.hasHoles else { return .failed(error) }
                    failure = error
                    // This connection is not opened again, and other jobs wait for as long as the server asks.
                    if error.retryAfter != nil { transfer.context.reportRefusal(error) }
                    guard [.network, .timeout].contains(error.kind), !isFatal(error) else { return .failed(error) }
                }
                guard let next = self.rest(of: segment) else {
                    if failure == nil { failures = 0 }
                    break
                }
                failures = next.lowerBound - rest.lowerBound < Self.hardlyAnything ? failures + 1 : 0
                guard part.hasHoles, failures <= Self.mostResumes else { return .failed(failure ?? brokenOff) }
            }
        }
        return .complete
    }

    private func rest(of segment: SegmentMap.ID) -> Range<Int64>? { map.withLock { $0.rest(of: segment) } }

    private var brokenOff: JobError {
        let size = total.map { " of \($0)" } ?? ""
        return JobError(
            .network, "\(SourceMessage.quoted(url)) ended after \(part.count)\(size) bytes; try again.", retryable: true
        )
    }

    /// Asks for a range of this version of the file. The response has bytes up to `end`, which is nil if it is something else.
    private func ask(for rest: Range<Int64>) async throws(JobError) -> (response: IncomingResponse?, end: Int64?) {
        guard let validator = part.checkpoint?.validator else { throw brokenOff }
        let last = part.hasHoles ? String(rest.upperBound - 1) : ""
        let response = try await attempt.open(
            url, [("Range", "bytes=\(rest.lowerBound)-\(last)"), ("If-Range", validator.text)], isPart: isSharedSpeed)
        switch response.status {
        case 206:
            // Without a known size, the end of the file would look like the end of a part.
            guard let range = response.range, let size = range.total ?? total, size == total ?? size,
                range.start == rest.lowerBound,
                part.hasHoles ? range.end <= rest.upperBound : range.end == size,
                validator.fits(response.head.headers),
                response.contentLength == nil || response.contentLength == range.end - range.start
            else {
                response.close()
                return (nil, nil)
            }
            answer.withLock { $0 = $0 ?? response }
            map.withLock { $0.end(at: size) }
            return (response, range.end)
        case 416:
            await response.discard()
            return (nil, nil)
        case 200..<300: return (response, nil)
        default:
            await response.discard()
            throw response.statusError
        }
    }

    /// Writes the body, which ends at `end`, into a segment, which may end before or be split meanwhile.
    private func fill(
        _ segment: SegmentMap.ID, from response: IncomingResponse, upTo end: Int64
    ) async throws(JobError) {
        defer { response.close() }
        transfer.report(ProgressUpdate(completed: part.count, total: total))
        while var blocks = try await response.next() {
            while !blocks.isEmpty {
                var piece = blocks.removeFirst(bytes: limiter.largestPiece)
                try await limiter.wait(for: piece.byteCount, transfer.control)
                while !piece.isEmpty {
                    let (offset, count) = map.withLock { $0.take(piece.byteCount, for: segment, upTo: end) }
                    guard count > 0 else { return }
                    try await part.write(piece.removeFirst(bytes: count), at: offset)
                    transfer.report(ProgressUpdate(completed: part.count, total: total))
                    // The response goes on with bytes that another connection fetches, or whose connection failed.
                    if offset + Int64(count) < end, rest(of: segment) == nil, !map.withLock({ $0.extend(segment) }) {
                        return
                    }
                }
            }
        }
        if end == .max { map.withLock { $0.end(at: $0.taken.prefix) } }
    }
}
