import CLinux
package import DataSources
import DeferredKit
import Dispatch
import Glibc
package import JobModel
package import Logging
package import JobCore
import Synchronization
package import SystemPackage

/// Drives the core on its store: gives it what happens, in rounds on one thread, and carries out what follows with sources, timers
/// and files. It decides nothing.
///
/// Requests come from any thread and are answered on the engine's. What only looks at jobs asks ``reader`` and ``board``.
package final class Engine: Sendable {
    let services: EngineServices
    private let life: Int64
    // Used by the engine's thread alone, from ``start(_:)`` on.
    private nonisolated(unsafe) let store: any JobStore
    private let room: RoomWatch
    private let clockWatch: ClockWatch

    /// `store` is this engine's alone. `life` is the number of this start of the daemon; the directory of `blobs` exists.
    package init(
        settings: EngineSettings, store: sending any JobStore, reader: any JobReader, library: SourceLibrary,
        life: Int64, blobs path: String, clock: EngineClock, metrics: EngineMetrics = EngineMetrics(), logger: Logger
    ) {
        let blobs = BlobStore(path: path, life: life)
        let services = EngineServices(
            settings: settings, reader: reader, library: library, blobs: blobs, clock: clock, metrics: metrics,
            logger: logger)
        self.services = services
        self.store = store
        self.life = life
        room = RoomWatch(blobs, minimum: settings.minimumFree) { shortage in
            services.inbox.put(.input(.room(shortage: shortage)), of: nil)
        }
        // The core looks at the time with each input.
        clockWatch = ClockWatch(on: .global(qos: .utility)) { services.inbox.put(.input(.tick), of: nil) }
    }

    // MARK: - Life

    /// Goes on where the last daemon ended. Requests may come once this returns.
    package func start(_ start: Core.Start) async throws(StoreError) {
        // Else the first submission after a start would be accepted whatever room there is.
        await room.begin()
        // Before the first source starts.
        services.library.keepFiles(
            of: try await services.library.blocking(for: getuid()) { [services] () throws(StoreError) in
                try services.reader.unfinishedTransfers(of: nil, limit: SourceLibrary.mostUnfinished)
            })
        let result: Result<Void, StoreError> = await withCheckedContinuation { continuation in
            let isStarted = Self.startThread { [self] in
                let core = Core(settings: services.settings.core, life: life, at: services.clock.moment())
                let loop = EngineLoop(core: core, store: store, services: services)
                let result = loop.begin(start)
                continuation.resume(returning: result)
                if case .success = result { loop.run() }
            }
            guard !isStarted else { return }
            continuation.resume(
                returning: .failure(StoreError(.closed, "No thread can be made; allow the daemon more of them.")))
        }
        try result.get()
        services.library.removeForgottenPrograms()
        sweep()
    }

    private func sweep() {
        services.library.startBlocking(for: getuid()) { [services] in
            do throws(StoreError) {
                let removed = try services.blobs.sweep(services.reader)
                if removed > 0 {
                    services.logger.notice(
                        "Files of an earlier daemon were left over.", metadata: ["removed": "\(removed)"])
                }
            } catch {
                services.logger.warning("Files of earlier daemons were not looked at: \(error.message)")
            }
        }
    }

    private static func startThread(_ body: @escaping @Sendable () -> Void) -> Bool {
        final class Box {
            let body: @Sendable () -> Void
            init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        }
        let box = Unmanaged.passRetained(Box(body))
        let result = deferd_start_thread(
            1 << 20,
            { pointer in
                if let pointer { Unmanaged<Box>.fromOpaque(pointer).takeRetainedValue().body() }
                return nil
            }, box.toOpaque())
        if result != 0 { box.release() }
        return result == 0
    }

    /// Ends without losing anything: transfers stop where they are, and what they need to go on is stored. Gives whether all of
    /// that could be stored; only then the stop counts as a clean one.
    package func stop() async -> Bool {
        // What sources come to from here on is not kept: they run again when the daemon is back.
        let isStopped = await reach { $0.feed(.stop) }
        await services.library.shutdown()
        guard isStopped else { return false }
        return await reach { _ in }
    }

    /// Waits for the end of a stage of the stop.
    private func reach(_ begin: @escaping @Sendable (EngineLoop) -> Void) async -> Bool {
        await withCheckedContinuation { continuation in
            services.inbox.put(
                .task { loop in
                    loop.onStop = { continuation.resume(returning: $0) }
                    begin(loop)
                }, of: nil)
        }
    }

    // MARK: - Settings

    package var settings: EngineSettings { services.settings }

    /// How specs are checked that come now.
    package var admission: Admission { services.admission }

    /// Has the engine go by other settings from now on, and its sources by `sources` once they start; throws where one of these is
    /// not valid, and then nothing changes.
    package func configure(_ settings: EngineSettings, sources: SourceSettings) async throws(JobError) {
        try services.library.configure(sources)
        services.configure(settings)
        room.configure(minimum: settings.minimumFree)
        services.inbox.put(.input(.configure(settings.core)), of: nil)
        // Behind it in the engine's own queue: who asks from here on is answered by the new settings.
        await withCheckedContinuation { continuation in
            let probe = PendingRequest(answer: { _ in continuation.resume() }, over: nil)
            services.inbox.put(.request(nextID(), .probe, Caller(uid: 0, isAdmin: true), probe), of: nil)
        }
    }

    // MARK: - Requests

    /// An id for a request or a subscription.
    package func nextID() -> Int64 { services.nextID() }

    /// Asks the core; `answer` is called on the engine's thread, once what it says is on stable storage.
    ///
    /// A wait that is answered with `done` calls `over` once each of its jobs has ended or is gone, which may be at once, or with the
    /// reason why it is given up. Until then ``abandon(_:of:)`` ends it. The jobs are to be read in `over`, and not before; one that
    /// was retried since is waited for by another request.
    package func ask(
        _ request: CoreRequest, for caller: Caller, id: RequestID? = nil,
        over: (@Sendable (CoreError?) -> Void)? = nil, _ answer: @escaping @Sendable (CoreAnswer) -> Void
    ) {
        if case .submit = request { room.submitted(at: Int64(clamping: DispatchTime.now().uptimeNanoseconds)) }
        services.inbox.put(
            .request(id ?? nextID(), request, caller, PendingRequest(answer: answer, over: over)), of: caller.uid)
    }

    package func ask(_ request: CoreRequest, for caller: Caller) async -> CoreAnswer {
        await withCheckedContinuation { continuation in
            ask(request, for: caller) { continuation.resume(returning: $0) }
        }
    }

    /// Gives up a request of `user`, or a wait that was answered: nothing more is told of it.
    package func abandon(_ id: RequestID, of user: UInt32) {
        services.inbox.put(
            .task { loop in
                if loop.requests.removeValue(forKey: id) != nil { loop.feed(.abandon(id)) }
            }, of: user)
    }

    /// Registers the subscriber of a subscription of `user`; to be called before the request that begins it.
    package func register(_ subscriber: any JobSubscriber, as id: SubscriptionID, of user: UInt32) {
        services.inbox.put(.task { $0.subscribers[id] = subscriber }, of: user)
    }

    package func unsubscribe(_ id: SubscriptionID, of user: UInt32) {
        services.inbox.put(.task { $0.unsubscribe(id) }, of: user)
    }

    /// Passes through a round of the store.
    package func probe() async -> Bool {
        if case .done = await ask(.probe, for: Caller(uid: 0, isAdmin: true)) { true } else { false }
    }

    // MARK: - Looking

    package var wallTime: Timestamp { services.clock.wall() }

    /// How the engine stood after its last round.
    package var status: EngineStatus { services.status.withLock(\.self) }
    /// Gives an element after the status may have changed, for one task.
    package var statusChanges: AsyncStream<Void> { services.changes.stream }
    package var reader: any JobReader { services.reader }
    /// How far the jobs are that run now.
    package var board: Board { services.board }
    package var metrics: EngineMetrics { services.metrics }

    /// Runs what takes long or blocks away from event loops and the engine, among what is done for `owner`.
    package func blocking<Value: Sendable, Failure: Error>(
        for owner: UInt32, _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await services.library.blocking(for: owner, body)
    }

    /// A part of a long value or body, for `owner`.
    package func read(
        _ blob: BlobReference, offset: Int, length: Int, for owner: UInt32
    ) async throws(Errno) -> ResultPart {
        let blobs = services.blobs
        return try await blocking(for: owner) { () throws(Errno) in
            try blobs.read(blob, offset: offset, length: length)
        }
    }

    /// Bytes that are free on the disk of the state; nil where that is not known.
    package func freeBytes(for owner: UInt32) async -> Int64? {
        let blobs = services.blobs
        return await blocking(for: owner) { blobs.freeBytes }
    }

    /// The rules of a zone, read for `owner`.
    package func zone(_ name: String, for owner: UInt32) async throws(ZoneFiles.Flaw) -> ZoneRules {
        let files = settings.zones
        return try await blocking(for: owner) { () throws(ZoneFiles.Flaw) in try files.rules(of: name) }
    }
}
