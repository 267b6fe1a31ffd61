import JobCore
import JobEngine
import JobModel
import JobProtocol
import LoopTasks
import NIOCore
import Synchronization

/// `job.watch`, `job.unwatch` and `job.wait`.
///
/// A watch of fixed jobs ends by itself once it has reported the last end. A submission with a watch waits while too
/// many are open, so that a client that submits faster than it reads learns of every job.
extension Connection {
    func jobWatch(_ call: Call) async throws {
        let scope = try WatchScope(try call.params(["job", "jobs", "tag", "all", "interval", "children"]))
        let watch = try makeWatch(naming: scope.named, bytes: scope.named == nil ? Self.tagBytes : Self.watchBytes)
        do {
            try await ask(.watch(scope, watch.subscription))
            // Read after the engine's answer, as it tells of all later changes.
            try await look { try $0.begin(watch, of: scope, call) }
        } catch {
            unwatch(watch.number)
            throw error
        }
    }

    func jobUnwatch(_ call: Call) async throws {
        let name = try call.params(["watch"]).requiredString("watch")
        let number = Int(name.dropFirst()).flatMap { name == "w\($0)" ? $0 : nil } ?? 0
        // Its memory is released before the answer, so that the next request finds room.
        guard unwatch(number) else {
            throw ProtocolError(.notFound, "This connection has no watch \"\(name.echoed)\".")
        }
        call.succeed([:])
    }

    // MARK: - The watches of a connection

    /// Bytes per watch besides the jobs that it names, and per watch of a tag or of all jobs, which takes time at each change.
    private static let (watchBytes, tagBytes) = (8 << 10, 64 << 10)
    /// Bytes per watch of a submission, which covers no other job.
    static let bytesPerSubmission = 2 << 10

    /// Creates a watch that names so many jobs, which buffers its events until it is opened. If it covers no later jobs, it ends
    /// with the last end that it reports. It is refused if the connection has as many as it may.
    func makeWatch(naming jobs: Int?, bytes: Int) throws(ProtocolError) -> Watch {
        let most = limits.inFlight
        guard state.withLock({ $0.watches.count < most }) else {
            throw .busy("This connection has \(most) watches; end some of them with job.unwatch.", retryAfter: 1)
        }
        let charge = try BudgetCharge(registering: bytes + (jobs ?? 0) * Self.bytesPerID, in: budget)
        let watch = state.withLock { state in
            state.lastWatch += 1
            let watch = Watch(
                number: state.lastWatch, subscription: engine.nextID(), outbox: outbox, charge: charge
            ) { [weak self] watch in
                if jobs != nil { self?.end(watch) }
                self?.changed()
            }
            state.watches[watch.number] = watch
            return watch
        }
        let isAdminByGroup = caller.isAdmin && !peer.caller(adminGroup: nil).isAdmin
        engine.register(watch.subscription, of: peer.uid) { [self] update in
            if case .missed = update {} else if !isAdminByGroup || caller.isAdmin { return watch.receive(update) }
            // The client reads what it has missed, or what it still may see, once it is connected again.
            channel.close(promise: nil)
        }
        return watch
    }

    /// Whether a submission can have a watch beside this many about to be submitted: few are open, and the client has read
    /// most of their output. It is not awaited for a batch, whose watches begin with its answer: the wait would never end.
    func hasRoomForWatch(_ state: borrowing State, besides others: Int = 0) -> Bool {
        state.isShuttingDown || state.watches.count + others < limits.inFlight && outbox.hasRoom
    }

    /// Ends a watch; its earlier notifications are still sent.
    func end(_ watch: Watch) {
        guard state.withLock({ $0.watches.removeValue(forKey: watch.number) }) != nil else { return }
        watch.end()
        engine.unsubscribe(watch.subscription, of: caller.uid)
    }

    /// Ends a watch on request or after a refusal, unless it has ended; returns false if there was none.
    @discardableResult func unwatch(_ number: Int) -> Bool {
        let (watch, last) = state.withLock { ($0.watches[number], $0.lastWatch) }
        if let watch { end(watch) }
        return number > 0 && number <= last
    }

    // MARK: - Waits

    /// The maximum number of jobs in one wait.
    private static let mostAwaited = 1000

    func jobWait(_ call: Call) async throws {
        let params = try call.params(JobTarget.members + ["timeout"])
        let timeout = try params.number("timeout", in: 0...JobSpec.longest)
        let (ids, isList): ([JobID], Bool)
        switch try JobTarget(params, caller, atMost: Self.mostAwaited) {
        case .selected(let filter): return try waitForAll(call, filter, timeout: timeout)
        case .one(let id): (ids, isList) = ([id], false)
        case .many(let many): (ids, isList) = (many, true)
        }
        let room = call.roomOutsideBatch
        let finished = { @Sendable (lookup: Lookup) in try lookup.finished(ids, isList: isList, within: room) }
        if timeout == 0 {
            guard let answer = try await look(finished) else { throw Self.outOfTime }
            return call.succeed(text: answer)
        }
        try goOn(call, jobs: ids.count, timeout: timeout) { [self] id in
            // A job may be retried before it is read.
            while !Task.isCancelled {
                try await engine.wait(for: ids, as: caller, id: id)
                // They are read once there is room for them, so that many such waits take no more memory. The turn comes last:
                // a line whose memory this waits for may wait for the turn.
                await budget.room(on: loop.loop)
                await outbox.beginTurn(of: id)
                if !Task.isCancelled, let answer = try await look(finished) { return answer }
                outbox.endTurn(of: id)
            }
            return []
        }
    }
}

extension WatchScope {
    /// The number of jobs that it names; nil if it covers later jobs other than children.
    fileprivate var named: Int? { if case .jobs(let ids) = subject { ids.count } else { nil } }

    /// The maximum number of jobs in one watch.
    private static let mostJobs = 100_000

    init(_ params: MemberReader) throws(SpecError) {
        _ = try params.one(of: ["job", "jobs", "tag", "all"], "Say what to watch")
        let interval = try params.number("interval", in: 0.01...3600) ?? 0.25
        let children = try params.flag("children") ?? false
        let ids = try params.jobs(atMost: Self.mostJobs, mayRepeat: true).map(Subject.jobs)
        let tag = try params.string("tag", flaw: JobSpec.flaw(inTag:)).map(Subject.tag)
        if try params.flag("all") == false {
            throw params.fault("all", "\"all\" can only be true; leave it out to watch less.")
        }
        self.init(ids ?? tag ?? .all, interval: interval, includesChildren: children)
    }
}
