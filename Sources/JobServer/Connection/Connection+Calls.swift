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
    /// Executes the calls of lines that were read together.
    func handle(_ frames: [LineFramer.Frame]) async {
        var submissions: [Call] = []
        let limits = limits
        for frame in frames {
            if !budget.hasRoom {
                // It must not wait for memory that its own submissions hold.
                await settle(&submissions)
                await budget.room(on: loop.loop)
            }
            for call in read(frame, limits) {
                guard call.rejection == nil, refusal(call.batch) == nil,
                    call.request.method == MethodName.jobSubmit.rawValue
                else {
                    await settle(&submissions)
                    // A client that asks for more than it has read yet is answered at its pace.
                    let turn = engine.nextID()
                    await outbox.beginTurn(of: turn)
                    await carryOut(call)
                    outbox.endTurn(of: turn)
                    continue
                }
                if call.batch == nil, call.request.params["watch"] == true,
                    !state.withLock({ hasRoomForWatch($0, besides: submissions.count) })
                {
                    start(exchange(&submissions, with: []))
                    await wait { $0.submitting <= Self.groups && hasRoomForWatch($0) }
                }
                submissions.append(call)
                // If no group is on its way, the first ones are stored while the rest is read.
                if submissions.count == Self.firstGroup, state.withLock({ $0.submitting == 0 }) {
                    start(exchange(&submissions, with: []))
                }
            }
        }
        // More can be read while these are stored.
        start(submissions)
        await wait { $0.submitting <= Self.groups }
    }

    /// Reads the calls of a line; one that cannot be executed becomes a rejected call.
    private func read(_ frame: LineFramer.Frame, _ limits: JobLimits) -> [Call] {
        var (incoming, cost, batch) = ([IncomingCall](), 0, Batch?.none)
        do throws(ProtocolError) {
            guard case .line(let bytes) = frame else {
                throw ProtocolError(
                    .invalidRequest, "The line is longer than \(limits.line) bytes (limits.line); send less at once.",
                    ["kind": "line-too-long"])
            }
            let line = IncomingLine(bytes, budget: limits.lineValues)
            (incoming, cost) = (line.calls, line.cost)
            if line.isBatch { batch = try Batch(incoming, limit: limits.outbound, outbox: outbox, budget: budget) }
        } catch {
            incoming = [IncomingCall(id: .null, error)]
        }
        let charge = BudgetCharge(work: cost, in: budget)
        return incoming.map { [outbox] call in
            Call(request: call.request, rejection: call.rejection, batch: batch, charge: charge, outbox: outbox)
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
    private func start(_ submissions: [Call]) {
        if submissions.isEmpty { return }
        state.withLock { $0.submitting += 1 }
        submitJobs(submissions) { [self] in
            state.withLock { $0.submitting -= 1 }
            changed()
        }
    }

    /// Submits the gathered jobs; returns once all submissions are answered.
    private func settle(_ submissions: inout [Call]) async {
        start(exchange(&submissions, with: []))
        await wait { $0.submitting == 0 }
    }

    // MARK: - Other calls

    /// An upper bound on the smallest answer to any call but a submission, in bytes.
    private static let smallAnswer = 2 * JobDetail.leastSize

    /// Executes a call unless it is refused; an error becomes its answer.
    private func carryOut(_ call: Call) async {
        do {
            if let refusal = call.rejection ?? refusal(call.batch) { throw refusal }
            // An executed call must be answered, so none is executed if its answer may not fit.
            if call.batch != nil, call.room < Self.smallAnswer { throw Batch.full }
            try await answer(call)
        } catch {
            call.fail(error)
        }
    }

    private func answer(_ call: Call) async throws {
        switch MethodName(rawValue: call.request.method) {
        case nil:
            let known = MethodName.allCases.map(\.rawValue).joined(separator: ", ")
            throw ProtocolError(
                .methodNotFound, "There is no method \"\(call.request.method.echoed)\"; known are \(known).")
        case .serverInfo: try serverInfo(call)
        case .serverStats: try await serverStats(call)
        case .serverUsage: try await look { try $0.serverUsage(call) }
        case .serverNodes: try await look { try $0.serverNodes(call) }
        case .serverBackup: try await serverBackup(call)
        // Others are gathered before; this one was refused then.
        case .jobSubmit: start([call])
        case .jobGet: try await look { try $0.jobGet(call) }
        case .jobList: try await look { try $0.jobList(call) }
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
        case .jobResult: try await look { try $0.jobResult(call) }
        case .jobOutput: try await jobOutput(call)
        case .jobExplain: try await look { try $0.jobExplain(call) }
        case .queueList: try queueList(call)
        case .queueSet: try await queueSet(call)
        case .scheduleSet: try await scheduleSet(call)
        case .scheduleGet: try await look { try $0.scheduleGet(call) }
        case .scheduleList: try await look { try $0.scheduleList(call) }
        case .scheduleRemove: try await scheduleChange(call) { .removeSchedule($0) }
        case .scheduleRun: try await scheduleChange(call) { .runSchedule($0) }
        case .scheduleSuspend: try await scheduleChange(call) { .suspendSchedule($0, isSuspended: true) }
        case .scheduleResume: try await scheduleChange(call) { .suspendSchedule($0, isSuspended: false) }
        }
    }

    /// Asks the core; a refusal becomes the answer's error.
    @discardableResult func ask(_ request: CoreRequest) async throws -> CoreAnswer {
        let answer = await engine.ask(request, for: caller)
        if case .failed(let error) = answer { throw error }
        return answer
    }

    static let wrongAnswer = ProtocolError(
        .internal, "The request got another's answer; this is a defect of the daemon.")
}
