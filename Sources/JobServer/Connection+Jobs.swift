import JobEngine
import JobModel
import JobProtocol
import JobStore

/// `job.submit`, `job.explain`, and what changes one job.
extension Connection {
    /// Submits jobs with one fsync; each is answered by itself, in their order, and then `done` is called.
    func submitJobs(_ submits: [Submit], _ done: @escaping @Sendable () -> Void) {
        var read: [Result<ConnectionWatch?, ProtocolError>] = []
        var requests: [JobEngine.SubmitRequest] = []
        read.reserveCapacity(submits.count)
        requests.reserveCapacity(submits.count)
        for submit in submits {
            do {
                let (admitted, watches) = try readSpec(submit)
                let watch = watches ? try makeWatch() : nil
                requests.append(JobEngine.SubmitRequest(admitted, caller: caller, watcher: watch))
                read.append(.success(watch))
            } catch {
                read.append(.failure(error))
            }
        }
        let submitted = read
        // Also where none is left: what was refused is answered behind what was submitted before.
        engine.submit(requests) { answers in
            var answers = answers.makeIterator()
            var replies = SubmitReplies(connection: self, lines: submits.count)
            for (submit, read) in zip(submits, submitted) {
                switch read {
                case .failure(let error): replies.fail(submit, error)
                case .success(let watch):
                    switch answers.next() ?? .failure(.stopping) {
                    case .success(let answer):
                        if let watch { self.setEngineWatch(watch.name, answer.watch) }
                        replies.succeed(submit, answer, watch)
                    case .failure(let error):
                        if let watch { self.setEngineWatch(watch.name, nil) }
                        replies.fail(submit, ProtocolError(error))
                    }
                }
            }
            replies.flush()
            done()
        }
    }

    private func readSpec(_ submit: Submit) throws(ProtocolError) -> (Admission.Admitted, watches: Bool) {
        var written = submit.request.params
        var watches = false
        if written["watch"] != nil {
            do { watches = try MemberReader(.object(written), at: JSONPointer()).flag("watch") ?? false } catch {
                throw ProtocolError(error)
            }
            written["watch"] = nil
        }
        do { return (try engine.admission.spec(.object(written), from: caller), watches) } catch {
            throw ProtocolError(error)
        }
    }

    func jobExplain(_ call: Call) async throws(ProtocolError) {
        let spec: JobSpec
        do { spec = try engine.admission.spec(.object(call.request.params), from: caller).spec } catch {
            throw ProtocolError(error)
        }
        let explained = try await Call.asking { () throws(EngineError) in try await engine.explain(spec) }
        call.succeed(explained)
    }

    func jobGet(_ call: Call) async throws(ProtocolError) {
        let id = try readJob(call)
        call.succeed(try await Call.asking { () throws(EngineError) in try await engine.job(id, for: caller) })
    }

    func jobCancel(_ call: Call) async throws(ProtocolError) {
        let id = try readJob(call)
        call.succeed(try await Call.asking { () throws(EngineError) in try await engine.cancel(id, for: caller) })
    }

    func jobRetry(_ call: Call) async throws(ProtocolError) {
        let (id, point) = try call.read { (params) throws(SpecError) in
            try params.allow(["job", "from"])
            return (try params.job(), try params.choice("from", of: Job.RetryPoint.self) ?? .failed)
        }
        call.succeed(
            try await Call.asking { () throws(EngineError) in try await engine.retry(id, from: point, for: caller) })
    }

    func jobRemove(_ call: Call) async throws(ProtocolError) {
        let id = try readJob(call)
        try await Call.asking { () throws(EngineError) in try await engine.remove(id, for: caller) }
        call.succeed([:])
    }

    private func readJob(_ call: Call) throws(ProtocolError) -> JobID {
        try call.read { (params) throws(SpecError) in
            try params.allow(["job"])
            return try params.job()
        }
    }

    func jobList(_ call: Call) async throws(ProtocolError) {
        let filter = try call.read { (params) throws(SpecError) in try JobFilter(params) }
        let (jobs, next) = try await Call.asking { () throws(EngineError) in try await engine.list(filter, for: caller)
        }
        call.succeed(["jobs": .array(jobs), "next": next.map { JSON(Int($0)) } ?? .null])
    }
}

extension JobFilter {
    init(_ params: MemberReader) throws(SpecError) {
        self.init()
        try params.allow(["state", "queue", "tag", "source", "parent", "after", "limit", "order"])
        for (index, name) in (try params.strings("state", atMost: 6) ?? []).enumerated() {
            guard let state = JobState(rawValue: name) else {
                let known = JobState.allCases.map(\.rawValue).joined(separator: ", ")
                throw SpecError(
                    params.place(of: "state").appending(index), "There is no state \"\(name)\"; known are \(known).")
            }
            states.insert(state)
        }
        queue = try params.string("queue")
        tag = try params.string("tag")
        source = try params.choice("source")
        parent = try params.integer("parent", in: 1...Int.max).map(JobID.init)
        after = try params.integer("after", in: 0...Int.max).map(JobID.init)
        limit = try params.integer("limit", in: 1...1000) ?? 100
        order = try params.choice("order") ?? .newest
    }
}
