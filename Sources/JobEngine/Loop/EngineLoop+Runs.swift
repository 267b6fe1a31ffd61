import DataSources
import DeferredKit
import Dispatch
import JobCore
import JobModel
import Logging

/// A run that the core has begun, until the round that takes its end is committed.
///
/// Only the engine's thread uses it. What it needs for its next step, maybe long values, is in its state.
final class EngineRun {
    enum State {
        /// Its step is being read and expanded, or the core was told for what its job waits.
        case expanding
        /// It waits for its host.
        case waiting(Expansion.Transfer)
        case makingChildren(ChildMaker)
        /// Its source is running.
        case working(Deferred<JSON, any Error>)
        /// The core was told of its end.
        case ended
    }

    /// What the core knows of it.
    var live: LiveRun
    var state = State.expanding
    let isDownload: Bool
    /// What other nodes know of it.
    var told: JSON?
    /// Whether the output of its program was copied for other nodes.
    var hasGivenOutput = false
    /// The rates of its download: that of its job, which may change at any time, or else that of the spec; 0 and nil for no
    /// limit.
    var rates: (job: Int?, written: Int?) {
        didSet { rate.set(bytesPerSecond: (rates.job ?? rates.written).flatMap { $0 > 0 ? $0 : nil }) }
    }
    fileprivate let rate = RateLimiter(bytesPerSecond: nil)
    fileprivate let control = Handover<TransferControl>()
    /// The file into which its source has put the response body.
    fileprivate let body = Handover<BlobReference>()
    /// Reserves memory for its result until that is stored.
    let memory = Handover<Lease>()

    init(_ order: RunOrder) {
        live = order.live
        isDownload = order.job.step?.source == .download
        rates = (order.job.rate, nil)
    }

    fileprivate var isOver: Bool { if case .ended = state { true } else { false } }
}

/// Carries out the runs that the core has begun.
extension EngineLoop {
    /// The milliseconds in which a source must end once it was told to, unless it is a program.
    private static let patienceLength: Int64 = 1000

    // MARK: - Orders of the core

    func begin(_ order: RunOrder) {
        runs[order.run] = EngineRun(order)
        engine.board.begin(order)
        if order.isShort { return goOn(order.run, with: engine.result(of: order).result) }
        engine.work(order.run, of: order.job.owner) { [engine] in engine.result(of: order) }
    }

    /// Goes on with the result of a part of a run.
    fileprivate func goOn(_ id: RunID, with result: Expansion.Result) {
        // Rows may name the files of a lost run.
        if lost.remove(id) != nil { return sweep() }
        guard let run = runs[id] else { return discard(result) }
        switch (result, run.state) {
        case (.event(.ended(let end)), _): self.end(id, end)
        case (.event(let event), .expanding), (.event(let event), .makingChildren): feed(.run(id, event))
        case (.list(let children), .expanding):
            run.state = .makingChildren(children)
            feed(.run(id, .list(children.list)))
        case (.transfer(let transfer), .expanding):
            guard let host = transfer.host, host != run.live.host || transfer.connections > run.live.permits else {
                return start(transfer, run)
            }
            run.state = .waiting(transfer)
            feed(.run(id, .host(host, connections: transfer.connections)))
        default: discard(result)
        }
    }

    func proceed(_ id: RunID, _ host: String, _ connections: Int) {
        guard let run = runs[id] else { return }
        run.live.host = host
        run.live.permits = connections
        if case .waiting(let transfer) = run.state { start(transfer, run) }
    }

    func makeChildren(_ id: RunID, from index: Int) {
        guard let run = runs[id], case .makingChildren(let children) = run.state else { return }
        engine.work(id, of: run.live.owner) { children.children(from: index) }
    }

    /// Ends a run; exactly one ``RunEvent/ended(_:)`` follows.
    func cancel(_ id: RunID, keepsPart: Bool = false) {
        guard let run = runs[id], !run.live.isStopping else { return }
        run.live.isStopping = true
        switch run.state {
        case .expanding, .waiting, .makingChildren: end(id, .cancelled)
        case .working(let work):
            if !run.live.endsLater { patience.append((now.steady.saturatingAdding(Self.patienceLength), id)) }
            // A download removes its files, on a file system that may not answer.
            if keepsPart, let control = run.control.take() {
                control.hold()
            } else if run.isDownload {
                engine.library.fileThreads(of: run.live.owner).start { work.cancel() }
            } else {
                work.cancel()
            }
        case .ended: break
        }
    }

