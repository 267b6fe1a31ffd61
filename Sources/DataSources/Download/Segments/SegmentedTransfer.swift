import DeferredKit
import JobModel
import LoopTasks
import NIOCore
import NIOHTTP1
import Synchronization

/// Fetches the missing bytes of a ``SegmentedPart`` over several connections at once, all of one version of the file.
///
/// Each connection is a child task, on the transfer's event loop. One that fails leaves the rest of its segment to the others; the
/// transfer fails with the last of them.
final class SegmentedTransfer: Sendable {
    /// How it ended, unless it failed.
    enum Outcome: Sendable {
        case complete(digest: String)
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
        case digest(Result<String?, JobError>)
        case journal
    }

    /// How often in a row a segment is taken up again of which hardly anything came, and what that is, in bytes: a server may
    /// answer each request with one byte.
    private static let mostResumes = 5
    private static let hardlyAnything: Int64 = 16 << 10

    private let url: RequestURL
    private let tag: String
    private let part: SegmentedPart
    private let attempt: DownloadAttempt
    private let target: DownloadTarget
    private let journal: DownloadJournal?
    private let limiter: RateLimiter?
    private let answer: Mutex<IncomingResponse?>
    private let nextLook: Mutex<Int64>

    private var services: DownloadServices { attempt.services }

    /// `answer` is of a request for the whole file, and still has its body.
    init(
        of url: RequestURL, tag: String, into part: SegmentedPart, _ attempt: DownloadAttempt, _ target: DownloadTarget,
        _ journal: DownloadJournal?, from answer: IncomingResponse?
    ) {
        self.url = url
        self.tag = tag
        self.part = part
        self.attempt = attempt
        self.target = target
        self.journal = journal
        limiter = attempt.spec.rate.map { RateLimiter(bytesPerSecond: $0, attempt.handle) }
        self.answer = Mutex(answer)
        nextLook = Mutex(part.count.saturatingAdding(DownloadAttempt.roomInterval))
    }

    /// The head of the first answer that brought something.
    var firstAnswer: IncomingResponse? { answer.withLock(\.self) }

    func run() async throws(JobError) -> Outcome {
        let whole = firstAnswer
        let outcome = await attempt.handle.control.withChild { control in
            let speed = TotalSpeed(part, limiter, attempt.handle, services.transport.lowSpeed) { control.interrupt($0) }
            defer { speed.stop() }
            return await run(attempt.handle.with(control), beginningWith: whole)
        }
        return try outcome.get()
    }

    private func run(
        _ handle: TransferHandle, beginningWith whole: IncomingResponse?
    ) async -> Result<Outcome, JobError> {
        await withTaskGroup(of: Report.self) { group in
            group.addTask { .digest(await self.digest()) }
            group.addTask { await self.keepJournal() }
            var (open, lastFailure) = (attempt.connections, JobError?.none)
            for number in 0..<open {
                group.addTask { .connection(await self.fetch(handle, beginningWith: number == 0 ? whole : nil)) }
            }
            var outcome: Result<Outcome, JobError>?
            for await report in group {
                switch report {
                case .journal: continue
                case .digest(.success(let digest)):
                    if let digest { outcome = outcome ?? .success(.complete(digest: digest)) }
                case .digest(.failure(let error)): outcome = outcome ?? .failure(error)
                case .connection(.otherVersion): outcome = outcome ?? .success(.otherVersion)
                case .connection(let end):
                    open -= 1
                    if case .failed(let error) = end {
                        lastFailure = error
                        if isFatal(error, handle) { outcome = outcome ?? .failure(error) }
                    }
                    if open == 0, !part.isComplete { outcome = outcome ?? .failure(lastFailure ?? brokenOff) }
                }
                guard outcome == nil else { break }
            }
            part.finishNews()
            group.cancelAll()
            await group.waitForAll()
            return outcome ?? .failure(JobError(.cancelled, "The download was cancelled; start it again if needed."))
        }
    }

    /// Whether no other connection can do better.
    private func isFatal(_ error: JobError, _ handle: TransferHandle) -> Bool {
        [.storage, .exists, .internal, .cancelled].contains(error.kind) || handle.control.isInterrupted
            || Task.isCancelled
    }

    private func digest() async -> Result<String?, JobError> {
        do throws(JobError) {
            return .success(try await part.completeDigest())
        } catch {
            return .failure(error)
        }
    }

    private func keepJournal() async -> Report {
        await part.afterWrites {
            let written = part.written
            guard let journal, journal.isDue(at: written.count) else { return }
            await journal.makeEntry(at: written.count, fetched: written)
        }
        return .journal
    }

    // MARK: One connection

    private func fetch(_ handle: TransferHandle, beginningWith whole: IncomingResponse?) async -> Connection {
        defer { whole?.close() }
        return await handle.control.withChild { control in
            await fetchSegments(handle.with(control), beginningWith: whole)
        }
    }

    private func fetchSegments(_ handle: TransferHandle, beginningWith whole: IncomingResponse?) async -> Connection {
        var whole = whole
        var failures = 0
        while let segment = part.begin() {
            defer { part.end(segment) }
            while let rest = part.rest(of: segment) {
                var failure: JobError?
                do throws(JobError) {
                    try handle.control.check()
                    if let response = whole {
                        whole = nil
                        try response.attach(to: handle.control)
                        try await fill(segment, from: response, upTo: part.total, handle)
                    } else {
                        guard let (response, range) = try await answer(for: rest, handle) else { return .otherVersion }
                        try await fill(segment, from: response, upTo: range.end, handle)
                    }
                } catch {
                    failure = error
                    // The connection is not opened again, and other jobs wait for as long as the server wants.
                    if error.retryAfter != nil { attempt.context.reportRefusal(error) }
                    guard [.network, .timeout].contains(error.kind), !isFatal(error, handle) else {
                        return .failed(error)
                    }
                }
                guard let next = part.rest(of: segment) else {
                    if failure == nil { failures = 0 }
                    break
                }
                failures = next.lowerBound - rest.lowerBound < Self.hardlyAnything ? failures + 1 : 0
                if failures > Self.mostResumes { return .failed(failure ?? brokenOff) }
            }
        }
        return .done
    }

