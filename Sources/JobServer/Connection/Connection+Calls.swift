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
        var submissions: [Call] = []
        let limits = limits
        for frame in lines.frames {
            if !budget.hasRoom {
                // It must not wait for memory that its own submissions hold.
                await settle(&submissions)
                await budget.room(on: loop.loop)
            }
            let (calls, batch, charge) = read(frame, limits)
            for incoming in calls {
                let call = Call(
                    request: incoming.request, batch: batch, charge: charge, outbox: outbox,
                    longest: min(Answer.mostBytes, limits.outbound - 1))
                let refusal = incoming.rejection ?? refusal(batch)
                let isSubmission = call.request.method == MethodName.jobSubmit.rawValue
                if refusal != nil || !isSubmission {
                    await settle(&submissions)
                    if let refusal { call.fail(refusal) } else { await carryOut(call) }
                    continue
                }
                if batch == nil, call.request.params["watch"] == true,
                    !state.withLock({ hasRoomForWatch($0, besides: submissions.count) })
                {
                    start(&submissions)
                    await wait { [self] in $0.submitting <= Self.groups && hasRoomForWatch($0) }
                }
                submissions.append(call)
                // If no group is on its way, the first ones are stored while the rest is read.
                if submissions.count == Self.firstGroup, state.withLock({ $0.submitting == 0 }) { start(&submissions) }
            }
        }
        // More can be read while these are stored.
        start(&submissions)
        await wait { $0.submitting <= Self.groups }
    }

    /// Reads a line into its calls, their batch, and the charge for its memory; one that cannot be executed becomes a rejected
    /// call.
    private func read(
        _ frame: LineFramer.Frame, _ limits: JobLimits
    ) -> (calls: [IncomingCall], batch: Batch?, charge: BudgetCharge) {
        guard case .line(let bytes) = frame else {
            let error = ProtocolError(
                .invalidRequest, "The line is longer than \(limits.line) bytes (limits.line); send less at once.",
                ["kind": "line-too-long"])
            return ([IncomingCall(id: .null, error)], nil, BudgetCharge(work: 0, in: budget))
        }
        let line = IncomingLine(bytes, budget: limits.lineValues)
        let charge = BudgetCharge(work: line.cost, in: budget)
        guard line.isBatch else { return (line.calls, nil, charge) }
        do throws(ProtocolError) {
            return (line.calls, try Batch(line.calls, limit: limits.outbound, outbox: outbox, budget: budget), charge)
        } catch {
            return ([IncomingCall(id: .null, error)], nil, charge)
        }
    }

    /// The reason why no further call is executed now. All calls but waits are answered before the next.
    private func refusal(_ batch: Batch?) -> ProtocolError? {
        if batch?.isFull == true { return Batch.full }
        let waits = state.withLock { $0.waits.count }
        guard waits > 0, waits >= limits.inFlight else { return nil }
        return .busy("This connection has \(waits) calls without an answer; wait for some of them.", retryAfter: 1)
    }

    // MARK: - Submissions

    /// Submissions stored ahead of others of their read, and the maximum number of groups in flight.
    private static let firstGroup = 32
    private static let groups = 8

    /// Submits the gathered jobs with one fsync.
    private func start(_ submissions: inout [Call]) {
        guard !submissions.isEmpty else { return }
        state.withLock { $0.submitting += 1 }
        submitJobs(exchange(&submissions, with: [])) { [self] in
            state.withLock { $0.submitting -= 1 }
            changed()
        }
    }

    /// Submits the gathered jobs; returns once all submissions are answered.
    private func settle(_ submissions: inout [Call]) async {
        start(&submissions)
        await wait { $0.submitting == 0 }
    }

    // MARK: - Other calls

    /// An upper bound on the smallest answer to any call but a submission, in bytes.
    private static let smallAnswer = 2 * JobDetail.leastSize
    /// The approximate memory of a call and its answer, in bytes, before the outbox counts it.
    private static let callBytes = 2 * Answer.mostBytes

    /// Executes a call; an error becomes its answer.
    private func carryOut(_ call: Call) async {
        do {
            if let refusal = refusal(call.batch) { throw refusal }
            // An executed call must be answered, so none is executed if its answer may not fit.
            if call.batch != nil, call.room < Self.smallAnswer { throw Batch.full }
            guard let method = MethodName(rawValue: call.request.method) else {
                let known = MethodName.allCases.map(\.rawValue).joined(separator: ", ")
                throw ProtocolError(
                    .methodNotFound, "There is no method \"\(call.request.method.echoed)\"; known are \(known).")
            }
            let memory = BudgetCharge(work: Self.callBytes, in: budget)
            defer { withExtendedLifetime(memory) {} }
            try await carryOut(method, call)
        } catch {
            call.fail(error)
        }
    }

    private func carryOut(_ method: MethodName, _ call: Call) async throws {
        switch method {
        case .serverInfo: try serverInfo(call)
        case .serverStats: try await serverStats(call)
        case .serverUsage: try await serverUsage(call)
        case .serverNodes: try await serverNodes(call)
        case .serverBackup: try await serverBackup(call)
        // Submissions are gathered before.
        case .jobSubmit: break
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
