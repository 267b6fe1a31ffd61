import JobCore
import JobEngine
import JobModel
import JobProtocol
import LoopTasks

/// `job.submit`, `job.explain`, `job.get` and `job.list`.
extension Connection {
    /// Submits jobs with one fsync; answers each in order, then calls `done`.
    func submitJobs(_ calls: [Call], _ done: @escaping @Sendable () -> Void) {
        var read: [Result<Watch?, ProtocolError>] = []
        var requests: [NewJob] = []
        read.reserveCapacity(calls.count)
        requests.reserveCapacity(calls.count)
        // Read once, as other event loops share it.
        let (admission, caller) = (engine.admission, caller)
        for call in calls {
            do {
                var spec = call.request.params
                let isWatched = try MemberReader(spec).flag("watch") ?? false
                if spec["watch"] != nil { spec["watch"] = nil }
                let admitted = try admission.spec(.object(spec), from: caller)
                let watch = isWatched ? try makeWatch(naming: 0, bytes: Self.bytesPerSubmission) : nil
                requests.append(NewJob(admitted, admission.limits, subscription: watch?.subscription))
                read.append(.success(watch))
            } catch {
                read.append(.failure(ProtocolError(of: error)))
            }
        }
        // Even if none is left: refusals are answered after the submissions before them.
        engine.ask(.submit(requests), for: caller) { [loop, read] answer in
            // The engine continues meanwhile.
            loop.submit { self.reply(to: calls, read, answer, done) }
        }
    }

    private func reply(
        to calls: [Call], _ submitted: [Result<Watch?, ProtocolError>], _ answer: CoreAnswer,
        _ done: @Sendable () -> Void
    ) {
        let refusal = if case .failed(let error) = answer { error } else { ProtocolError.stopping }
        var answers = [Result<SubmittedJob, ProtocolError>]().makeIterator()
        if case .submitted(let jobs) = answer { answers = jobs.makeIterator() }
        for (call, read) in zip(calls, submitted) {
            let watch = try? read.get()
            switch read.flatMap({ _ in answers.next() ?? .failure(refusal) }) {
            case .success(let job):
                let answer = call.request.id.map { id in
                    Answer.submission(
                        id: id, job: job.job, state: job.state, created: job.isCreated, watch: watch?.name)
                }
                var opens: (@Sendable () -> Void)?
                if let watch {
                    // All events are later ones.
                    let standing = JobStanding(owner: peer.uid, state: job.state, version: 0)
                    opens = { watch.open([job.job: standing]) }
                }
                call.reply(answer, opens)
            case .failure(let error):
                call.fail(error)
                if let watch { unwatch(watch.number) }
            }
        }
        done()
    }
}

extension Lookup {
    func jobExplain(_ call: Call) throws {
        let admitted = try engine.admission.spec(.object(call.request.params), from: caller)
        let own = (name: admitted.spec.terms.queue, pointer: JSONPointer(["queue"]))
        let present = queues.all.filter(\.takesJobs).map(\.settings.name)
        let names = Set(present)
        if let missing = ([own] + admitted.queues).first(where: { !names.contains($0.name) }) {
            throw ProtocolError.noQueue(missing, among: present)
        }
        let standings = try engine.reader.standings(of: admitted.jobs.map(\.id))
        for job in admitted.jobs where standings[job.id]?.owner != caller.uid { throw ProtocolError.noJob(job) }
        call.succeed(text: admitted.spec.explained.utf8)
    }

    func jobGet(_ call: Call) throws {
        try show(try call.params(["job"]).job(), call, within: call.roomOutsideBatch)
    }

    /// Answers with the current state of a job.
    func show(_ id: JobID, _ call: Call, within room: Int) throws {
        call.succeed(text: view(try job(id)).text(.whole, within: room))
    }

    func jobList(_ call: Call) throws {
        let filter = try JobFilter(try call.params(JobFilter.listMembers), caller)
        if let parent = filter.parent { _ = try standings(of: [parent]) }
        var page = JobPage(within: call.room - 64)
        let (jobs, hasMore) = try self.jobs(filter)
        let last = try Self.last(of: jobs, hasMore) { page.add(view($0)) }
        call.succeed(["next": last?.row.id.json ?? .null], "jobs", page.text)
    }
}

extension JobFilter {
    fileprivate static let listMembers = ["parent", "after", "limit", "order"] + selectMembers

    fileprivate init(_ params: MemberReader, _ caller: Caller) throws(SpecError) {
        self.init()
        // An administrator's list has all users' jobs.
        try read(params, caller)
        if params.value("owner") == nil { owner = caller.owner }
        parent = try params.integer("parent", in: 1...Int.max).map(JobID.init)
        after = try params.integer("after", in: 0...Int.max).map(JobID.init)
        limit = try params.integer("limit", in: 1...1000) ?? 100
        order = try params.choice("order") ?? .newest
    }
}
