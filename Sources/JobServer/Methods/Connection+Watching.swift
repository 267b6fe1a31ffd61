import JobCore
import JobEngine
import JobModel
import JobProtocol
import LoopTasks
import NIOCore

/// `job.watch`, `job.unwatch` and `job.wait`.
extension Connection {
    func jobWatch(_ call: Call) async throws {
        let scope = try WatchScope(try call.params(["job", "jobs", "tag", "all", "interval", "children"]))
        let watch = try makeWatch(of: scope)
        let beginning: Lookup.Beginning
        do {
            _ = try await ask(.watch(scope, watch.subscription), \.isDone)
            // Read after the engine's answer, as it tells of all later changes.
            let room = call.room - 128
            beginning = try await look { try $0.beginning(of: scope, within: room) }
        } catch {
            unwatch(watch.number)
            throw error
        }
        call.succeed(
            "jobs", beginning.page.text,
            ["watch": watch.name.json, "truncated": beginning.isTruncated ? true : nil]
        ) {
            watch.open(
                unfinished: beginning.unfinished, versions: beginning.versions,
                isAll: !beginning.isTruncated || scope.isFixed && !scope.includesChildren)
        }
    }

    func jobUnwatch(_ call: Call) async throws {
        let name = try call.params(["watch"]).requiredString("watch")
        let number = Int(name.dropFirst()).flatMap { name == "w\($0)" ? $0 : nil } ?? 0
        // Its memory is released before the answer, so that the next request finds room.
        guard unwatch(number) else {
            throw ProtocolError(.notFound, "This connection has no watch \"\(name.echoed)\".")
        }
        call.succeed([:])
    }

    /// The maximum number of jobs in one wait.
    private static let mostAwaited = 1000

    func jobWait(_ call: Call) async throws {
        let params = try call.params(JobTarget.members + ["timeout"])
        let timeout = try params.number("timeout", in: 0...JobSpec.longest)
        let (ids, isList): ([JobID], Bool)
        switch try JobTarget(params, caller, atMost: Self.mostAwaited) {
        case .selected(let filter): return try waitForAll(call, filter, timeout: timeout)
        case .one(let id): (ids, isList) = ([id], false)
        case .many(let many): (ids, isList) = (Array(many), true)
        }
        if ids.isEmpty { return call.succeed(["jobs": []]) }
        if timeout == 0 {
            guard let answer = try await finished(ids, isList, call) else { throw Self.outOfTime }
            return call.succeed(text: answer)
        }
        try goOn(call, jobs: ids.count, timeout: timeout) { [self] id in
            // A job may be retried before it is read.
            while isWaiting(id) {
                try await engine.wait(for: ids, as: caller, id: id)
                // They are read once there is room for them, so that many such waits take no more memory.
                await budget.room(on: loop.loop)
                if isWaiting(id), let answer = try await finished(ids, isList, call) { return answer }
            }
            return []
        }
    }

    /// The approximate memory of the jobs of one wait while they are written.
    private static let answerBytes = 4 << 20

    /// The answer to a wait for these jobs; nil if one has not ended.
    private func finished(_ ids: [JobID], _ isList: Bool, _ call: Call) async throws -> [UInt8]? {
        let charge = BudgetCharge(work: Self.answerBytes, in: budget)
        defer { withExtendedLifetime(charge) {} }
        let room = call.roomOutsideBatch
        return try await look { try $0.finished(ids, isList: isList, within: room) }
    }
}

extension WatchScope {
    /// Whether it covers no later jobs except children.
    var isFixed: Bool { if case .jobs = subject { true } else { false } }

    /// The approximate memory of what it names, in bytes.
    var bytes: Int {
        switch subject {
        case .jobs(let ids): ids.count * Connection.bytesPerID
        case .tag(let tag): tag.utf8.count
        case .all: 0
        }
    }

    /// The maximum number of jobs in one watch.
    private static let mostJobs = 100_000

    init(_ params: MemberReader) throws(SpecError) {
        guard try params.only(["job", "jobs", "tag", "all"]) != nil else {
            throw params.fault("job", "Say what to watch: \"job\", \"jobs\", \"tag\" or \"all\".")
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
