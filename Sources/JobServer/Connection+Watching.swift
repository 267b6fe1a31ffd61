import JobEngine
import JobModel
import JobProtocol

/// `job.watch`, `job.unwatch` and `job.wait`.
extension Connection {
    func jobWatch(_ call: Call) async throws(ProtocolError) {
        let scope = try call.read { (params) throws(SpecError) in try WatchScope(params) }
        let watch = try makeWatch()
        let begun: (watch: Int, jobs: [JSON], truncated: Bool)
        do {
            begun = try await engine.watch(scope, for: caller, watch)
        } catch {
            setEngineWatch(watch.name, nil)
            throw ProtocolError(error)
        }
        setEngineWatch(watch.name, begun.watch)
        var result = JSONObject()
        result.append("watch", .string(watch.name))
        result.append("jobs", .array(begun.jobs))
        if begun.truncated { result.append("truncated", true) }
        let unfinished = begun.jobs.compactMap { job -> JobID? in
            guard let state = job["state"]?.string.flatMap(JobState.init(rawValue:)), !state.isTerminal else {
                return nil
            }
            return job["job"]?.int.map(JobID.init)
        }
        call.succeed(.object(result)) { watch.open(unfinished: unfinished, isAll: !begun.truncated) }
    }

    func jobUnwatch(_ call: Call) async throws(ProtocolError) {
        let name = try call.read { (params) throws(SpecError) in
            try params.allow(["watch"])
            return try params.requiredString("watch")
        }
        guard let (watch, number) = removeWatch(name) else {
            throw ProtocolError(.notFound, "This connection has no watch \"\(name)\".")
        }
        if let number { await engine.unwatch(number) }
        outbox.end(watch: watch.number)
        call.succeed([:])
    }

    func jobWait(_ call: Call) async throws(ProtocolError) {
        let (ids, timeout, isList) = try call.read { (params) throws(SpecError) in
            try params.allow(["job", "jobs", "timeout"])
            let timeout = try params.number("timeout", in: 0...315_360_000)
            guard let ids = try params.jobs() else { throw params.missing("job") }
            return (ids, timeout, params.value("jobs") != nil)
        }
        if ids.isEmpty { return call.succeed(["jobs": []]) }
        let number = try beginWait(call)
        do {
            let wait = try await engine.wait(for: ids, timeout: timeout, caller: caller) { [weak self] result in
                guard let call = self?.endWait(number) else { return }
                switch result {
                case .success(let jobs):
                    call.succeed(isList ? ["jobs": .array(jobs)] : jobs.first ?? .null)
                case .failure(let error): call.fail(ProtocolError(error))
                }
            }
            await setEngineWait(number, wait)
        } catch {
            _ = endWait(number)
            throw ProtocolError(error)
        }
    }
}

extension WatchScope {
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
        if let ids = try params.jobs() {
            self.init(.jobs(ids), interval: interval, includesChildren: children)
        } else if let tag = try params.string("tag") {
            self.init(.tag(tag), interval: interval, includesChildren: children)
        } else {
            guard try params.flag("all") == true else {
                throw params.fault("all", "\"all\" can only be true; leave it out to watch less.")
            }
            self.init(.all, interval: interval, includesChildren: children)
        }
    }
}
