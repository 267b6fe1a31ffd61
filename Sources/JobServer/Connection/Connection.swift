import JobCore
import JobEngine
import JobModel
import JobProtocol
import Logging
import LoopTasks
import NIOCore
import Synchronization

/// One client: reads its calls in order, has them carried out, and sends the contents of the outbox.
final class Connection: Sendable {
    private let peer: Peer
    let engine: JobEngine
    let outbox: Outbox
    let server: ServerState
    let logger: Logger
    private let account: MemoryAccount
    private let scheduler: LoopScheduler
    private let channel: any Channel
    /// The event loop of the socket.
    let loop: LoopExecutor
    private let state = Mutex(State())
    private let limits: ServerLimits
    /// Who calls, with the rights that they have now: the administrators' group may change while they are connected.
    var caller: Caller { peer.caller(adminGroup: limits.adminGroup) }

    private struct Wait {
        let call: Call
        let charge: MemoryCharge
    }

    private struct State {
        var waits: [RequestID: Wait] = [:]
        var watches: [String: ConnectionWatch] = [:]
        var lastWatch = 0
        /// Lines whose answers are not complete.
        var open = 0
        var isShuttingDown = false
        /// The copy of the state that the client reads.
        var backup: StateBackup?
        /// A call has come.
        var hasBegun = false
        /// The client is gone, so nobody is left to answer.
        var isGone = false
        /// Groups of submissions without an answer, and who reads on once there are so few.
        var submitting = 0
        var submitter: (most: Int, continuation: CheckedContinuation<Void, Never>)?
        /// Waits until nothing is outstanding.
        var drained: CheckedContinuation<Void, Never>?
    }

    init(
        peer: Peer, engine: JobEngine, server: ServerState, account: MemoryAccount, scheduler: LoopScheduler,
        channel: any Channel, logger: Logger, overflowed: @escaping @Sendable () -> Void
    ) {
        self.peer = peer
        self.engine = engine
        self.server = server
        self.account = account
        self.scheduler = scheduler
        self.channel = channel
        loop = LoopExecutor(channel.eventLoop)
        self.logger = logger
        limits = server.limits
        outbox = Outbox(
            limit: limits.outbound, account: account, deliver: engine.afterwards,
            sendNow: { next in
                guard channel.eventLoop.inEventLoop, channel.isWritable, let bytes = next() else { return }
                channel.writeAndFlush(bytes, promise: nil)
            },
            overflowed: overflowed)
    }

    // MARK: - Reading

    /// Carries out the calls of one read. They are answered in order, but for those that wait.
    func handle(_ lines: ReadLines) async {
        state.withLock { $0.hasBegun = true }
        var submits: [Submit] = []
        for index in 0..<lines.count {
            await turn(work: LoopScheduler.lineWork + lines.size(at: index))
            switch lines[index] {
            case .tooLong:
                await refuse(
                    ProtocolError(
                        .invalidRequest, "The line is longer than \(limits.line) bytes; split the request up.",
                        [JSONObject.Member(name: "kind", value: "line-too-long")]), &submits)
            case .noRoom: await refuse(account.refusal(), &submits)
            case .line(let line): await handle(line, &submits)
            }
            worked()
        }
        // More can be read while these are being stored.
        await submit(&submits, atMost: Self.groups)
    }

    /// Lets other users have the event loop, where this one had its share, before so many bytes are worked on.
    func turn(work: Int) async {
        if account.turns.isShared() { await scheduler.turn(of: peer.uid, work: work) }
    }

    /// What the last turn was for is done.
    private func worked() { if account.turns.isShared() { scheduler.worked() } }

    /// Refuses a line that could not be read.
    private func refuse(_ error: ProtocolError, _ submits: inout [Submit]) async {
        await submit(&submits)
        replies(calls: 1).fail(.null, error)
    }

    /// A line as it was read, and of a long one the specs that it submits, by the places of their calls.
    private struct ReadLine: Sendable {
        let line: IncomingLine
        /// About how many bytes its values take in memory.
        let cost: Int
        var specs: [Int: Submit.Spec] = [:]

        init(_ bytes: [UInt8], budget: Int) { (line, cost) = IncomingLine.read(bytes, budget: budget) }
    }