    private var brokenOff: JobError {
        JobError(.network, "\(SourceMessage.quoted(url)) ended before its last byte; try again.", retryable: true)
    }

    /// Asks for a range; nil where the answer is not just that, of the same version.
    private func answer(
        for rest: Range<Int64>, _ handle: TransferHandle
    ) async throws(JobError) -> (IncomingResponse, ContentRange)? {
        var request = OutgoingRequest(
            url, headers: attempt.spec.headers, coding: .asSent, userAgent: services.userAgent)
        request.set("Range", "bytes=\(rest.lowerBound)-\(rest.upperBound - 1)")
        request.set("If-Range", tag)
        request.isPart = true
        let response = try await services.transport.open(request, handle)
        guard response.isSuccess || response.status == 416 else {
            await response.discard()
            throw response.statusError
        }
        guard response.status == 206, let range = ContentRange(response), range.start == rest.lowerBound,
            range.end <= rest.upperBound, range.total == part.total, Validator.tag(tag).fits(response.head.headers),
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
        _ segment: SegmentMap.ID, from response: IncomingResponse, upTo end: Int64, _ handle: TransferHandle
    ) async throws(JobError) {
        defer { response.close() }
        attempt.handle.report(ProgressUpdate(completed: part.count, total: part.total))
        var isItsTurn = false
        defer { if isItsTurn { part.endTurn() } }
        while let rest = part.rest(of: segment), rest.lowerBound < end {
            // While it waits for its server, or for its rate, it is another's turn.
            if isItsTurn, limiter != nil || !response.isReady || !part.mayGoOn(with: segment) {
                isItsTurn = false
                part.endTurn()
            }
            if !response.isReady { _ = await response.becomesReady() }
            // What came stays where it is until then, so that a connection that waits takes no more.
            if limiter == nil, !isItsTurn, response.isReady {
                try await part.beginTurn(for: segment, handle.control)
                isItsTurn = true
            }
            guard let blocks = try await response.next() else { return }
            for piece in limiter?.pieces(of: blocks) ?? [blocks] {
                guard let rest = part.rest(of: segment), rest.lowerBound < end else { return }
                let piece = Self.first(end - rest.lowerBound, of: piece)
                if let limiter {
                    if isItsTurn { part.endTurn() }
                    isItsTurn = false
                    try await limiter.wait(for: piece.reduce(0) { $0 + $1.readableBytes }, handle.control)
                    try await part.beginTurn(for: segment, handle.control)
                    isItsTurn = true
                }
                try await part.write(piece, to: segment)
                let count = part.count
                attempt.handle.report(ProgressUpdate(completed: count, total: part.total))
                try await checkRoom(at: count)
            }
        }
    }

    /// The first `count` bytes of `blocks`: a server can send more than it said.
    private static func first(_ count: Int64, of blocks: [ByteBuffer]) -> [ByteBuffer] {
        var rest = count
        return blocks.compactMap { block in
            var block = block
            let piece = block.readSlice(length: Int(min(rest, Int64(block.readableBytes))))
            rest -= Int64(piece?.readableBytes ?? 0)
            return piece
        }
    }

    private func checkRoom(at count: Int64) async throws(JobError) {
        let isDue = nextLook.withLock { next in
            guard count >= next else { return false }
            next = count.saturatingAdding(DownloadAttempt.roomInterval)
            return true
        }
        if isDue { try await attempt.checkRoomForMore(of: target) }
    }
}

/// Ends a transfer whose connections together move fewer bytes than `http.lowSpeed` asks for.
private final class TotalSpeed: Sendable {
    private let part: SegmentedPart
    private let limiter: RateLimiter?
    private let limit: HTTPSettings.LowSpeed
    private let clock: any EventLoop
    private let fail: @Sendable (JobError) -> Void
    private let check = Mutex<(isStopped: Bool, timer: Scheduled<Void>?)>((false, nil))

    init(
        _ part: SegmentedPart, _ limiter: RateLimiter?, _ handle: TransferHandle, _ limit: HTTPSettings.LowSpeed,
        _ fail: @escaping @Sendable (JobError) -> Void
    ) {
        self.part = part
        self.limiter = limiter
        self.limit = limit
        clock = handle.clock
        self.fail = fail
        if limit.seconds > 0 { look(since: part.count) }
    }

    private func look(since count: Int64) {
        let waits = limiter?.waits ?? 0
        let timer = clock.scheduleTask(in: .seconds(saturating: limit.seconds)) { [weak self] in
            guard let self else { return }
            let present = part.count
            // What it waits for its own rate is not the server's fault.
            let isOwn = limiter.map { $0.waits != waits || $0.isWaiting } ?? false
            if isOwn || present - count >= Int64(limit.bytes) { return look(since: present) }
            fail(
                JobError(
                    .timeout,
                    "All connections together moved fewer than \(limit.bytes) bytes in \(SourceMessage.seconds(limit.seconds)); try again, or change http.lowSpeed.",
                    retryable: true))
        }
        let isStopped = check.withLock { check in
            check.timer = timer
            return check.isStopped
        }
        if isStopped { timer.cancel() }
    }

    func stop() {
        check.withLock { check in
            check.isStopped = true
            return check.timer
        }?.cancel()
    }
}
