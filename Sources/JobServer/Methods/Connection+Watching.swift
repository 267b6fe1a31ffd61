import JobCore
import JobEngine
import JobModel
import JobProtocol
import LoopTasks
import NIOCore

/// `job.watch`, `job.unwatch` and `job.wait`.
extension Connection {
    func jobWatch(_ call: Call) async throws(ProtocolError) {
        let scope = try call.read { (params) throws(SpecError) in try WatchScope(params) }
        let watch = try makeWatch(jobs: scope.named, bytes: scope.bytes, isFixed: scope.isFixed)
        let begun: (jobs: [JobView], isTruncated: Bool)
        do throws(ProtocolError) {
            begun = try await ask(.watch(scope, watch.subscription), \.watching)
        } catch {
            if let watch = removeWatch(watch.number) { await engine.endSubscription(watch.subscription) }
            throw error
        }
        var writer = JSONWriter()
        writer.raw("{\"watch\":")
        writer.write(watch.name)
        writer.raw(",\"jobs\":[")
        let page = page(of: begun.jobs, within: call.room - 128)
        writer.raw(page.text)
        writer.raw("]")
        if begun.isTruncated || page.count < begun.jobs.count { writer.raw(",\"truncated\":true") }
        writer.raw("}")
        let unfinished = begun.jobs.filter { !$0.job.state.isTerminal }.map(\.job.id)
        call.succeed(text: writer.bytes) { watch.open(unfinished: unfinished, isAll: !begun.isTruncated) }
    }

    func jobUnwatch(_ call: Call) async throws(ProtocolError) {
        let name = try call.read { (params) throws(SpecError) in
            try params.allow(["watch"])
            return try params.requiredString("watch")
        }
        let number = Int(name.dropFirst()).flatMap { name == "w\($0)" ? $0 : nil } ?? 0
        guard let watch = removeWatch(number) else {
            if hasEnded(watch: number) { return call.succeed([:]) }
            throw ProtocolError(.notFound, "This connection has no watch \"\(name.echoed)\".")
        }
        // What it takes in memory is given back before the answer, so that the next request finds room.
        await engine.endSubscription(watch.subscription)
        outbox.end(watch: watch.number)
        call.succeed([:])
    }

    /// Jobs that one call waits for.
    private static let mostAwaited = 1000

    func jobWait(_ call: Call) async throws(ProtocolError) {
        let (ids, timeout, isList) = try call.read { (params) throws(SpecError) in
            try params.allow(["job", "jobs", "timeout"])
            let timeout = try params.number("timeout", in: 0...315_360_000)
            guard let ids = try params.jobs(atMost: Self.mostAwaited) else { throw params.missing("job") }
            return (ids, timeout, params.value("jobs") != nil)
        }
        if ids.isEmpty { return call.succeed(["jobs": []]) }
        let deadline = timeout.map { NIODeadline.now() + .nanoseconds(Int64($0 * 1e9)) }
        wait(for: ids, isList: isList, until: deadline, try beginWait(call, jobs: ids.count))
    }
}

extension Connection {
    private func wait(for ids: [JobID], isList: Bool, until deadline: NIODeadline?, _ id: RequestID) {
        let timeout = deadline.map { Double(max(0, ($0 - .now()).nanoseconds)) / 1e9 }
        engine.ask(.wait(ids, timeout: timeout), for: caller, id: id) { [weak self] answer in
            guard let self else { return }
            switch answer {
            // What is written here is written by the engine, which others wait for.
            case .job(let job) where !isList && job.job.memorySize <= Self.writtenAtOnce:
                endWait(id)?.succeed(job: job)
            case .finished, .job: self.answer(id, ids, isList: isList, until: deadline)
            case .failed(let error): endWait(id)?.fail(ProtocolError(error))
            default:
                endWait(id)?.fail(
                    ProtocolError(.internal, "The wait got another answer; this is a defect of the daemon."))
            }
        }
    }

    /// Bytes that a job takes in memory which is written in a few microseconds, as most are.
    private static let writtenAtOnce: Int64 = 8 << 10

    /// Answers a wait for several jobs or a large one. They are read only once there is room for them, so that waits that are
    /// over take no more memory than others.
    private func answer(_ id: RequestID, _ ids: [JobID], isList: Bool, until deadline: NIODeadline?) {
        // Owned by the wait: it ends with it.
        Task(executorPreference: loop) { [self] in
            await budget.room(on: loop.loop)
            guard isWaiting(id) else { return }
            let charge = BudgetCharge(.work, of: Self.answerBytes, in: budget)
            do throws(ProtocolError) {
                guard let jobs = try await ask(.jobs(ids), \.finishedJobs) else {
                    // A job was retried meanwhile.
                    return wait(for: ids, isList: isList, until: deadline, id)
                }
                if let call = endWait(id) {
                    if isList { answer(call, with: jobs) } else if let job = jobs.first { call.succeed(job: job) }
                }
            } catch {
                endWait(id)?.fail(error)
            }
            withExtendedLifetime(charge) {}
        }
    }

    /// What the jobs of one wait take in memory while they are written, about.
    private static let answerBytes = 4 << 20

    private func answer(_ call: Call, with jobs: [JobView]) {
        var complete = CompleteJobPage(jobs, within: call.replies.roomOutsideBatch(for: call.request.id) - 16)
        while complete.advance() != nil {}
        var writer = JSONWriter()
        writer.raw("{\"jobs\":[")
        writer.raw(complete.page.text)
        writer.raw("]}")
        call.succeed(text: writer.bytes)
    }
}

extension CoreAnswer {
    /// The jobs of a wait; none where it goes on.
    fileprivate var finishedJobs: [JobView]?? {
        switch self {
        case .jobs(let jobs): jobs
        case .unfinished: .some(nil)
        default: nil
        }
    }
}

extension WatchScope {
    /// How many jobs it names.
    fileprivate var named: Int { if case .jobs(let ids) = subject { ids.count } else { 0 } }

    /// Whether it covers no job that comes later, but for children.
    fileprivate var isFixed: Bool { if case .jobs = subject { true } else { false } }

    /// Bytes of the tag that it names.
    fileprivate var bytes: Int { if case .tag(let tag) = subject { tag.utf8.count } else { 0 } }

    /// Jobs that one watch names.
    private static let mostJobs = 100_000

    init(_ params: MemberReader) throws(SpecError) {
        try params.allow(["job", "jobs", "tag", "all", "interval", "children"])
        let given = ["job", "jobs", "tag", "all"].filter { params.value($0) != nil }
        guard given.count == 1 else {
            throw given.count > 1
                ? params.fault(given[1], "Give only one of \"job\", \"jobs\", \"tag\" and \"all\".")
                : params.fault("job", "Say what to watch: \"job\", \"jobs\", \"tag\" or \"all\".")
        }
        let interval = try params.number("interval", in: 0.01...3600) ?? 0.25
        let children = try params.flag("children") ?? false
        if let ids = try params.jobs(atMost: Self.mostJobs, mayRepeat: true) {
            self.init(.jobs(ids), interval: interval, includesChildren: children)
        } else if let tag = try params.string("tag", flaw: JobSpec.flaw(inTag:)) {
            self.init(.tag(tag), interval: interval, includesChildren: children)
        } else {
            guard try params.flag("all") == true else {
                throw params.fault("all", "\"all\" can only be true; leave it out to watch less.")
            }
            self.init(.all, interval: interval, includesChildren: children)
        }
    }
}
