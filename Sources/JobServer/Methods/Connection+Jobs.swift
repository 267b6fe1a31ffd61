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
                let admitted = try Self.admit(spec, admission, caller)
                let watch = isWatched ? try makeWatch() : nil
                requests.append(NewJob(admitted, admission.limits, subscription: watch?.subscription))
                read.append(.success(watch))
            } catch {
                read.append(.failure(ProtocolError(of: error)))
            }
        }
        let submitted = read
        // Even if none is left: refusals are answered after the submissions before them.
        engine.ask(.submit(requests), for: caller) { [loop] answer in
            // The engine continues meanwhile.
            loop.submit { self.reply(to: calls, submitted, answer, done) }
        }
    }

    private func reply(
        to calls: [Call], _ submitted: [Result<Watch?, ProtocolError>], _ answer: CoreAnswer,
        _ done: @Sendable () -> Void
    ) {
        var (jobs, refusal) = ([Result<SubmittedJob, ProtocolError>](), ProtocolError.stopping)
        switch answer {
        case .submitted(let submitted): jobs = submitted
        case .failed(let error): refusal = error
        default: break
        }
        var answers = jobs.makeIterator()
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

    private static func admit(
        _ spec: JSONObject, _ admission: Admission, _ caller: Caller
    ) throws -> Admission.Admitted {
        do { return try admission.spec(.object(spec), from: caller) } catch {
            guard error.code == ProtocolError.Code.invalidParams.rawValue else { throw error }
            throw error.with(mistakes: admission.mistakes(in: .object(spec), from: caller))
        }
    }

    func jobExplain(_ call: Call) async throws {
        let (admission, params) = (engine.admission, call.request.params)
        let text = try await look { lookup in
            let admitted = try Self.admit(params, admission, lookup.caller)
            try lookup.check(admitted)
            return admitted.spec.explained.utf8
        }
        call.succeed(text: text)
    }

    func jobGet(_ call: Call) async throws {
        try await show(try call.params(["job"]).job(), call, within: call.roomOutsideBatch)
    }

    /// Answers with the current state of a job.
    func show(_ id: JobID, _ call: Call, within room: Int) async throws {
        call.succeed(text: try await look { $0.view(try $0.job(id)).text(.whole, within: room) })
    }

    func jobList(_ call: Call) async throws {
        let filter = try JobFilter(try call.params(JobFilter.listMembers), caller)
        let room = call.room - 64
        let (page, next) = try await look { try $0.page(filter, within: room) }
        call.succeed(["next": next?.json ?? .null], "jobs", page)
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
