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
                let submitted = try Self.check(call.request.params, admission, caller)
                let watch = submitted.isWatched ? try makeWatch(isInBatch: call.batch != nil) : nil
                requests.append(
                    NewJob(submitted.admitted, admission.limits, subscription: watch?.subscription))
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
        var refusal = CoreError.stopping
        if case .failed(let error) = answer { refusal = error }
        var answers = (answer.submitted ?? []).makeIterator()
        // Adjacent answers are sent together.
        var lines = JSONWriter(reservingCapacity: 96 * calls.count)
        for (call, read) in zip(calls, submitted) {
            let watch = try? read.get()
            let result = read.flatMap { _ in (answers.next() ?? .failure(refusal)).mapError(ProtocolError.init) }
            if call.batch != nil {
                send(&lines)
                var answer = JSONWriter()
                if let id = call.request.id { Answer.write(id: id, result, watch, to: &answer) }
                call.reply(call.request.id == nil ? nil : answer.bytes) { [self] in
                    if let watch { open(watch, result) }
                }
                continue
            }
            if let id = call.request.id {
                Answer.write(id: id, result, watch, to: &lines)
                lines.raw("\n")
            }
            guard let watch else { continue }
            // Its notifications follow the answer.
            send(&lines)
            open(watch, result)
        }
        send(&lines)
        done()
    }

    private func send(_ lines: inout JSONWriter) {
        guard !lines.bytes.isEmpty else { return }
        outbox.send(lines: lines.bytes)
        lines = JSONWriter()
    }

    /// Opens the watch of an answered submission, or ends it if there is no job.
    private func open(_ watch: Watch, _ result: Result<SubmittedJob, ProtocolError>) {
        switch result {
        case .success(let job): watch.open(unfinished: job.state.isTerminal ? [] : [job.job])
        case .failure: unwatch(watch.number)
        }
    }

    /// Checks the params of a submission; returns whether the job is watched from the beginning.
    private static func check(
        _ params: JSONObject, _ admission: Admission, _ caller: Caller
    ) throws -> (admitted: Admission.Admitted, isWatched: Bool) {
        guard params["watch"] != nil else { return (try admit(params, admission, caller), false) }
        let isWatched = try MemberReader(params).flag("watch") ?? false
        var spec = params
        spec["watch"] = nil
        return (try admit(spec, admission, caller), isWatched)
    }

    private static func admit(
        _ spec: JSONObject, _ admission: Admission, _ caller: Caller
    ) throws -> Admission.Admitted {
        do { return try admission.spec(.object(spec), from: caller) } catch {
            guard case .invalid = error.code else { throw error }
            throw ProtocolError(error).with(mistakes: admission.mistakes(in: .object(spec), from: caller))
        }
    }

    func jobExplain(_ call: Call) async throws {
        let (admission, params, caller) = (engine.admission, call.request.params, caller)
        let (admitted, text) = try await engine.blocking(for: caller.uid) {
            let admitted = try Self.admit(params, admission, caller)
            return (admitted, admitted.spec.explained.utf8)
        }
        let own = (name: admitted.spec.terms.queue, pointer: JSONPointer(["queue"]))
        let present = engine.status.queues.filter(\.takesJobs).map(\.settings.name)
        let names = Set(present)
        if let missing = ([own] + admitted.queues).first(where: { !names.contains($0.name) }) {
            throw CoreError.noQueue(missing, among: present)
        }
        if let missing = try await look({ try $0.missing(of: admitted.jobs) }) { throw CoreError.noJob(missing) }
        call.succeed(text: text)
    }

    func jobGet(_ call: Call) async throws { try await show(try call.params(["job"]).job(), call) }

    /// Answers with the current state of a job.
    func show(_ id: JobID, _ call: Call, wasChanged: Bool = false) async throws {
        call.succeed(job: try await look { $0.view(try $0.job(id)) }, wasChanged: wasChanged)
    }

    func jobList(_ call: Call) async throws {
        let filter = try JobFilter(try call.params(JobFilter.listMembers), caller)
        let room = call.room - 64
        let (page, next) = try await look { try $0.page(filter, within: room) }
        call.succeed("jobs", page.text, ["next": next?.json ?? .null])
    }
}

extension Answer {
    /// Writes the answer to a submission without its line end.
    fileprivate static func write(
        id: JSON, _ result: Result<SubmittedJob, ProtocolError>, _ watch: Watch?, to writer: inout JSONWriter
    ) {
        switch result {
        case .success(let job):
            writeSubmission(
                id: id, job: job.job, state: job.state, created: job.isCreated, watch: watch?.name, to: &writer)
        case .failure(let error): writer.raw(failure(id: id, error: error))
        }
    }
}

extension JobFilter {
    fileprivate static let listMembers = ["parent", "after", "limit", "order"] + selectMembers

    fileprivate init(_ params: MemberReader, _ caller: Caller) throws(SpecError) {
        self.init()
        // An administrator's list has all users' jobs.
        _ = try read(params, caller)
        if params.value("owner") == nil { owner = caller.owner }
        parent = try params.integer("parent", in: 1...Int.max).map(JobID.init)
        after = try params.integer("after", in: 0...Int.max).map(JobID.init)
        limit = try params.integer("limit", in: 1...1000) ?? 100
        order = try params.choice("order") ?? .newest
    }
}
