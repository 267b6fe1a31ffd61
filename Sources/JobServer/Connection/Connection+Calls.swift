import JobCore
import JobEngine
import JobModel
import JobProtocol
import LoopTasks
import Synchronization

/// Reads lines and executes their calls, in order except for waits.
extension Connection {
    /// Executes the calls of one read.
    func handle(_ lines: ReadLines) async {
        var submits: [Submit] = []
        let limits = limits
        for frame in lines.frames {
            if !budget.hasRoom {
                // It must not wait for memory that its own submissions hold.
                await submit(&submits)
                await budget.room(on: loop.loop)
            }
            switch frame {
            case .tooLong:
                await refuse(
                    ProtocolError(
                        .invalidRequest, "The line is longer than \(limits.line) bytes; split the request up.",
                        [JSONObject.Member(name: "kind", value: "line-too-long")]), &submits)
            case .line(let line): await handle(line, limits, &submits)
            }
        }
        // More can be read while these are stored.
        await submit(&submits, atMost: Self.groups)
    }

    /// Answers a line that could not be read.
    private func refuse(_ error: ProtocolError, _ submits: inout [Submit]) async {
        await submit(&submits)
        replies().fail(.null, error)
    }

    private func handle(_ bytes: [UInt8], _ limits: JobLimits, _ submits: inout [Submit]) async {
        let (line, cost) = IncomingLine.read(bytes, budget: limits.lineValues)
        let charge = BudgetCharge(work: cost, in: budget)
        switch line {
        case .single(let call): await dispatch(call, nil, charge, &submits)
        case .batch(let calls):
            let least = Replies.least(calls)
            guard least + 2 < limits.outbound else {
                return await refuse(
                    .busy(
                        "The batch has more calls than \(limits.outbound) bytes can answer; split it up.", retryAfter: 0
                    ),
                    &submits)
            }
            // The batch's answers are kept until the last one is ready, which may take years.
            guard let kept = BudgetCharge(registering: least, in: budget) else {
                return await refuse(Self.noRoom, &submits)
            }
            let batch = replies(calls: calls.count, batch: least, charge: kept)
            for call in calls { await dispatch(call, batch, charge, &submits) }
        }
    }

    private func replies(calls: Int = 1, batch least: Int? = nil, charge: BudgetCharge? = nil) -> Replies {
        state.withLock { $0.open += 1 }
        // A longer line would close the connection.
        return Replies(calls: calls, batch: least, charge: charge, limit: limits.outbound - 1, outbox: outbox) {
            [weak self] in self?.answered(lines: 1)
        }
    }

    /// Records that this many lines are answered.
    func answered(lines: Int) {
        state.withLock { $0.open -= lines }
        changed()
    }

    /// Dispatches a call; `batch` gathers a batch's answers, nil for a single call, and `charge` is the line's memory.
    private func dispatch(
        _ call: IncomingCall, _ batch: Replies?, _ charge: BudgetCharge, _ submits: inout [Submit]
    ) async {
        switch call {
        case .rejected(let id, let error):
            await submit(&submits)
            (batch ?? replies()).fail(id, error)
        case .request(let request):
            let method = MethodName(rawValue: request.method)
            let refusal = batch?.isFull == true ? Replies.full : refusalAboveLimit()
            if method == .jobSubmit, refusal == nil {
                return await gather(Submit(request, batch: batch, charge: charge), &submits)
            }
            await submit(&submits)
            let call = Call(request: request, replies: batch ?? replies(), charge: charge)
            if let refusal { return call.fail(refusal) }
            // An executed call must be answered, so none is executed if its answer may not fit.
            if batch != nil, call.room < Self.smallAnswer { return call.fail(Replies.full) }
            await carryOut(method, call)
        }
    }

    /// An upper bound on the smallest answer to any call but a submission, in bytes.
    private static let smallAnswer = 2 * JobDetail.least

    /// Executes a call; an error becomes its answer.
    private func carryOut(_ method: MethodName?, _ call: Call) async {
        guard let method else {
            let known = MethodName.allCases.map(\.rawValue).joined(separator: ", ")
            return call.fail(
                ProtocolError(
                    .methodNotFound, "There is no method \"\(call.request.method.echoed)\"; known are \(known)."))
        }
        // No client is left to read an answer; calls that change something are still executed.
        if method.isRead, isGone { return call.fail(Self.shuttingDown) }
        let answer = BudgetCharge(work: method.answerBytes, in: budget)
        do throws(ProtocolError) {
            try await carryOut(method, call)
        } catch {
            call.fail(error)
        }
        withExtendedLifetime(answer) {}
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

    /// Asks the core; a refusal becomes the answer's error.
    func ask<Value: Sendable>(
        _ request: CoreRequest, _ value: (CoreAnswer) -> Value?
    ) async throws(ProtocolError) -> Value {
        let answer = await engine.ask(request, for: caller)
        if let value = value(answer) { return value }
        if case .failed(let error) = answer { throw ProtocolError(error) }
        throw ProtocolError(.internal, "The request got another's answer; this is a defect of the daemon.")
    }

    // MARK: - Submissions

    /// Adds a submission to those that will be submitted together.
    private func gather(_ new: Submit, _ submits: inout [Submit]) async {
        // A batch's watches begin with its answer, so waiting for one of them would never end.
        if new.batch == nil, new.isWatched, mustWaitForWatches(besides: submits.count) {
            await submit(&submits, atMost: Self.groups)
            await roomForWatch()
        }
        if new.batch == nil { state.withLock { $0.open += 1 } }
        submits.append(new)
        // If no group is on its way, the first ones are stored while the rest is read.
        if submits.count == Self.firstGroup, state.withLock({ $0.submitting == 0 }) {
            await submit(&submits, atMost: Self.groups)
        }
    }

    /// Submissions stored ahead of others of their read, and the maximum number of groups in flight.
    private static let firstGroup = 32
    private static let groups = 8

    /// Submits all waiting jobs with one fsync; returns once at most `groups` groups are unanswered.
    private func submit(_ submits: inout [Submit], atMost groups: Int = 0) async {
        if !submits.isEmpty {
            let group = submits
            submits = []
            state.withLock { $0.submitting += 1 }
            submitJobs(group) { [self] in
                state.withLock { $0.submitting -= 1 }
                changed()
            }
        }
        if state.withLock({ $0.submitting > groups }) { await wait { $0.submitting <= groups } }
    }
}

/// A `job.submit` in progress.
struct Submit: Sendable {
    let id: JSON?
    let params: JSONObject
    /// The answers of its batch; nil for a call on a line of its own.
    let batch: Replies?
    /// The memory of its line, until it is answered.
    private let charge: BudgetCharge

    init(_ request: Request, batch: Replies?, charge: BudgetCharge) {
        id = request.id
        params = request.params
        self.batch = batch
        self.charge = charge
    }

    var isWatched: Bool { params["watch"] == true }
}

extension MethodName {
    /// The approximate maximum memory of its answer, in bytes, before the outbox counts it.
    fileprivate var answerBytes: Int {
        switch self {
        case .jobList, .jobWatch, .scheduleList: 4 << 20
        case .jobGet, .jobResult, .jobExplain, .jobCancel, .jobRetry, .serverBackup, .scheduleSet, .scheduleGet,
            .scheduleSuspend, .scheduleResume:
            1 << 20
        case .serverInfo, .serverStats, .jobSubmit, .jobWait, .jobUnwatch, .jobRemove, .queueList, .queueSet,
            .scheduleRemove, .scheduleRun:
            0
        }
    }
}
