package import DataSources
package import DeferredKit
import Dispatch
import Glibc
package import JobCore
package import JobModel
package import JobStore
package import Logging
import Synchronization
package import SystemPackage

/// Drives the core: feeds it what happens, and carries its effects out with the store, the sources, timers and the clock. It
/// decides nothing.
///
/// All of it runs on one executor. The core's effects are carried out at once, in order; their results come back as
/// inputs.
package actor JobEngine {
    private nonisolated let current: Mutex<Current>
    nonisolated let executor: EngineExecutor
    nonisolated let store: any JobStore
    nonisolated let library: SourceLibrary
    nonisolated let clock: EngineClock
    nonisolated let logger: Logger
    nonisolated let files: FileCleaner
    package nonisolated let metrics: EngineMetrics
    nonisolated let latestBackup = Mutex(LatestBackup())

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    private let core: JobCore
    private var timers: WakeTimers?
    private var clockWatch: ClockWatch?
    private var room: RoomWatch?
    /// Looks for progress while somebody watches; armed for the next look.
    private var progressTimer: (any DispatchSourceTimer)?
    private var isLookingForProgress = false
    private var reports: ProgressReports?
    private var requests: [RequestID: @Sendable (CoreAnswer) -> Void] = [:]
    private var subscribers: [SubscriptionID: any JobSubscriber] = [:]
    /// Those of the last notification of the present input.
    private var recipients = Recipients()
    private var runs: [RunID: Run] = [:]
    /// Runs the store's answers to the present request.
    private var asker: (any CallbackExecutor)?
    private var writesUnderWay = 0
    /// With more under way the store's writer brings the core its answers, whoever asked: the next group gets larger meanwhile,
    /// and the event loops have enough to do with the lines that come.
    private static let fewWrites = 3
    /// Room for results that are being stored, by the write.
    private var storing: [WriteID: RunMemory] = [:]
    /// The room of the result in the present input.
    private var newest: RunMemory?
    private var onStart: CheckedContinuation<Result<Void, StoreError>, Never>?
    private var status = StatusReports()
    private nonisolated let lastID = Atomic<Int64>(0)

    /// What the configuration says now.
    private struct Current {
        var settings: EngineSettings
        var admission: Admission
    }

    private struct Recipients {
        var ids: [SubscriptionID] = []
        /// Those of them that are there.
        var present: [(SubscriptionID, any JobSubscriber)] = []
        /// Those, of all that the input has told, that nothing reaches any more.
        var gone: [SubscriptionID] = []
    }

    /// A source at work; `work` is nil while its checkpoint is read.
    private struct Run {
        let progress: RunProgress
        let memory = RunMemory()
        let type: SourceType
        let job: JobID
        let owner: UInt32
        /// When it began, by the monotonic clock.
        let began: Int64
        var work: Deferred<JSON, any Error>?
    }

    package init(
        settings: EngineSettings, store: any JobStore, library: SourceLibrary, clock: EngineClock = .system,
        metrics: EngineMetrics = EngineMetrics(), logger: Logger
    ) {
        executor = EngineExecutor(now: { clock.now().monotonic })
        self.store = store
        self.library = library
        self.clock = clock
        self.logger = logger
        self.metrics = metrics
        let admission = Admission(policy: ResourcePolicy(library.policy), limits: settings.limits)
        current = Mutex(Current(settings: settings, admission: admission))
        core = JobCore(settings: settings.core, admission: admission)
        files = FileCleaner(
            bodies: BodyDirectory(path: settings.bodies), store: store, library: library, logger: logger)
    }

    // MARK: - Settings

    /// Others are connected than before: while there are several, each of them keeps the others waiting for less long.
    package nonisolated func connected(_ users: ConnectedUsers) {
        executor.connected(users)
        enter { $0.handle(.users(users)) }
    }

    package nonisolated var settings: EngineSettings { current.withLock(\.settings) }

    /// How specs are checked that come now.
    package nonisolated var admission: Admission { current.withLock(\.admission) }

    /// Has the engine go by other settings from now on, but for the directory of bodies, and its sources by `sources` once they
    /// start; throws where one of these is not valid, and then nothing changes.
    package nonisolated func configure(_ settings: EngineSettings, sources: SourceSettings) async throws(JobError) {
        try library.configure(sources)
        let policy = ResourcePolicy(library.policy)
        current.withLock {
            $0 = Current(settings: settings, admission: Admission(policy: policy, limits: settings.limits))
        }
        enter { $0.room?.configure(minimum: settings.minimumFree) }
        _ = await ask(.configure(settings.core, policy: policy), for: Caller(uid: 0, isAdmin: true))
    }

    // MARK: - Life

    /// Goes on where the last daemon ended. Requests may come once this returns.
    package func start() async throws(StoreError) {
        room = RoomWatch(
            path: settings.bodies, minimum: settings.minimumFree, freeBytes: { [files] _ in files.bodies.freeBytes }
        ) { [weak self] shortage in
            self?.enter { $0.handle(.room(shortage: shortage)) }
        }
        // Else the first submission after a start would be accepted whatever room there is.
        await room?.begin()
        timers = WakeTimers(on: executor.queue) { [weak self] in self?.enter { $0.timeCame() } }
        // The core looks at the time with each input.
        clockWatch = ClockWatch(on: executor.queue) { [weak self] in self?.enter { $0.handle(.time) } }
        reports = ProgressReports { [weak self] in self?.enter { $0.lookForProgress() } }
        // Before the first source starts.
        library.keepFiles(
            of: try await store.unfinishedTransfers(of: nil, atMost: SourceLibrary.mostUnfinished))
        let result = await withCheckedContinuation { continuation in
            onStart = continuation
            handle(.start)
        }
        try result.get()
        files.removeForgotten(upTo: settings.limits.links)
        library.removeForgottenPrograms()
    }

    /// Ends without losing anything: transfers stop where they are, what was answered is stored.
    package func stop() async {
        // What sources came to before is not lost, however long it waits for its turn.
        executor.runAllLong()
        handle(.stop)
        room = nil
        timers = nil
        clockWatch = nil
        progressTimer?.cancel()
        await library.shutdown()
        await store.close()
    }

    // MARK: - Requests

    /// An id for a request or a subscription.
    package nonisolated func nextID() -> Int64 { lastID.add(1, ordering: .relaxed).newValue }

    /// Asks the core; `done` is called on the engine, in the order of the core's answers.
    ///
    /// Where the core has to store something first, `executor` brings it the store's answer, and `done` is called there,
    /// unless there is much to store. The store's writer would do so otherwise, and its next group waits for that.
    package nonisolated func ask(
        _ request: CoreRequest, for caller: Caller, id: RequestID? = nil, on executor: (any CallbackExecutor)? = nil,
        _ done: @escaping @Sendable (CoreAnswer) -> Void
    ) {
        let id = id ?? nextID()
        enterNow(of: caller.uid, further: EngineExecutor.mostFurther) { engine in
            engine.requests[id] = done
            if request.showsProgress { engine.readProgress() }
            engine.asker = executor
            engine.handle(.request(id, request, caller))
            engine.asker = nil
        }
    }

    package nonisolated func ask(
        _ request: CoreRequest, for caller: Caller, on executor: (any CallbackExecutor)? = nil
    ) async -> CoreAnswer {
        await withCheckedContinuation { continuation in
            ask(request, for: caller, on: executor) { continuation.resume(returning: $0) }
        }
    }

    /// Gives up a request of `user` that has no answer yet: none comes.
    package nonisolated func abandon(_ id: RequestID, of user: UInt32) {
        enter(of: user) { engine in
            guard engine.requests.removeValue(forKey: id) != nil else { return }
            engine.handle(.abandon(id))
        }
    }

    /// Registers the subscriber of a subscription of `user`; to be called before the request that begins it.
    package nonisolated func register(_ subscriber: any JobSubscriber, as id: SubscriptionID, of user: UInt32) {
        enterNow(of: user) { $0.subscribers[id] = subscriber }
    }

    package nonisolated func unsubscribe(_ id: SubscriptionID, of user: UInt32) {
        enter(of: user) { $0.endSubscription(id) }
    }

    /// Ends a subscription; the subscriber is not retained any more when it returns.
    package func endSubscription(_ id: SubscriptionID) {
        guard subscribers.removeValue(forKey: id) != nil else { return }
        handle(.unsubscribe(id))
    }

    /// Calls `report` with the statistics now and, at most once a second, when they have changed.
    package func observeStatus(_ report: @escaping @Sendable (CoreStatistics) -> Void) {
        status.report = report
        report(core.overallStatistics)
    }

    /// The bytes that are free on the disk of the state; nil where nobody can tell.
    package nonisolated func freeBytes(for owner: UInt32) async -> Int64? {
        let bodies = files.bodies
        return await library.blocking(for: owner) { bodies.freeBytes }
    }

    /// Runs what takes long away from event loops and the engine, among what is done for `owner`.
    package nonisolated func blocking<Value: Sendable>(
        for owner: UInt32, _ body: @escaping @Sendable () -> Value
    ) async -> Value {
        await library.blocking(for: owner, body)
    }

    /// Passes through the engine, the core and the store's writer.
    package nonisolated func probe() async -> Bool {
        if case .done = await ask(.probe, for: Caller(uid: 0, isAdmin: true)) { true } else { false }
    }

    /// A part of the large body of a link's result, for `owner`.
    package nonisolated func readBody(
        of job: JobID, link: Int, offset: Int, length: Int, for owner: UInt32
    ) async throws(Errno) -> ResultPart {
        let bodies = files.bodies
        return try await library.blocking(for: owner) { () throws(Errno) in
            try bodies.read(job, link: link, offset: offset, length: length)
        }
    }

    // MARK: - Inputs

    /// Runs `body` on the engine, after what was handed to it before: for `user`, or by the engine itself.
    private nonisolated func enter(
        of user: UInt32? = nil, _ body: @escaping @Sendable (isolated JobEngine) -> Void
    ) {
        executor.submit(of: user) { self.assumeIsolated { body($0) } }
    }

    /// The same for what takes long, when it is the turn of `user`.
    private nonisolated func enterLong(of user: UInt32, _ body: @escaping @Sendable (isolated JobEngine) -> Void) {
        executor.submitLong(of: user) { self.assumeIsolated { body($0) } }
    }

    /// Runs `body` on the engine where the engine has nothing else to do: on `caller`, or else at once on this thread, and
    /// then at most `further` pieces of what comes of it.
    private nonisolated func enterNow(
        of user: UInt32? = nil, further: Int = 0, on caller: (any CallbackExecutor)? = nil,
        _ body: @escaping @Sendable (isolated JobEngine) -> Void
    ) {
        guard let caller else {
            return executor.runNow({ self.assumeIsolated { body($0) } }, of: user, further: further)
        }
        executor.submit(on: caller) { self.assumeIsolated { body($0) } }
    }

    /// Runs `body` after what the engine has to do now: where that is nothing, at once on this thread.
    package nonisolated func afterwards(_ body: @escaping @Sendable () -> Void) {
        executor.runNow(body, further: 0)
    }

    private func handle(_ input: CoreInput) {
        let now = clock.now()
        if case .request(_, .submit, _) = input { room?.submitted(at: now.monotonic) }
        for effect in core.handle(input, at: now) { carryOut(effect) }
        endGone()
        timers?.arm(core.nextWake, now: now)
        if core.progressInterval != nil, !isLookingForProgress { lookForProgress() }
        status.changed(core.statusVersion, on: executor.queue) { [weak self] in self?.enter { $0.reportStatus() } }
    }

    private func timeCame() {
        timers?.reset()
        handle(.time)
    }

    private func reportStatus() {
        status.reported(core.statusVersion)
        status.report?(core.overallStatistics)
    }

    // MARK: - Progress

    /// Feeds the core the progress that was made since it was last looked at.
    private func readProgress() {
        guard let news = reports?.read(), !news.isEmpty else { return }
        handle(.progress(news))
    }

    /// Looks at the progress now and, while somebody watches, after each of the shortest intervals in which some is made.
    private func lookForProgress() {
        guard let reports, let interval = core.progressInterval else {
            // Nobody watches, so progress waits until somebody asks.
            isLookingForProgress = false
            _ = self.reports?.await(true)
            return
        }
        isLookingForProgress = true
        let news = reports.read()
        if news.isEmpty {
            // The next report of a source wakes the engine.
            if reports.await(false) { enter { $0.lookForProgress() } }
            return
        }
        _ = reports.await(true)
        let timer = progressTimer ?? DispatchSource.makeTimerSource(queue: executor.queue)
        if progressTimer == nil {
            timer.setEventHandler { [weak self] in self?.enter { $0.lookForProgress() } }
            timer.activate()
            progressTimer = timer
        }
        timer.schedule(deadline: .now() + .milliseconds(interval), leeway: .milliseconds(1))
        handle(.progress(news))
    }

    // MARK: - Effects

    private func carryOut(_ effect: CoreEffect) {
        switch effect {
        case .write(let id, let write): self.write(id, write)
        case .read(let id, let read):
            store.read(read) { result in
                self.enterNow(further: EngineExecutor.mostFurther) { $0.handle(.rows(id, result)) }
            }
        case .mark(let job, let isWorking): store.mark(job, isWorking: isWorking)
        case .start(let run): start(run)
        // Nothing is awaited that still reads its checkpoint.
        case .cancel(let run, awaitsEnd: true): runs[run]?.work?.cancel()
        case .cancel(let run, awaitsEnd: false): cancel(runs.removeValue(forKey: run))
        case .discardParts(let id, let job, let links, let owner):
            files.discardParts(of: job, links: links, owner: owner) { self.enter { $0.handle(.cleanedUp(id)) } }
        case .cleanUp(let id, let removed):
            files.cleanUp(removed) { self.enter { $0.handle(.cleanedUp(id)) } }
        case .check(let id, let spec): check(id, spec)
        case .answer(let id, let answer): requests.removeValue(forKey: id)?(answer)
        case .notify(let ids, let change):
            let event = JobEvent(change.snapshot)
            tell(ids) { $0.receive(event) }
        case .progress(let ids, let rows):
            let batch = ProgressBatch(rows)
            tell(ids) { $0.receive(batch) }
        case .started(let result):
            onStart?.resume(returning: result)
            onStart = nil
        case .readZones(let names): readZones(names)
        case .yield: enter { $0.handle(.resume) }
        case .turn(let owner): enterLong(of: owner) { $0.handle(.turn(owner)) }
        case .log(let entry): logger.log(entry)
        }
    }

    /// Tells subscribers. One input can have thousands of notifications for thousands of them: they are looked up once, and those
    /// whose connections ended on the way, as they did not read, are told no more.
    private func tell(_ ids: [SubscriptionID], _ receive: (any JobSubscriber) -> Void) {
        if recipients.ids != ids {
            recipients.ids = ids
            recipients.present = ids.compactMap { id in subscribers[id].map { (id, $0) } }
        }
        var isAnyGone = false
        for (_, subscriber) in recipients.present {
            receive(subscriber)
            if subscriber.isGone { isAnyGone = true }
        }
        guard isAnyGone else { return }
        recipients.gone += recipients.present.filter(\.1.isGone).map(\.0)
        recipients.present.removeAll(where: \.1.isGone)
    }

    /// Ends the subscriptions that were found gone with the present input: until their connections say so, which have very many
    /// maybe, each further input would look them up.
    private func endGone() {
        guard !recipients.ids.isEmpty else { return }
        let gone = recipients.gone
        recipients = Recipients()
        for id in gone { endSubscription(id) }
    }

    // MARK: - Writes

    private func write(_ id: WriteID, _ write: StoreWrite) {
        if let newest { storing[id] = newest }
        writesUnderWay += 1
        let asker = writesUnderWay > Self.fewWrites ? nil : asker
        let cost = write.cost
        let began = cost == nil ? 0 : clock.now().monotonic
        store.write(write) { result in
            // Others' changes waited for it; but it may have waited for theirs.
            if let cost {
                let elapsed = self.clock.now().monotonic.saturatingSubtracting(began)
                self.executor.took(min(cost.nanoseconds, elapsed), of: cost.owner)
            }
            // In the order of the store's answers: the core takes what it is told last for what is stored.
            self.enterNow(further: EngineExecutor.mostFurther, on: asker) { engine in
                engine.writesUnderWay -= 1
                if !engine.storing.isEmpty { engine.storing[id] = nil }
                engine.handle(.written(id, result))
            }
        }
    }

    // MARK: - Schedules

    /// Bytes of a spec that is not checked on the engine, which would be busy for several milliseconds with one of 1 MiB.
    private static let longSpec = 16 << 10

    private func check(_ id: CheckID, _ spec: ScheduledSpec) {
        let admission = admission
        guard spec.size > Self.longSpec else {
            let result = spec.checked(by: admission)
            return enter { $0.handle(.checked(id, result)) }
        }
        library.startBlocking(for: spec.schedule.owner) {
            let result = spec.checked(by: admission)
            self.enter { $0.handle(.checked(id, result)) }
        }
    }

    // MARK: - Zones

    /// The rules of a zone, read for `owner`.
    package nonisolated func zone(_ name: String, for owner: UInt32) async throws(ZoneFiles.Flaw) -> ZoneRules {
        let files = settings.zones
        return try await library.blocking(for: owner) { () throws(ZoneFiles.Flaw) in try files.rules(of: name) }
    }

    private func readZones(_ names: [String]) {
        // Owned by the engine; it ends with the read.
        Task(executorPreference: library.executor) { [self] in
            var zones: [String: ZoneRules] = [:]
            for name in names { zones[name] = try? await zone(name, for: getuid()) }
            await handle(.zones(zones))
        }
    }

    // MARK: - Sources

    private func cancel(_ run: Run?) {
        guard let run, let work = run.work else { return }
        // A download removes what it has written, on a file system that may not answer.
        if run.type == .download { files.cancel(work, of: run.job, owner: run.owner) } else { work.cancel() }
    }

    private func start(_ run: SourceRun) {
        guard let reports else { return }
        // What is kept while it works has nothing of its parameters, which may hold a long body.
        let id = run.run
        runs[id] = Run(
            progress: RunProgress(run: id, reports: reports),
            type: run.parameters.type, job: run.job, owner: run.owner,
            began: clock.now().monotonic)
        guard case .download = run.parameters, run.mayResume else { return start(run, checkpoint: nil) }
        // Owned by the engine; it ends with the read.
        Task(executorPreference: library.executor) { [self] in
            let checkpoint = try? await store.checkpoint(of: run.job, link: run.link)
            await start(run, checkpoint: checkpoint)
        }
    }

    private func start(_ whole: SourceRun, checkpoint: JSON?) {
        // What is kept of the run while it works is without its parameters: they may hold a long body, which the source lets
        // go of as soon as it can.
        let run = whole.withoutParameters
        // It may have been cancelled while its checkpoint was read.
        guard let progress = runs[run.run]?.progress else { return }
        let work = library.source(whole.parameters, context(of: run, checkpoint: checkpoint)).start()
        runs[run.run]?.work = work
        work.onProgress { progress.report($0) }
        // A cancel ends the run here, and not what it came to while that waits for its owner's turn.
        let memory = runs[run.run]?.memory
        // Where the source ended, as to measure a large result takes milliseconds.
        work.upon(on: InlineExecutor()) { outcome in
            let outcome = outcome.mapError(JobError.init(source:))
            let size = outcome.measuredSize
            if size.text > StoreWrite.longWork {
                self.enterLong(of: run.owner) { engine in
                    withExtendedLifetime(memory) { engine.ended(run.run, outcome, size: size) }
                }
            } else {
                self.enter { $0.ended(run.run, outcome, size: size) }
            }
        }
    }

    private func ended(_ id: RunID, _ result: Outcome, size: OutcomeSize) {
        guard let run = runs.removeValue(forKey: id) else { return }
        // Random numbers cost a system call, and only a retry needs one.
        let random = if case .failure = result { clock.random() } else { 0.0 }
        if !run.memory.isEmpty { newest = run.memory }
        metrics.ended(run.type, result, nanoseconds: clock.now().monotonic.saturatingSubtracting(run.began))
        handle(.ended(id, result, size: size, run.progress.read(), random: random))
        newest = nil
    }

    private func context(of run: SourceRun, checkpoint: JSON?) -> SourceContext {
        let store = store
        return SourceContext(
            job: run.job, link: run.link, attempt: run.attempt, owner: run.owner, groups: run.groups,
            bodyPath: files.bodies.file(of: run.job, link: run.link),
            bodyDirectory: files.bodies.opened, roomForBody: run.roomForBody, timeout: run.timeout,
            memory: runs[run.run]?.memory ?? RunMemory(), checkpoint: checkpoint, mayRetry: run.mayRetry,
            connections: run.connections,
            isUnfinished: { job, link in
                // Where that cannot be read, the file stays that job's.
                guard let transfers = try? await store.unfinishedTransfers(of: job, atMost: 1) else { return true }
                return transfers.contains { $0.link == link }
            },
            reportRefusal: { error in self.enter { $0.handle(.refused(run.run, error)) } },
            countsIn: { [progress = runs[run.run]?.progress] unit in progress?.count(in: unit) },
            saveCheckpoint: { checkpoint in
                let promise = Promise<Void, any Error>()
                store.save(checkpoint: checkpoint, of: run.job, link: run.link) {
                    promise.resolve($0.mapError { $0 as any Error })
                }
                return promise.deferred
            },
            lastDownload: { path in Deferred { try await store.download(to: path) } },
            recordDownload: { path, download in
                let promise = Promise<Void, any Error>()
                store.save(download: download, to: path) { promise.resolve($0.mapError { $0 as any Error }) }
                return promise.deferred
            })
    }
}