    /// Reads the values of a line: of a long one away from the event loop, which would be busy for several milliseconds with
    /// one of 1 MiB and with its specs.
    private func read(_ bytes: [UInt8]) async -> ReadLine {
        let budget = limits.lineValues
        guard bytes.count > LoopScheduler.share else { return ReadLine(bytes, budget: budget) }
        return await awayFromLoop { [engine, caller] in
            var read = ReadLine(bytes, budget: budget)
            let calls: [IncomingCall] =
                switch read.line {
                case .single(let call): [call]
                case .batch(let calls): calls
                }
            let admission = engine.admission
            for (place, call) in calls.enumerated() {
                guard case .request(let request) = call, request.method == MethodName.jobSubmit.rawValue else {
                    continue
                }
                read.specs[place] = .checked(Self.check(request.params, admission, caller))
            }
            return read
        }
    }

    /// Runs what takes long, with what a client wrote, away from the event loop: one piece at a time for each user, with a pause
    /// after it where others are there.
    func awayFromLoop<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
        let gate = account.turns.longLines
        await gate.enter()
        let (value, time) = await engine.blocking(for: peer.uid) {
            let began = NIODeadline.now()
            return (body(), NIODeadline.now() - began)
        }
        gate.leave(after: account.turns.pause(afterReading: time), on: loop.loop)
        return value
    }

    private func handle(_ bytes: [UInt8], _ submits: inout [Submit]) async {
        let read = await read(bytes)
        let cost = read.cost
        let refusal = account.admits(cost) ? nil : account.refusal()
        let admitted = refusal == nil ? cost : 0
        switch read.line {
        case .single(let call):
            await dispatch(call, read.specs[0], nil, refusal, cost: admitted, &submits)
        case .batch(let calls):
            let ids = calls.reduce(0) { $0 + ($1.id?.size ?? 0) }
            let limit = lineLimit
            let least = Replies.least(calls: calls.count, ids: ids)
            guard least + 2 <= limit else {
                account.release(admitted)
                return await refuse(
                    ProtocolError(
                        .busy, "The batch has more calls than \(limit) bytes can answer; split it up.",
                        [JSONObject.Member(name: "retryAfter", value: 0)]), &submits)
            }
            // Its answers are kept until the last of them is there, which may be years away.
            guard account.admits(least) else {
                account.release(admitted)
                return await refuse(account.refusal(), &submits)
            }
            let replies = replies(calls: calls.count, isBatch: true, ids: ids)
            let share = admitted / calls.count
            account.release(admitted - share * calls.count)
            for (place, call) in calls.enumerated() {
                await turn(work: LoopScheduler.lineWork)
                await dispatch(call, read.specs[place], replies, refusal, cost: share, &submits)
                worked()
            }
        }
    }

    /// The longest line that is sent, without its end: a longer one would close the connection.
    private var lineLimit: Int { limits.outbound - 1 }

    private func replies(calls: Int, isBatch: Bool = false, ids: Int = 0) -> Replies {
        state.withLock { $0.open += 1 }
        return Replies(calls: calls, isBatch: isBatch, ids: ids, limit: lineLimit, outbox: outbox, account: account) {
            [weak self] in
            self?.state.withLock { $0.open -= 1 }
            self?.checkDrained()
        }
    }

    /// `spec` is that of a submission where it was checked before. `batch` gathers the answers of a batch; nil for a call with
    /// a line of its own. `cost` is given back once the call is not in memory any more.
    private func dispatch(
        _ call: IncomingCall, _ spec: Submit.Spec?, _ batch: Replies?, _ refusal: ProtocolError?, cost: Int,
        _ submits: inout [Submit]
    ) async {
        switch call {
        case .rejected(let id, let error):
            await submit(&submits)
            (batch ?? replies(calls: 1)).fail(id, error)
            account.release(cost)
        case .request(let request):
            let method = MethodName(rawValue: request.method)
            let refusal = batch?.isFull == true ? Replies.full : refusal ?? refusalAboveLimit()
            if method == .jobSubmit, refusal == nil {
                let spec = spec ?? .written(request.params)
                return await gather(Submit(id: request.id, spec: spec, batch: batch, cost: cost), &submits)
            }
            await submit(&submits)
            let call = Call(
                request: request, replies: batch ?? replies(calls: 1), charge: MemoryCharge(of: cost, in: account))
            await carryOut(method, call, refusal, batch)
        }
    }

    /// Carries out a call when its turn has come, unless there is a reason not to.
    private func carryOut(
        _ method: MethodName?, _ call: Call, _ refusal: ProtocolError?, _ batch: Replies?
    ) async {
        if let refusal { return call.fail(refusal) }
        // What was done must be answered, so nothing is done where the answer may not fit.
        if batch != nil, call.room < Self.smallAnswer { return call.fail(Replies.full) }
        guard let method else {
            let known = MethodName.allCases.map(\.rawValue).joined(separator: ", ")
            return call.fail(
                ProtocolError(
                    .methodNotFound, "There is no method \"\(call.request.method.echoed)\"; known are \(known)."))
        }
        await inTurn(of: method) {
            // Nobody is left to read what was only asked for; what changes something was still sent to be done.
            if method.isRead, isGone { return call.fail(Self.shuttingDown) }
            if account.isFull { return call.fail(account.refusal()) }
            do throws(ProtocolError) {
                try await carryOut(method, call)
            } catch {
                call.fail(error)
            }
        }
    }

    /// Runs `body` when it is the user's turn for a call of this method, which is given back after a pause where others are
    /// there.
    func inTurn(of method: MethodName, _ body: () async -> Void) async {
        guard let gate = account.turns.gate(of: method) else { return await body() }
        await gate.enter()
        let began = NIODeadline.now()
        await body()
        gate.leave(after: account.turns.pause(after: method, of: .now() - began), on: loop.loop)
    }

    /// Why a call that has waited is refused, where there is no memory for its answer.
    var refusalOfAnswer: ProtocolError? { account.isFull ? account.refusal() : nil }

    /// Adds a submission to those that wait to be submitted together.
    private func gather(_ new: Submit, _ submits: inout [Submit]) async {
        if new.batch == nil { state.withLock { $0.open += 1 } }
        submits.append(new)
        // Where no group is on its way, the first ones are stored while the rest is read.
        if submits.count == Self.firstGroup, state.withLock({ $0.submitting == 0 }) {
            await submit(&submits, atMost: Self.groups)
        }
    }

    /// More than the least that is answered to any call but a submission takes.
    private static let smallAnswer = 2 * JobDetail.least

    /// Submissions that go to the store ahead of others of their read, and groups that can be on their way there.
    private static let firstGroup = 32
    private static let groups = 8

    /// Submits all that wait with one fsync; returns once at most so many groups have no answer yet.
    private func submit(_ submits: inout [Submit], atMost groups: Int = 0) async {
        var rest = submits[...]
        submits = []
        while !rest.isEmpty {
            let (calls, size) = removeGroup(from: &rest)
            await account.turns.submissions.enter(size)
            state.withLock { $0.submitting += 1 }
            let cost = calls.reduce(0) { $0 + $1.cost }
            let began = NIODeadline.now()
            submitJobs(calls) {
                self.account.release(cost)
                let turns = self.account.turns
                let pause = turns.pause(afterSubmitting: size, .now() - began)
                turns.submissions.leave(size, after: pause, on: self.loop.loop)
                let waiter = self.state.withLock { state -> CheckedContinuation<Void, Never>? in
                    state.submitting -= 1
                    guard let (most, waiter) = state.submitter, state.submitting <= most else { return nil }
                    state.submitter = nil
                    return waiter
                }
                waiter?.resume()
            }
        }
        if state.withLock({ $0.submitting <= groups }) { return }
        await withCheckedContinuation { continuation in
            let isFew = state.withLock { state in
                if state.submitting <= groups { return true }
                state.submitter = (groups, continuation)
                return false
            }
            if isFew { continuation.resume() }
        }
    }

    /// The first submissions, as many as go to the store together, and what they count among those on their way.
    private func removeGroup(from rest: inout ArraySlice<Submit>) -> (calls: [Submit], size: Int) {
        let largest = account.turns.largestGroup
        var (count, size) = (0, 0)
        for submit in rest {
            let next = Turns.size(ofSubmission: submit.cost)
            if count > 0, next > largest - size { break }
            count += 1
            size += next
        }
        defer { rest = rest.dropFirst(count) }
        return (Array(rest.prefix(count)), size)
    }

    /// So many lines are answered.
    func answered(lines: Int) {
        state.withLock { $0.open -= lines }
        checkDrained()
    }

    private func carryOut(_ method: MethodName, _ call: Call) async throws(ProtocolError) {
        switch method {
        case .serverInfo: try serverInfo(call)
        case .serverStats: try await serverStats(call)
        case .serverBackup: try await serverBackup(call)
        case .jobSubmit: break
        case .jobGet: try await jobGet(call)
        case .jobList: try await jobList(call)
        case .jobWait: try await jobWait(call)
        case .jobWatch: try await jobWatch(call)
        case .jobUnwatch: try await jobUnwatch(call)
        case .jobCancel: try await jobCancel(call)
        case .jobRetry: try await jobRetry(call)
        case .jobRemove: try await jobRemove(call)
        case .jobResult: try await jobResult(call)
        case .jobExplain: try await jobExplain(call)
        case .queueList: try await queueList(call)
        case .queueSet: try await queueSet(call)
        case .scheduleSet: try await scheduleSet(call)
        case .scheduleGet: try await scheduleGet(call)
        case .scheduleList: try await scheduleList(call)
        case .scheduleRemove: try await scheduleRemove(call)
        case .scheduleRun: try await scheduleRun(call)
        case .scheduleSuspend: try await scheduleSuspend(call, true)
        case .scheduleResume: try await scheduleSuspend(call, false)
        }
    }

    // MARK: - Backups

    var keptBackup: StateBackup? { state.withLock { $0.backup } }

    /// Keeps a copy of the state for this client, until it is gone.
    func keep(backup: StateBackup?) {
        let old = state.withLock { state in
            defer { state.backup = state.isGone ? nil : backup }
            return state.backup
        }
        old?.end()
    }

    // MARK: - Waits

    /// Registers a wait that begins; gives its request, or the reason why there cannot be one more.
    /// `jobs` are as many as it waits for.
    func beginWait(_ call: Call, jobs: Int) throws(ProtocolError) -> RequestID {
        if let refusal = refusalAboveLimit() { throw refusal }
        let charge = try charge(forIDs: jobs)
        let id = engine.nextID()
        let isOpen = state.withLock { state in
            // A wait that began after the others were ended would never be ended.
            if !state.isShuttingDown { state.waits[id] = Wait(call: call, charge: charge) }
            return !state.isShuttingDown
        }
        guard isOpen else { throw Self.shuttingDown }
        return id
    }

    /// Why one more call is refused, where so many have no answer yet. All but waits are answered before the next.
    private func refusalAboveLimit() -> ProtocolError? {
        guard state.withLock({ $0.waits.count >= limits.inFlight }) else { return nil }
        return ProtocolError(
            .busy, "This connection has \(limits.inFlight) calls without an answer; wait for some of them.",
            [JSONObject.Member(name: "retryAfter", value: 1)])
    }

    func isWaiting(_ id: RequestID) -> Bool { state.withLock { $0.waits[id] != nil } }

    /// Removes a wait that gets its answer; nil where it was answered before.
    func endWait(_ id: RequestID) -> Call? {
        state.withLock { $0.waits.removeValue(forKey: id) }?.call
    }

    /// About what each job takes that a wait or a watch names: its id stands in the core under the job and in the order asked
    /// for, and in a watch among those that are unfinished.
    private static let bytesPerID = 192

    /// What each watch counts besides: itself, its part of the core's index, and one notification on its way. There can be some
    /// thousands of one user, as each change of what they cover is told to all of them.
    private static let bytesPerWatch = 8 << 10

    private func charge(forIDs count: Int) throws(ProtocolError) -> MemoryCharge {
        try charge(forBytes: count * Self.bytesPerID)
    }

    /// Counts what something takes in memory until it is not retained any more.
    func charge(forBytes bytes: Int) throws(ProtocolError) -> MemoryCharge {
        guard account.admits(bytes) else { throw account.refusal() }
        return MemoryCharge(of: bytes, in: account)
    }

    /// Asks the core; its refusal becomes the answer's error.
    func ask<Value: Sendable>(
        _ request: CoreRequest, _ value: (CoreAnswer) -> Value?
    ) async throws(ProtocolError) -> Value {
        let answer = await engine.ask(request, for: caller, on: loop)
        if let value = value(answer) { return value }
        if case .failed(let error) = answer { throw ProtocolError(error) }
        throw ProtocolError(.internal, "The request got another's answer; this is a defect of the daemon.")
    }

    // MARK: - Watches

    /// A new watch, which buffers its events until it is opened.
    ///
    /// `jobs` are as many as it names, and `bytes` what else it names takes.
    func makeWatch(jobs: Int, bytes: Int = 0) throws(ProtocolError) -> ConnectionWatch {
        let charge = try charge(forBytes: jobs * Self.bytesPerID + bytes + Self.bytesPerWatch)
        let number = state.withLock { state -> Int? in
            guard state.watches.count < limits.inFlight else { return nil }
            state.lastWatch += 1
            return state.lastWatch
        }
        guard let number else {
            throw ProtocolError(
                .busy, "This connection has \(limits.inFlight) watches; end some of them with job.unwatch.",
                [JSONObject.Member(name: "retryAfter", value: 1)])
        }
        let watch = ConnectionWatch(
            number: number, subscription: engine.nextID(), outbox: outbox, charge: charge
        ) { [weak self] in self?.checkDrained() }
        engine.register(watch, as: watch.subscription, of: peer.uid)
        state.withLock { $0.watches[watch.name] = watch }
        return watch
    }

    /// Removes a watch, whose subscription is to be ended then; nil where there is none of that name.
    func removeWatch(_ name: String) -> ConnectionWatch? {
        state.withLock { $0.watches.removeValue(forKey: name) }
    }

    // MARK: - Ending

    /// Returns once every call is answered and every watched job is over.
    ///
    /// Where its task is cancelled, at the end of the daemon's stop, it gives up what is not answered.
    func drained() async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                state.withLock { $0.drained = continuation }
                checkDrained()
            }
        } onCancel: {
            clientLeft()
        }
    }

    private func checkDrained() {
        let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.open == 0 || state.isGone,
                state.isShuttingDown || state.watches.values.allSatisfy(\.isSettled)
            else { return nil }
            defer { state.drained = nil }
            return state.drained
        }
        continuation?.resume()
    }

    /// Answers the open waits, as nothing more will come.
    func shutDown() {
        let waits = state.withLock { state in
            state.isShuttingDown = true
            defer { state.waits = [:] }
            return Array(state.waits.values)
        }
        for wait in waits { wait.call.fail(Self.shuttingDown) }
        checkDrained()
    }

    /// Whether the client has closed the connection. The channel knows before ``clientLeft()`` is called, which is after what had
    /// been read is carried out.
    private var isGone: Bool { !channel.isActive || state.withLock(\.isGone) }

    var hasBegun: Bool { state.withLock(\.hasBegun) }
    var isShuttingDown: Bool { state.withLock(\.isShuttingDown) }

    private static let shuttingDown = ProtocolError(
        .shuttingDown, "The daemon is shutting down; ask again when it is back.")

    /// The connection is closed: nothing can be sent any more, so nothing is waited for.
    func clientLeft() {
        outbox.close()
        state.withLock { state in
            state.isShuttingDown = true
            state.isGone = true
            state.backup = nil
        }
        checkDrained()
    }

    /// Gives up what the client no longer waits for.
    func abandon() {
        let (waits, watches) = state.withLock { state in
            defer {
                state.waits = [:]
                state.watches = [:]
            }
            return (Array(state.waits.keys), Array(state.watches.values))
        }
        outbox.close()
        for wait in waits { engine.abandon(wait, of: peer.uid) }
        for watch in watches { engine.unsubscribe(watch.subscription, of: peer.uid) }
        shutDown()
    }
}

/// A `job.submit` on its way.
struct Submit: Sendable {
    enum Spec: Sendable {
        case written(JSONObject)
        case checked(Result<SubmittedSpec, ProtocolError>)
    }

    let id: JSON?
    let spec: Spec
    /// The answers of the batch that it is part of; nil for a call with a line of its own.
    let batch: Replies?
    /// What it takes in memory, in bytes that are counted until it is answered.
    let cost: Int
}
