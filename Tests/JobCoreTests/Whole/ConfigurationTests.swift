import JobModel
import Testing

@testable import JobCore

/// Settings that change while jobs run.
@Suite struct ConfigurationTests {
    private func configure(
        _ core: CoreDriver, policy: ResourcePolicy? = nil, _ change: (inout CoreSettings) -> Void
    ) {
        var settings = core.settings
        change(&settings)
        core.ask(.configure(settings, policy: policy), as: .root)
    }

    @Test func limits_holdForTheNextSubmission_andJobsStay() throws {
        let core = CoreDriver()
        let first = try core.submit(#"{"source": {"type": "value", "value": 1}, "delay": 10}"#)
        try core.submit(#"{"source": {"type": "value", "value": 1}, "delay": 10}"#)
        configure(core) { $0.limits.queuedJobsPerUser = 1 }
        let refused = try core.submitted(
            core.requestSubmit(#"{"source": {"type": "value", "value": 1}, "delay": 10}"#))
        #expect(throws: CoreError.self) { try refused.first?.get() }
        #expect(core.state(first) == .scheduled)
        configure(core) { $0.limits.queuedJobsPerUser = 3 }
        try core.submit(#"{"source": {"type": "value", "value": 1}, "delay": 10}"#)
    }

    @Test func limits_holdForTheChildrenThatAreMadeNext() throws {
        let core = CoreDriver()
        configure(core) { $0.limits.children = 2 }
        let list = try core.submit(
            #"{"source": {"type": "url", "url": "http://first/"}, "then": [{"then": {"source": {"type": "each","#
                + #" "in": "{{input}}", "job": {"source": {"type": "url", "url": "http://each/"}}}}}]}"#)
        try core.end(list, .success([1, 2, 3]))
        #expect(core.show(list)?.carried?.kind == .tooLarge)
    }

    /// Four children and more in each of the places where lists stand: beside one another, in one another, in links.
    private static let lists: String = {
        let value = #"{"source": {"type": "value", "value": 1}}"#
        let four = "[" + Array(repeating: value, count: 4).joined(separator: ",") + "]"
        let list = #"{"type": "list", "mode": "all", "jobs": \#(four)}"#
        let chain = #"{"source": \#(list), "then": [{"then": {"source": \#(list)}}, {"then": {"return": 1}}]}"#
        let chains = "[" + Array(repeating: chain, count: 4).joined(separator: ",") + "]"
        let each = #"{"type": "each", "mode": "all", "in": [1, 2, 3, 4], "job": \#(chain)}"#
        return #"{"delay": 10, "source": {"type": "list", "mode": "all", "jobs": \#(chains)},"#
            + #" "then": [{"then": {"source": \#(each)}}, {"then": {"source": \#(list)}}]}"#
    }()

    @Test(arguments: [false, true])
    func limits_thatAreLowered_endNothingThatWasAccepted(_ restarts: Bool) throws {
        let core = CoreDriver()
        let waiting = try core.submit(Self.lists)
        let open = try core.submit(
            #"{"source": {"type": "list", "mode": "all", "jobs": ["#
                + Array(repeating: #"{"source": {"type": "url", "url": "http://a/"}}"#, count: 4)
                .joined(separator: ",") + "]}}")
        func lower(_ settings: inout CoreSettings) {
            settings.limits.children = 2
            settings.limits.links = 0
            settings.limits.depth = 1
        }
        lower(&core.settings)
        if restarts { core.restart() } else { configure(core, lower) }
        core.endAll()
        core.advance(11)
        core.endAll()
        #expect(core.state(open) == .succeeded)
        #expect(core.state(waiting) == .succeeded, "\(core.show(waiting)?.carried?.failure?.message ?? "")")
    }

    @Test func policy_holdsForTheNextLink() throws {
        let core = CoreDriver()
        let job = try core.submit(
            #"{"source": {"type": "url", "url": "http://first/"}, "then": [{"then": {"source": {"type": "url","#
                + #" "url": "http://later/"}}}]}"#)
        let closed = ResourcePolicy(
            checkURL: { (_) throws(JobError) in throw JobError(.policy, "Nothing is allowed.") },
            checkPath: { (_, _) throws(JobError) in })
        configure(core, policy: closed) { _ in }
        try core.end(job)
        #expect(core.show(job)?.carried?.kind == .policy)
        configure(core, policy: CoreDriver.policy) { _ in }
        #expect(throws: Never.self) { try core.submit(#"{"source": {"type": "url", "url": "http://later/"}}"#) }
    }

    @Test func queues_change_unlessAnAdministratorSetThem() throws {
        let core = CoreDriver { $0.queues = [QueueSettings(name: "default", concurrency: 2)] }
        core.ask(.setQueue("set", QueueChange(concurrency: 7)), as: .root)
        let queues = ["default", "new", "set"].map { QueueSettings(name: $0, concurrency: 5) }
        configure(core) { $0.queues = queues }
        let present = {
            try #require(core.answer(to: core.ask(.queues, as: .root))?.queues).map(\.settings.concurrency)
        }
        #expect(try present() == [5, 5, 7])
        core.settings.queues = queues
        core.restart()
        #expect(try present() == [5, 5, 7], "a start says the same")
    }

    @Test func retention_holdsForJobsThatAreOver() throws {
        let core = CoreDriver()
        let job = try core.submit(#"{"source": {"type": "url", "url": "http://first/"}}"#)
        try core.end(job)
        #expect(core.state(job) == .succeeded)
        configure(core) { $0.retentionCount = 0 }
        #expect(core.state(job) == nil)
    }
}
