package import DataSources
package import DeferredKit
import Dispatch
import Glibc
package import JobModel
package import Logging
package import JobCore
import Synchronization

/// Runs the core on its store: feeds it inputs, in rounds on one thread, and carries out its effects with sources, timers and
/// files. It decides nothing.
///
/// Any thread may make requests; the engine's thread answers them. Calls that only look at jobs use ``reader`` and ``board``.
package final class Engine: Sendable {
    package let reader: any JobReader
    package let board = Board()
    package let metrics = EngineMetrics()
    let library: SourceLibrary
    package let blobs: BlobStore
    package let clock: EngineClock
    let logger: Logger
    let inbox = Inbox()
    let templates = TemplateCache()
    let hooks = Hooks()
    let published = Mutex(EngineStatus())
    /// Has an element after possible changes of the status, for one task.
    package let changes = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let current: Mutex<EngineSettings>
    private let lastID = Atomic<Int64>(0)
    /// Since when the engine's thread waits for the store, in nanoseconds of the machine's uptime; 0 while it does not.
    private let storingSince = Atomic<UInt64>(0)
    // Only the engine's thread uses it, from ``start(_:)`` on.
    private nonisolated(unsafe) let store: any JobStore
    private let clockWatch: ClockWatch

    /// No one else uses `store`. The directory `blobs` exists.
    package init(
        settings: EngineSettings, store: sending any JobStore, reader: any JobReader, library: SourceLibrary,
        blobs path: String, archive: (any BlobArchive)? = nil, clock: EngineClock, logger: Logger
    ) throws(StoreError) {
        (self.reader, self.library, self.clock) = (reader, library, clock)
        blobs = try BlobStore(path: path, life: store.life, archive: archive)
        (self.store, self.logger) = (store, logger)
        current = Mutex(settings)
        // The core reads the clock with each input.
        clockWatch = ClockWatch(on: .global(qos: .utility)) { [inbox] in inbox.put(.input(.tick), of: nil) }
    }

    // MARK: - Life

    /// Continues where the last daemon ended. Requests may come once this returns.
    package func start(_ start: Core.Start) async throws(StoreError) {
        let result: Result<Void, StoreError> = await withCheckedContinuation { continuation in
            // The queue has a thread of its own until the stop.
            DispatchQueue(label: "deferd.engine").async { [self] in
                let now = clock.moment()
                let upSince = store.sharing.map { now.wall.adding(seconds: -Double($0.upFor) / 1000) }
                let core = Core(
                    settings: settings.core, life: blobs.life, at: now, upSince: upSince,
                    boot: FileOperations.systemBootID)
                let loop = EngineLoop(core: core, store: store, engine: self)
                let result = loop.begin(start)
                continuation.resume(returning: result)
                if case .success = result { loop.run() }
            }
        }
        try result.get()
        library.removeForgottenPrograms()
        sweep()
    }

    /// Archives or removes the files of earlier lives.
    func sweep() {
        library.threads(for: getuid()).start { [blobs, reader, logger] in
            do throws(StoreError) { try blobs.sweep(reader) } catch {
                logger.warning("Files of earlier daemons were not looked at: \(error.message)")
            }
        }
    }

    /// Copies the state while jobs run, to a file that the caller removes.
    package func backUp() async throws(StoreError) -> BlobReference {
        let result: Result<BlobReference, StoreError> = await withCheckedContinuation { continuation in
            // Not on a thread for files, as a copy takes long.
            blobs.removals.async { [blobs, reader] in
                continuation.resume(
                    returning: Result { () throws(StoreError) in try blobs.adopt(reader.copyState()) })
            }
        }
        return try result.get()
    }

    /// Stops without losing data: transfers end, and their checkpoints are stored. Returns whether everything could be stored,
    /// so that the stop is a clean one.
    package func stop() async -> Bool {
        // Outcomes of sources are dropped from here on; the next daemon runs these sources again.
        let isStopped = await reach { $0.feed(.stop) }
        await library.shutdown()
        guard isStopped else { return false }
        return await reach { _ in }
    }

    /// Waits for the end of a stage of the stop.
    private func reach(_ begin: @escaping @Sendable (EngineLoop) -> Void) async -> Bool {
        await withCheckedContinuation { continuation in
            inbox.put(
                .task { loop in
                    loop.onStop = { continuation.resume(returning: $0) }
                    begin(loop)
                }, of: nil)
        }
    }

    // MARK: - Settings

    package var settings: EngineSettings { current.withLock(\.self) }
    package var limits: JobLimits { current.withLock(\.limits) }

    /// The present rules for specs.
    package var admission: Admission {
        let settings = settings
        return Admission(
            policy: library.rules, limits: settings.limits,
            onlyNode: settings.store == .sqlite ? settings.node.name : nil,
            others: published.withLock(\.otherPrograms))
    }

    /// Changes the settings of the engine, and those of sources that start from now on. Throws, and changes nothing, if one of
    /// them is not valid.
    package func configure(_ settings: EngineSettings, sources: SourceSettings) async throws(JobError) {
        try library.configure(sources)
        current.withLock { $0 = settings }
        inbox.put(.input(.configure(settings.core)), of: 0)
        // It comes after the settings in the same queue, so later requests meet them.
        _ = await probe()
    }

    // MARK: - Requests

    package func nextID() -> Int64 { lastID.add(1, ordering: .relaxed).newValue }

    /// Asks the core; calls `answer` on the engine's thread, once everything that it says is on stable storage.
    package func ask(
        _ request: CoreRequest, for caller: Caller, as id: RequestID? = nil,
        _ answer: @escaping @Sendable (CoreAnswer) -> Void
    ) {
        let id = id ?? nextID()
        let input = CoreInput.request(id, request, caller)
        inbox.put(
            Inbox.Entry(size: input.size) { loop in
                loop.requests[id] = answer
                loop.feed(input)
            }, of: caller.uid)
    }

    package func ask(_ request: CoreRequest, for caller: Caller, as id: RequestID? = nil) async -> CoreAnswer {
        await withCheckedContinuation { continuation in
            ask(request, for: caller, as: id) { continuation.resume(returning: $0) }
        }
    }

    /// Returns once all of these jobs have ended or are gone, maybe at once, or ``abandon(_:of:)`` has ended the wait. The caller
    /// reads the jobs then, and waits again for a job that was retried since.
    package func wait(for jobs: [JobID], as caller: Caller, id: RequestID) async throws(ProtocolError) {
        if case .failed(let error) = await ask(.wait(jobs), for: caller, as: id) { throw error }
    }

    package func abandon(_ id: RequestID, of user: UInt32) {
        inbox.put(
            .task { loop in
                guard loop.requests[id] != nil else { return }
                loop.feed(.abandon(id))
                loop.answer(id, .done)
            }, of: user)
    }

    /// Registers the subscriber of a subscription of `user`, before the request that begins it.
    package func register(_ id: SubscriptionID, of user: UInt32, _ subscriber: @escaping JobSubscriber) {
        inbox.put(.task { $0.subscribers[id] = subscriber }, of: user)
    }

    package func unsubscribe(_ id: SubscriptionID, of user: UInt32) {
        inbox.put(
            .task { loop in
                if loop.subscribers.removeValue(forKey: id) != nil { loop.feed(.unsubscribe(id)) }
            }, of: user)
    }

    /// Passes through a round of the store.
    package func probe() async -> Bool {
        if case .done = await ask(.probe, for: Caller(uid: 0, isAdmin: true)) { true } else { false }
    }

    /// Succeeds once the engine's thread takes what waits, even while nothing can be stored: it does not hang.
    package func ping() -> Deferred<Void, Never> {
        let promise = Promise<Void, Never>()
        inbox.put(.task { _ in promise.succeed(()) }, of: nil)
        return promise.deferred
    }

    func setStoring(_ isStoring: Bool) {
        storingSince.store(isStoring ? DispatchTime.now().uptimeNanoseconds : 0, ordering: .relaxed)
    }

    /// Seconds for which the engine's thread has waited until the store begins or commits a round; 0 while it does not.
    package var secondsInStore: Double {
        let start = storingSince.load(ordering: .relaxed)
        return start == 0 ? 0 : Double(DispatchTime.now().uptimeNanoseconds.saturatingSubtracting(start)) / 1e9
    }

    // MARK: - Looking

    package var status: EngineStatus { published.withLock(\.self) }

    /// Runs `body`, which takes long or blocks, on a thread for files, in turn with other work for `owner`.
    package func blocking<Value: Sendable, Failure: Error>(
        for owner: UInt32, _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await library.threads(for: owner).run(body)
    }
}
