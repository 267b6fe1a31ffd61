import JobCore
import JobEngine
import JobModel
import JobProtocol
import LoopTasks
import Synchronization

/// Reads lines and executes their calls, in order except for waits.
///
/// Submissions are gathered and stored together, without waiting for their answers; any other call begins once the
/// calls before it are answered.
extension Connection {
    /// Executes the calls of one read.
    func handle(_ lines: ReadLines) async {
        var submits: [Submit] = []
        let limits = limits
        for frame in lines.frames {
            if !budget.hasRoom {
                // It must not wait for memory that its own submissions hold.
                await settle(&submits)
                await budget.room(on: loop.loop)
            }
            let (calls, batch, charge) = read(frame, limits)
            for call in calls {
                guard let submission = submission(call, batch, charge) else {
                    await settle(&submits)
                    await carryOut(call, batch, charge)
                    continue
                }
                if submission.isWatched, batch == nil, mustWaitForWatches(besides: submits.count) {
                    start(&submits)
                    await wait { $0.submitting <= Self.groups }
                    await roomForWatch()
                }
                submits.append(submission)
                // If no group is on its way, the first ones are stored while the rest is read.
                if submits.count == Self.firstGroup, state.withLock({ $0.submitting == 0 }) { start(&submits) }
            }
        }
        // More can be read while these are stored.
        start(&submits)
        await wait { $0.submitting <= Self.groups }
    }

    /// The calls of a line, the answers of its batch, and its memory.
    private typealias Line = (calls: [IncomingCall], batch: Replies?, charge: BudgetCharge)

    /// Reads a line; one that cannot be executed becomes a rejected call.
    private func read(_ frame: LineFramer.Frame, _ limits: JobLimits) -> Line {
        guard case .line(let bytes) = frame else {
            let error = ProtocolError(
                .invalidRequest, "The line is longer than \(limits.line) bytes (limits.line); send less at once.",
                ["kind": "line-too-long"])
            return ([.rejected(id: .null, error)], nil, BudgetCharge(work: 0, in: budget))
        }
        let (line, cost) = IncomingLine.read(bytes, budget: limits.lineValues)
        let charge = BudgetCharge(work: cost, in: budget)
        switch line {
        case .single(let call): return ([call], nil, charge)
        case .batch(let calls):
            let least = Replies.least(calls)
            guard least + 2 < limits.outbound else {
                let error = ProtocolError.busy(
                    "The batch has more calls than \(limits.outbound) bytes can answer; split it up.", retryAfter: 0)
                return ([.rejected(id: .null, error)], nil, charge)
            }
            // The batch's answers are kept until the last one is ready, which may take years.
            guard let kept = BudgetCharge(registering: least, in: budget) else {
                return ([.rejected(id: .null, Self.noRoom)], nil, charge)
            }
            return (calls, replies(calls: calls.count, batch: least, charge: kept), charge)
        }
    }

    private func replies(calls: Int = 1, batch least: Int? = nil, charge: BudgetCharge? = nil) -> Replies {
        state.withLock { $0.open += 1 }
        // A longer line would close the connection.
        return Replies(calls: calls, batch: least, charge: charge, limit: limits.outbound - 1, outbox: outbox) {
            [weak self] in
            self?.state.withLock { $0.open -= 1 }
            self?.changed()
        }
    }

    // MARK: - Submissions

    /// The call as a submission that may be executed; nil if it is another call.
    private func submission(_ call: IncomingCall, _ batch: Replies?, _ charge: BudgetCharge) -> Submit? {
        guard case .request(let request) = call, request.method == MethodName.jobSubmit.rawValue,
            refusal(batch) == nil
        else { return nil }
        return Submit(id: request.id, params: request.params, batch: batch, charge: charge)
    }

    /// The reason why no further call is executed now. All calls but waits are answered before the next.
    private func refusal(_ batch: Replies?) -> ProtocolError? {
        if batch?.isFull == true { return Replies.full }
        let waits = state.withLock { $0.waits.count }
        guard waits > 0, waits >= limits.inFlight else { return nil }
        return .busy("This connection has \(waits) calls without an answer; wait for some of them.", retryAfter: 1)
    }

    /// Submissions stored ahead of others of their read, and the maximum number of groups in flight.
    private static let firstGroup = 32
    private static let groups = 8

    /// Submits the gathered jobs with one fsync.
    private func start(_ submits: inout [Submit]) {
        guard !submits.isEmpty else { return }
        state.withLock { $0.submitting += 1 }
        submitJobs(exchange(&submits, with: [])) { [self] in
            state.withLock { $0.submitting -= 1 }
            changed()
        }
    }