/// When the status is reported: at most once a second, after it changed.
private struct StatusReports {
    var report: (@Sendable (CoreStatistics) -> Void)?
    private var reported = 0
    private var isScheduled = false

    mutating func changed(_ version: Int, on queue: DispatchQueue, _ due: @escaping @Sendable () -> Void) {
        guard report != nil, version != reported, !isScheduled else { return }
        isScheduled = true
        queue.asyncAfter(deadline: .now() + 1, execute: due)
    }

    mutating func reported(_ version: Int) {
        reported = version
        isScheduled = false
    }
}

extension JobError {
    /// The error of a source, as clients see it.
    fileprivate init(source error: any Error) {
        switch error {
        case let error as JobError: self = error
        case is CancellationError: self = Job.Stop.cancelled.error
        default: self.init(.internal, "The source failed in a way that was not foreseen: \(error).")
        }
    }
}

extension ResourcePolicy {
    fileprivate init(_ policy: SourcePolicy) {
        self.init(
            checkURL: { (url) throws(JobError) in try policy.check(url: url).hostAndPort },
            checkPath: { (path, owner) throws(JobError) in try policy.check(path: path, owner: owner) },
            checkProgram: { (name) throws(JobError) in try policy.check(program: name) })
    }
}

extension StoreWrite {
    /// Bytes past which a write holds up those of others.
    fileprivate static let longWork: Int64 = 64 << 10
    /// Children that hold up others, as they are stored and as the core is told of it.
    private static let manyChildren = 100
    /// Nanoseconds that a byte and a child take, about.
    private static let perByte: Int64 = 10
    private static let perChild: Int64 = 10_000

    /// Whose jobs it is about and how long it keeps others waiting, where that is long.
    fileprivate var cost: (owner: UInt32, nanoseconds: Int64)? {
        switch self {
        case .save(let jobs):
            guard let first = jobs.first, jobs.contains(where: { $0.memorySize > Self.longWork }) else { return nil }
            let bytes = jobs.reduce(Int64(0)) { $0.saturatingAdding($1.memorySize) }
            return (first.owner, bytes.saturatingMultiplied(by: Self.perByte))
        case .children(let new) where new.children.count > Self.manyChildren:
            return (new.parent.owner, Int64(new.children.count).saturatingMultiplied(by: Self.perChild))
        default: return nil
        }
    }
}

extension CoreRequest {
    /// Whether its answer tells how far jobs are.
    fileprivate var showsProgress: Bool {
        switch self {
        case .job, .list, .watch, .cancel: true
        default: false
        }
    }
}
