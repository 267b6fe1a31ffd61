import JobCore
import JobEngine
import JobModel
import JobProtocol
import NIOCore

/// `job.watch`, `job.unwatch` and `job.wait`.
extension Connection {
    func jobWatch(_ call: Call) async throws(ProtocolError) {
        let scope = try call.read { (params) throws(SpecError) in try WatchScope(params) }
        let watch = try makeWatch(jobs: scope.named, bytes: scope.bytes)
        let begun: (jobs: [JobView], isTruncated: Bool)
        do throws(ProtocolError) {
            begun = try await ask(.watch(scope, watch.subscription), \.watching)
        } catch {
            if let watch = removeWatch(watch.name) { await engine.endSubscription(watch.subscription) }
            throw error
        }
        var writer = JSONWriter()
        writer.raw("{\"watch\":")
        writer.write(watch.name)
        writer.raw(",\"jobs\":[")
        let page = await page(of: begun.jobs, within: call.room - 128)
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
        guard let watch = removeWatch(name) else {
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
            case .finished: answerInTurn(id, ids, until: deadline)
            case .job where isList: answerInTurn(id, ids, until: deadline)
            // What is written at once is written by the engine, which others wait for.
            case .job(let job) where job.job.memorySize > Self.writtenAtOnce:
                answerInTurn(id, large: job, until: deadline)
            case .job(let job):
                guard let call = endWait(id) else { return }
                if let refusal = refusalOfAnswer { call.fail(refusal) } else { call.succeed(job: job) }
            case .failed(let error): endWait(id)?.fail(ProtocolError(error))
            default:
                endWait(id)?.fail(
                    ProtocolError(.internal, "The wait got another answer; this is a defect of the daemon."))
            }
        }
    }

    /// Bytes that a job takes in memory which is written in a few microseconds, as most are.
    private static let writtenAtOnce: Int64 = 8 << 10

    /// Answers a wait for a job whose text takes long to write, with the job as it ended. Where there is no memory to keep that
    /// until its turn, the job is read again.
    private func answerInTurn(_ id: RequestID, large ended: JobView, until deadline: NIODeadline?) {
        let shown = Int64(ended.job.spec.size).saturatingAdding(ended.job.carriedSize)
        let charge = try? charge(forBytes: Int(clamping: shown))
        let (ids, kept) = ([ended.job.id], charge == nil ? nil : ended)
        inTurn(ofWait: id, for: ids, isList: false, until: deadline) { () throws(ProtocolError) in
            var job = kept
            if job == nil { job = try await self.ask(.jobs(ids), \.finishedJobs)?.first }
            guard let job else { return false }
            if let refusal = self.refusalOfAnswer { throw refusal }
            self.endWait(id)?.succeed(job: job)
            withExtendedLifetime(charge) {}
            return true
        }
    }

    /// Answers a wait for several jobs, each in brief form. They are read only when it is its turn, so that waits that are over
    /// take no more memory than others.
    private func answerInTurn(_ id: RequestID, _ ids: [JobID], until deadline: NIODeadline?) {
        inTurn(ofWait: id, for: ids, isList: true, until: deadline) { () throws(ProtocolError) in
            guard let jobs = try await self.ask(.jobs(ids), \.finishedJobs) else { return false }
            let bytes = jobs.reduce(Int64(0)) { $0.saturatingAdding($1.job.memorySize) }
            let charge = try self.charge(forBytes: Int(clamping: bytes))
            if let call = self.endWait(id) { await self.answer(call, with: jobs) }
            withExtendedLifetime(charge) {}
            return true
        }
    }

    /// Has `answer` answer a wait that is over, when it is its turn: that is as much work as for a list, and others have theirs in
    /// between. It gives false where a job was retried meanwhile, so that the wait goes on.
    private func inTurn(
        ofWait id: RequestID, for ids: [JobID], isList: Bool, until deadline: NIODeadline?,
        _ answer: @escaping @Sendable () async throws(ProtocolError) -> Bool
    ) {
        // Owned by the wait: it ends with it.
        Task(executorPreference: loop) {
            var isOver = true
            await self.inTurn(of: .jobWait) {
                guard self.isWaiting(id) else { return }
                do throws(ProtocolError) { isOver = try await answer() } catch { self.endWait(id)?.fail(error) }
            }
            // The client may have given up, too.
            if !isOver, self.isWaiting(id) { self.wait(for: ids, isList: isList, until: deadline, id) }
        }
    }

    private func answer(_ call: Call, with jobs: [JobView]) async {
        var complete = CompleteJobPage(jobs, within: call.replies.roomOutsideBatch(for: call.request.id) - 16)
        while let size = complete.advance() { await turn(work: size) }
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