    /// Gives up sources that have not ended in time.
    func giveUp(at now: SteadyTime) {
        while let first = patience.first, first.end <= now {
            patience.removeFirst()
            if runs[first.run]?.isOver == false { end(first.run, .cancelled) }
        }
    }

    // MARK: - Ends

    /// Tells the core that a run has ended, once.
    func end(_ id: RunID, _ end: RunEnd) {
        guard let run = runs[id], !run.isOver else { return discard(.event(.ended(end))) }
        run.state = .ended
        feed(.run(id, .ended(end)))
    }

    /// Stops all sources. Their runs are lost, as other nodes begin them again.
    func loseRuns() {
        for id in Array(runs.keys) {
            if case .working? = runs[id]?.state { lost.insert(id) }
            cancel(id)
            forget(id)
        }
    }

    /// Forgets a run and, if its end `isStored`, removes what the directory still has of its output.
    func forget(_ id: RunID, isStored: Bool = false) {
        guard let run = runs.removeValue(forKey: id) else { return }
        let last = engine.board.end(id, of: run.live.job)
        if run.hasGivenOutput { carryOut(.unlink([id.outputSoFar()])) }
        guard isStored, last?.output != nil else { return }
        engine.library.threads(for: 0).start { [blobs = engine.blobs] in blobs.removeLocally(id.output()) }
    }

    /// Removes the files of a result that comes too late.
    private func discard(_ result: Expansion.Result) {
        let files: [BlobReference] =
            switch result {
            case .event(let event): event.files
            case .list(let children): RunEvent.list(children.list).files
            case .transfer: []
            }
        if !files.isEmpty { carryOut(.unlink(files)) }
    }

    // MARK: - Sources

    private func start(_ transfer: Expansion.Transfer, _ run: EngineRun) {
        let (id, job, owner, body) = (run.live.run, run.live.job, run.live.owner, run.body)
        // Not all of the transfer, whose body may be long.
        let (type, url, room) = (transfer.order.job.step?.source, transfer.url, transfer.order.room)
        let began = engine.clock.steady()
        var context = context(of: run, transfer)
        context.queueRate = queueRates[run.live.queue]
        if case .download(let download) = transfer.parameters {
            run.rates.written = download.rate
            (context.rate, context.control) = (run.rate, run.control)
        }
        let work = engine.library.start(transfer.parameters, context)
        run.state = .working(work)
        work.onProgress { [board = engine.board] update in board.update(id, of: job) { $0.report(update) } }
        work.upon(on: InlineExecutor()) { [engine] outcome in
            let outcome = outcome.mapError(JobError.init(source:))
            let elapsed = engine.clock.steady().saturatingSubtracting(began)
            engine.metrics.ended(type, outcome, milliseconds: elapsed)
            let (last, body) = (engine.board.reports(of: id, of: job), body.take())
            let isSmall =
                body == nil && last.output == nil && last.bytes <= Self.shortResult
                && (try? outcome.get())?.size ?? 0 <= min(Self.shortResult, engine.limits.inlineResult)
            // Writing a long result takes milliseconds and maybe a file.
            engine.work(id, of: owner, blocks: !isSmall) {
                engine.end(of: id, outcome, last, body: body, room: room, url: url)
            }
        }
    }

    /// Bytes of a result that needs no thread for files, as it takes microseconds to write.
    private static let shortResult = 16 << 10

    /// Limits the transfers of the queues, running ones included.
    func setRates(of queues: [QueueStatus]) {
        for queue in queues {
            let (name, rate) = (queue.settings.name, queue.settings.byteRate)
            let limiter = queueRates[name] ?? RateLimiter(bytesPerSecond: nil)
            limiter.set(bytesPerSecond: rate)
            queueRates[name] = limiter
        }
    }

