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
        let watch = try makeWatch(of: scope)
        let beginning: Lookup.Beginning
        do {
            try await ask(.watch(scope, watch.subscription))
            // Read after the engine's answer, as it tells of all later changes.
            let room = call.room - 128
            beginning = try await look { try $0.beginning(of: scope, within: room) }
        } catch {
            unwatch(watch.number)
            throw error
        }
        let members: JSONObject = ["watch": watch.name.json, "truncated": beginning.isTruncated ? true : nil]
        call.succeed(members, "jobs", beginning.page.text) {
            watch.open(
                unfinished: beginning.unfinished, versions: beginning.versions,
                isAll: !beginning.isTruncated || scope.isFixed && !scope.includesChildren)
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

    /// Bytes per watch besides its jobs: itself, its part of the core's index, and one notification in flight.
    private static let bytesPerWatch = 8 << 10
    /// Bytes per watch of a submission, which covers no other job.
    private static let bytesPerSubmission = 2 << 10
    /// The number of watches ended by the client that a connection remembers.
    private static let mostUnwatched = 1024

    /// Creates a watch of a scope, or of the job of a submission, which buffers its events until it is opened. If it covers no
    /// later jobs, it ends with the last end that it reports.
    ///
    /// It is refused if the connection has as many as it may, unless ``hasRoomForWatch(_:besides:)`` was awaited: not for a
    /// batch, whose watches begin with its answer, so that waiting for one of them would never end.
    func makeWatch(of scope: WatchScope? = nil, isInBatch: Bool = false) throws(ProtocolError) -> Watch {
        let most = limits.inFlight
        guard scope == nil && !isInBatch || state.withLock({ $0.watches.count < most }) else {
            throw .busy("This connection has \(most) watches; end some of them with job.unwatch.", retryAfter: 1)
        }
        let isFixed = scope?.isFixed ?? true
        let bytes = scope.map { $0.bytes + Self.bytesPerWatch } ?? Self.bytesPerSubmission
        let charge = try BudgetCharge(registering: bytes, in: budget)
        let watch = state.withLock { state in
            state.lastWatch += 1
            let watch = Watch(
                number: state.lastWatch, subscription: engine.nextID(), outbox: outbox, charge: charge
            ) { [weak self] watch in
                if isFixed { self?.end(watch) }
                self?.changed()
            }
            state.watches[watch.number] = watch
            return watch
        }
        engine.register(watch.subscription, of: caller.uid) { update in
            watch.receive(update)
            return !watch.isGone
        }
        return watch
    }

    /// Whether a submission can have a watch beside this many about to be submitted: few are open, and the client has read
    /// most of their output.
    func hasRoomForWatch(_ state: borrowing State, besides others: Int = 0) -> Bool {
        let limits = limits
        if state.isShuttingDown { return true }
        return state.watches.count + others < limits.inFlight && outbox.hasRoom
    }

    /// Ends a watch; its earlier notifications are still sent.
    func end(_ watch: Watch) {
        guard state.withLock({ $0.watches.removeValue(forKey: watch.number) }) != nil else { return }
        watch.end()
        engine.unsubscribe(watch.subscription, of: caller.uid)
    }

    /// Ends a watch on request or after a refusal; returns false if it is unknown or was ended on request before.
    @discardableResult func unwatch(_ number: Int) -> Bool {
        let (watch, isKnown) = state.withLock { state -> (Watch?, Bool) in
            guard let watch = state.watches[number] else {
                return (nil, number > 0 && number <= state.lastWatch && !state.unwatched.contains(number))
            }
            if state.unwatched.count >= Self.mostUnwatched { state.unwatched = [] }
            state.unwatched.insert(number)
            return (watch, true)
        }
        if let watch { end(watch) }
        return isKnown
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
        if ids.isEmpty { return call.succeed(["jobs": []]) }
        if timeout == 0 {
            guard let answer = try await finished(ids, isList, call) else { throw Self.outOfTime }
            return call.succeed(text: answer)
        }
        try goOn(call, jobs: ids.count, timeout: timeout) { [self] turn in
            // A job may be retried before it is read.
            while !Task.isCancelled {
                try await awaitEnds(of: ids)
                // They are read once there is room for them, so that many such waits take no more memory.
                await outbox.beginTurn(of: turn)
                await budget.room(on: loop.loop)
                if !Task.isCancelled, let answer = try await finished(ids, isList, call) { return answer }
                outbox.endTurn(of: turn)
            }
            return []
        }
    }

    /// The approximate memory of the jobs of one wait while they are written.
    private static let answerBytes = 4 << 20

    /// The answer to a wait for these jobs; nil if one has not ended.
    private func finished(_ ids: [JobID], _ isList: Bool, _ call: Call) async throws -> [UInt8]? {
        let charge = BudgetCharge(work: Self.answerBytes, in: budget)
        defer { withExtendedLifetime(charge) {} }
        let room = call.roomOutsideBatch
        return try await look { try $0.finished(ids, isList: isList, within: room) }
    }
}

extension WatchScope {
    /// Whether it covers no later jobs except children.
    var isFixed: Bool { if case .jobs = subject { true } else { false } }

    /// The approximate memory of what it names, in bytes.
    var bytes: Int {
        switch subject {
        case .jobs(let ids): ids.count * Connection.bytesPerID
        case .tag(let tag): tag.utf8.count
        case .all: 0
        }
    }

    /// The maximum number of jobs in one watch.
    private static let mostJobs = 100_000

    init(_ params: MemberReader) throws(SpecError) {
        guard try params.only(["job", "jobs", "tag", "all"]) != nil else {
            throw params.fault("job", "Say what to watch: \"job\", \"jobs\", \"tag\" or \"all\".")
        }
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