    /// Submits the gathered jobs; returns once all submissions are answered.
    private func settle(_ submits: inout [Submit]) async {
        start(&submits)
        await wait { $0.submitting == 0 }
    }

    // MARK: - Other calls

    /// An upper bound on the smallest answer to any call but a submission, in bytes.
    private static let smallAnswer = 2 * JobDetail.leastSize

    /// Executes a call; an error becomes its answer. `batch` gathers a batch's answers, `charge` is the line's memory.
    private func carryOut(_ call: IncomingCall, _ batch: Replies?, _ charge: BudgetCharge) async {
        let replies = batch ?? replies()
        switch call {
        case .rejected(let id, let error): replies.fail(id, error)
        case .request(let request):
            let call = Call(request: request, replies: replies, charge: charge)
            do {
                if let refusal = refusal(batch) { throw refusal }
                // An executed call must be answered, so none is executed if its answer may not fit.
                if batch != nil, call.room < Self.smallAnswer { throw Replies.full }
                let method = try MethodName(known: request.method)
                let answer = BudgetCharge(work: method.answerBytes, in: budget)
                defer { withExtendedLifetime(answer) {} }
                try await carryOut(method, call)
            } catch {
                call.fail(error)
            }
        }
    }

    private func carryOut(_ method: MethodName, _ call: Call) async throws {
        // No client is left to read an answer; calls that change something are still executed.
        if method.isRead, isGone { throw Self.shuttingDown }
        switch method {
        case .serverInfo: try serverInfo(call)
        case .serverStats: try await serverStats(call)
        case .serverUsage: try await serverUsage(call)
        case .serverNodes: try await serverNodes(call)
        case .serverBackup: try await serverBackup(call)
        case .jobSubmit:
            // There was no room for it when it was read.
            var submits = [
                Submit(id: call.request.id, params: call.request.params, batch: call.replies, charge: call.charge)
            ]
            await settle(&submits)
        case .jobGet: try await jobGet(call)
        case .jobList: try await jobList(call)
        case .jobWait: try await jobWait(call)
        case .jobWatch: try await jobWatch(call)
        case .jobUnwatch: try await jobUnwatch(call)
        case .jobCancel: try await jobChange(call) { _ in .cancel }
        case .jobRetry:
            try await jobChange(call, ["from"]) { .retry(from: try $0.choice("from") ?? .failed) }
        case .jobRemove: try await jobChange(call) { _ in .remove }
        case .jobHold: try await jobChange(call) { _ in .hold }
        case .jobRelease: try await jobChange(call) { _ in .release }
        case .jobSet:
            try await jobChange(call, JobSettings.members) { .set(try JobSettings($0)) }
        case .jobResult: try await jobResult(call)
        case .jobOutput: try await jobOutput(call)
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

    /// Asks the core; a refusal becomes the answer's error.
    func ask<Value: Sendable>(_ request: CoreRequest, _ value: (CoreAnswer) -> Value?) async throws -> Value {
        let answer = await engine.ask(request, for: caller)
        if let value = value(answer) { return value }
        if case .failed(let error) = answer { throw error }
        throw ProtocolError(.internal, "The request got another's answer; this is a defect of the daemon.")
    }
}

/// A `job.submit` in progress.
struct Submit: Sendable {
    let id: JSON?
    let params: JSONObject
    /// The answers of its batch; nil for a call on a line of its own.
    let batch: Replies?
    /// The memory of its line, until it is answered.
    let charge: BudgetCharge

    var isWatched: Bool { params["watch"] == true }
}

extension MethodName {
    /// Returns the method of a call, or throws the refusal of an unknown one.
    fileprivate init(known name: String) throws(ProtocolError) {
        guard let method = Self(rawValue: name) else {
            let known = Self.allCases.map(\.rawValue).joined(separator: ", ")
            throw ProtocolError(.methodNotFound, "There is no method \"\(name.echoed)\"; known are \(known).")
        }
        self = method
    }

    /// The approximate maximum memory of its answer, in bytes, before the outbox counts it.
    fileprivate var answerBytes: Int {
        switch self {
        case .jobList, .jobWatch, .scheduleList: 4 << 20
        case .jobGet, .jobResult, .jobOutput, .jobExplain, .jobCancel, .jobRetry, .jobHold, .jobRelease, .jobSet,
            .serverNodes, .serverBackup, .scheduleSet, .scheduleGet, .scheduleSuspend, .scheduleResume:
            1 << 20
        case .serverInfo, .serverStats, .serverUsage, .jobSubmit, .jobWait, .jobUnwatch, .jobRemove, .queueList,
            .queueSet,
            .scheduleRemove, .scheduleRun:
            0
        }
    }
}