    private func context(of run: EngineRun, _ transfer: Expansion.Transfer) -> SourceContext {
        let (order, engine) = (transfer.order, engine)
        let (id, job, owner) = (order.run, order.job, order.job.owner)
        let (body, kept) = (engine.blobs.newFile(), run.body)
        let update = { @Sendable [job = job.id] (change: (inout JobProgress) -> Void) in
            engine.board.update(id, of: job, change)
        }
        let save = { @Sendable (event: (@escaping SaveReply) -> RunEvent) -> Deferred<Void, any Error> in
            let promise = Promise<Void, any Error>()
            let event = event { error in
                if let error { promise.fail(error) } else { promise.succeed(()) }
            }
            engine.inbox.put(.input(.run(id, event)), of: owner)
            return promise.deferred
        }
        var context = SourceContext(
            job: job.id, link: job.link, attempt: job.attempt, owner: owner, bodyPath: engine.blobs.path(of: body))
        context.saveCheckpoint = { checkpoint in save { .checkpoint(checkpoint?.utf8, $0) } }
        context.recordDownload = { path, download in save { .download(path: path, download.utf8, $0) } }
        context.lastDownload = { path in
            Deferred {
                try await engine.blocking(for: owner) { () throws(StoreError) in
                    try engine.reader.download(to: path).map(JSON.init(stored:))
                }
            }
        }
        context.groups = job.groups
        (context.restarts, context.linkStartedAt) = (job.restarts, job.linkStartedAt)
        context.logPath = engine.blobs.path(of: id.output())
        context.reportOutput = { size in update { $0.output = size } }
        context.bodyDirectory = engine.blobs.directory
        context.roomForBody = order.room
        context.keptBody = { kept.put(BlobReference(life: body.life, number: body.number, size: $0)) }
        context.timeout = order.job.step?.timeout
        context.memory = run.memory
        context.checkpoint = transfer.checkpoint
        context.connections = max(1, run.live.permits)
        context.unfinishedTransfers = { limit in
            Deferred {
                try await engine.blocking(for: owner) { () throws(StoreError) in
                    try engine.reader.unfinishedTransfers(limit: limit)
                }
            }
        }
        context.reportRefusal = { error in engine.inbox.put(.input(.run(id, .refused(error))), of: owner) }
        context.countsIn = { unit in update { $0.unit = unit } }
        context.transferred = { engine.metrics.transferred($0, for: owner) }
        return context
    }
}

extension Engine {
    /// Does a part of a run that reads or writes rows and files, on a thread for files if it `blocks`. If an obstacle is that the
    /// database is away, it is done again each second, unless the run is to stop: nothing is wrong with the job, and some
    /// sources cannot be repeated.
    fileprivate func work(
        _ id: RunID, of owner: UInt32, blocks: Bool = true, isFirst: Bool = true,
        _ body: @escaping @Sendable () -> (result: Expansion.Result, obstacle: JobError?)
    ) {
        if blocks {
            return library.threads(for: owner).start { [self] in
                work(id, of: owner, blocks: false, isFirst: isFirst, body)
            }
        }
        let (result, error) = body()
        let obstacle = blobs.isArchived && error?.kind == .storage && error?.isRetryable == true ? error : nil
        inbox.put(
            .task { [self] loop in
                guard let obstacle, let run = loop.runs[id], !run.live.isStopping else {
                    return loop.goOn(id, with: result)
                }
                if isFirst {
                    logger.warning("A job waits for the database.", metadata: ["error": "\(obstacle.message)"])
                }
                DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + 1) { [self] in
                    work(id, of: owner, isFirst: false, body)
                }
            }, of: owner)
    }

    /// Carries out an order, which reads or writes rows and files.
    fileprivate func result(of order: RunOrder) -> (result: Expansion.Result, obstacle: JobError?) {
        let end: RunEnd
        var bytes: Int64 = 0
        do throws(JobError) {
            switch order.kind {
            case .step: return (try Expansion(order: order, engine: self).run(), nil)
            case .gather(let list):
                bytes = list.bytes
                let value = try Gathering(order: order, list: list, engine: self).value()
                end = RunEnd(.success(value), bytes: bytes)
            case .adopt(.file(let blob), let body):
                end = RunEnd(.success(.file(try blobs.link(blob))), body: try body.map(blobs.link))
            case .adopt(let value, let body): end = RunEnd(.success(value), body: try body.map(blobs.link))
            }
        } catch {
            return (.event(.ended(RunEnd(.failure(error), bytes: bytes))), error)
        }
        return (.event(.ended(end)), nil)
    }
}

extension RunOrder {
    /// Whether its step can be read without a file and in microseconds. Reading it on a thread for files costs a third of the
    /// rate in the row `small`.
    fileprivate var isShort: Bool {
        guard case .step = kind, case .spec(let text)? = document else { return false }
        return job.link == 0 && !mayResume && text.count <= 4 << 10 && job.step?.source?.hasChildren != true
    }
}

extension RunEnd {
    fileprivate static let cancelled = RunEnd(.failure(JobRow.Stop.cancelled.error))
}

extension JobError {
    /// The error of a source, as clients see it.
    fileprivate init(source error: any Error) {
        switch error {
        case let error as JobError: self = error
        case is CancellationError: self = JobRow.Stop.cancelled.error
        default: self.init(.internal, "The source failed in a way that was not foreseen: \(error).")
        }
    }
}
