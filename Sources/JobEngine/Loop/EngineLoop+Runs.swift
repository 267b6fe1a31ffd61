import DataSources
import DeferredKit
import JobModel
import JobCore
import Synchronization

/// A run that the core has begun, until the round that takes its end is committed.
struct EngineRun {
    enum State {
        /// Its step is being read and expanded, or it waits for the core: for its host, or to make children.
        case expanding
        /// Its source is at work.
        case working
        /// It was told to end, and its source has not ended yet.
        case stopping
        /// The last that is told of it is on its way into a round.
        case ended
    }

    /// What the core knows of it.
    var live: LiveRun
    let isDownload: Bool
    var state = State.expanding
    /// It ends as a timer that the core waits for.
    var isTimer = false
    /// Its input could not be stored by itself.
    var isSuspect = false
    /// What waits for its host, with its order. What is kept while it works has nothing of them: they may hold long values.
    var transfer: (Expansion.Transfer, RunOrder)?
    var children: ChildMaker?
    var work: Deferred<JSON, any Error>?
    let progress: RunProgress
    /// Keeps room for its result until that is stored.
    let memory = RunMemory()

    init(_ order: RunOrder, reports: ProgressReports) {
        let isGathering = if case .gather = order.kind { true } else { false }
        live = LiveRun(
            run: order.run, job: order.job.id, owner: order.job.owner, queue: order.job.queue, hasSlot: !isGathering,
            host: order.host, permits: order.connections,
            endsLater: !isGathering && order.job.step?.source?.endsLater == true)
        let row = order.job
        isDownload = !isGathering && row.plan.step(row.link, for: row.carried)?.source == .download
        progress = RunProgress(of: order.job.id, reports: reports)
    }
}

/// Drives the runs that the core has begun.
extension EngineLoop {
    /// Milliseconds within which a source that was told to end has to, unless it is a program.
    private static let patienceLength: Int64 = 1000

    // MARK: - What the core wants

    func begin(_ order: RunOrder) {
        let run = EngineRun(order, reports: reports)
        runs[order.run] = run
        services.board.begin(run.progress, of: order.job)
        let id = order.run
        services.library.startBlocking(for: order.job.owner) { [services] in
            switch order.kind {
            case .gather(let list):
                let end = Gathering(order: order, list: list, services: services).run()
                services.inbox.put(.task { $0.end(id, end) }, of: order.job.owner)
            case .step:
                let result = Expansion(order: order, services: services).run()
                services.inbox.put(.task { $0.expanded(order, result) }, of: order.job.owner)
            }
        }
    }

    /// The step of a run was expanded.
    private func expanded(_ order: RunOrder, _ result: Expansion.Result) {
        let id = order.run
        guard var run = runs[id], run.state == .expanding else { return discard(result.event) }
        switch result {
        case .ended(let end): self.end(id, end)
        case .timer(let seconds):
            run.state = .ended
            run.isTimer = true
            runs[id] = run
            feed(.run(id, .timer(seconds)))
        case .list(let children):
            run.children = children
            runs[id] = run
            feed(.run(id, .list(children.opening)))
        case .transfer(let transfer):
            if let host = transfer.host, host != run.live.host || transfer.connections > run.live.permits {
                run.transfer = (transfer, order)
                runs[id] = run
                feed(.run(id, .host(host, connections: transfer.connections)))
            } else {
                start(transfer, order, &run)
            }
        }
    }

    func proceed(_ id: RunID, _ host: String, _ connections: Int) {
        guard var run = runs[id] else { return }
        run.live.host = host
        run.live.permits = connections
        runs[id] = run
        guard run.state == .expanding, let (transfer, order) = run.transfer else { return }
        run.transfer = nil
        start(transfer, order, &run)
    }

    func makeChildren(_ id: RunID, from index: Int) {
        guard let run = runs[id], run.state == .expanding, let children = run.children else { return }
        let owner = run.live.owner
        services.library.startBlocking(for: owner) { [services] in
            let event = children.children(from: index)
            services.inbox.put(.task { $0.made(id, event) }, of: owner)
        }
    }

    private func made(_ id: RunID, _ event: RunEvent) {
        guard runs[id]?.state == .expanding else { return discard(event) }
        feed(.run(id, event))
    }

    /// An event comes too late: its files go.
    private func discard(_ event: RunEvent?) {
        if let files = event?.files, !files.isEmpty { carryOut(.unlink(files)) }
    }

    /// Tells a run to end; exactly one ``RunEvent/ended(_:)`` follows.
    func cancel(_ id: RunID) {
        guard var run = runs[id] else { return }
        run.live.isStopping = true
        runs[id] = run
        switch run.state {
        case .expanding: end(id, .cancelled)
        case .working:
            run.state = .stopping
            runs[id] = run
            guard let work = run.work else { return end(id, .cancelled) }
            if !run.live.endsLater {
                patience.append((now.steady.saturatingAdding(Self.patienceLength), id))
            }
            // A download removes what it has written, on a file system that may not answer.
            if run.isDownload {
                services.library.startWithFiles(of: run.live.owner) { work.cancel() }
            } else {
                work.cancel()
            }
        case .stopping: break
        case .ended:
            guard run.isTimer else { return }
            run.isTimer = false
            runs[id] = run
            feed(.run(id, .ended(.cancelled)))
        }
    }

    /// Gives up sources that were told to end and have not ended in time, and tries again what was postponed.
    func giveUp(at now: SteadyTime) {
        while let first = patience.first, first.end <= now {
            patience.removeFirst()
            if runs[first.run]?.state == .stopping { end(first.run, .cancelled) }
        }
        while let first = postponed.first, first.end <= now {
            postponed.removeFirst()
            feed(first.input)
        }
    }

    /// A run is over, and is told so.
    func end(_ id: RunID, _ end: RunEnd) {
        guard var run = runs[id], run.state != .ended || run.isSuspect else { return discard(.ended(end)) }
        run.state = .ended
        run.work = nil
        run.children = nil
        run.transfer = nil
        runs[id] = run
        feed(.run(id, .ended(end)))
    }

    /// Nothing more is told of a run.
    func forget(_ id: RunID) {
        guard let run = runs.removeValue(forKey: id) else { return }
        services.board.end(run.progress)
        reports.remove(run.progress)
    }

    // MARK: - Sources

    private func start(_ transfer: Expansion.Transfer, _ order: RunOrder, _ run: inout EngineRun) {
        run.state = .working
        let (id, owner, room, progress) = (order.run, order.job.owner, order.room, run.progress)
        let body = KeptBody(services.blobs)
        let type = transfer.parameters.type
        let began = services.clock.steady()
        let context = context(of: run, transfer, order, body: body)
        let work = services.library.source(transfer.parameters, context).start()
        run.work = work
        runs[id] = run
        work.onProgress { progress.report($0) }
        work.upon(on: InlineExecutor()) { [services] outcome in
            let outcome = outcome.mapError(JobError.init(source:))
            // To write a long result takes milliseconds, and maybe a file.
            services.library.startBlocking(for: owner) {
                let elapsed = services.clock.steady().saturatingSubtracting(began)
                services.metrics.ended(type, outcome.error, nanoseconds: elapsed.saturatingMultiplied(by: 1_000_000))
                let end = services.end(
                    outcome, room: room, body: body.reference, bytes: progress.bytes, received: progress.bytes)
                services.inbox.put(.task { $0.end(id, end) }, of: owner)
            }
        }
    }

    private func context(
        of run: EngineRun, _ transfer: Expansion.Transfer, _ order: RunOrder, body: KeptBody
    ) -> SourceContext {
        let (id, job, owner, progress, services) = (order.run, order.job, order.job.owner, run.progress, services)
        let save = { @Sendable (event: @escaping @Sendable (SaveID) -> RunEvent) -> Deferred<Void, any Error> in
            let promise = Promise<Void, any Error>()
            services.inbox.put(
                .task { loop in
                    let save = loop.nextSave { promise.resolve($0) }
                    loop.feed(.run(id, event(save)))
                }, of: owner)
            return promise.deferred
        }
        var context = SourceContext(
            job: job.id, link: job.link, attempt: job.attempt, owner: job.owner,
            bodyPath: services.blobs.path(of: body.number),
            saveCheckpoint: { checkpoint in
                let text = checkpoint?.utf8
                return save { .checkpoint(text, $0) }
            },
            lastDownload: { path in
                Deferred {
                    try await services.library.blocking(for: owner) { () throws(StoreError) in
                        try services.reader.download(to: path).map(JSON.init(stored:))
                    }
                }
            },
            recordDownload: { path, download in
                let text = download.utf8
                return save { .download(path: path, text, $0) }
            })
        context.groups = job.groups
        context.bodyDirectory = services.blobs.directory
        context.roomForBody = order.room
        context.keptBody = { body.keep($0) }
        context.timeout = order.timeout
        context.memory = run.memory
        context.checkpoint = transfer.checkpoint
        context.mayRetry = order.mayRetry
        context.connections = max(1, run.live.permits)
        context.isUnfinished = { job, link in
            // Where that cannot be read, the file stays that job's.
            let transfers = await services.library.blocking(for: owner) {
                try? services.reader.unfinishedTransfers(of: job, limit: 1)
            }
            return transfers.map { $0.contains { $0.link == link } } ?? true
        }
        context.reportRefusal = { error in services.inbox.put(.input(.run(id, .refused(error))), of: owner) }
        context.countsIn = { progress.count(in: $0) }
        return context
    }

    /// Remembers what is told once something is stored; gives its id.
    func nextSave(_ save: @escaping Save) -> SaveID {
        let id = services.nextID()
        saves[id] = save
        return id
    }
}

/// The file for a body that is too long for a result.
private final class KeptBody: Sendable {
    let number: Int64
    private let life: Int64
    private let kept = Mutex<BlobReference?>(nil)

    init(_ blobs: BlobStore) {
        number = blobs.nextNumber()
        life = blobs.life
    }

    /// Nil where there is none.
    var reference: BlobReference? { kept.withLock(\.self) }

    func keep(_ size: Int64) {
        kept.withLock { $0 = BlobReference(life: life, number: number, size: size) }
    }
}

extension Expansion.Result {
    /// What the core is told of it; nil for a source that is to be started first.
    fileprivate var event: RunEvent? {
        switch self {
        case .ended(let end): .ended(end)
        case .timer(let seconds): .timer(seconds)
        case .list(let children): .list(children.opening)
        case .transfer: nil
        }
    }
}

extension RunEnd {
    fileprivate static let cancelled = RunEnd(.failure(JobRow.Stop.cancelled.error))
}

extension Result {
    fileprivate var error: Failure? { if case .failure(let error) = self { error } else { nil } }
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
