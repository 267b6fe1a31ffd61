import JobModel
import Testing

@testable import JobCore

/// A caller cannot tell another's job from one that does not exist, not even by the work that it makes.
@Suite struct OwnershipTests {
    private static let stranger = Caller(uid: 4242, isAdmin: false)

    private func requests(_ id: JobID, beside own: JobID) -> [CoreRequest] {
        var filter = JobFilter()
        filter.parent = id
        return [
            .job(id), .cancel(id), .retry(id, from: .start), .remove(id), .result(id), .list(filter),
            .wait([id], timeout: nil), .wait([own, id], timeout: nil), .wait([id, own], timeout: nil),
            .jobs([own, id]),
            .watch(WatchScope(.jobs([id])), 7), .watch(WatchScope(.jobs([own, id]), includesChildren: true), 8),
        ]
    }

    /// What a request comes to: how many reads of which jobs, and the error, ids left out.
    private func outcome(_ driver: CoreDriver, _ request: CoreRequest, of id: JobID) -> String {
        let (reads, started) = (driver.reads.count, driver.started.count)
        let error = driver.error(driver.ask(request, as: Self.stranger))
        func withoutID(_ text: String) -> String {
            text.replacing(#/\d+/#) { $0.output == "\(id)" ? "id" : $0.output }
        }
        let asked = driver.reads[reads...].map { withoutID("\($0)") }
        let message = withoutID(error?.message ?? "none")
        return "\(asked) \(driver.started.count - started) \(String(describing: error?.code)) \(message)"
    }

    @Test func forgottenQueue_isListedToThoseWhoHaveJobsInIt() throws {
        let driver = CoreDriver { $0.queues.append(QueueSettings(name: "old", concurrency: 1)) }
        try driver.submit(#"{"source": {"type": "url", "url": "http://a/"}, "queue": "old"}"#)
        driver.settings.queues.removeLast()
        driver.restart()
        let listed = [Caller.one, Self.stranger, .root].map { caller -> [String]? in
            guard case .queues(let queues) = driver.answer(to: driver.ask(.queues, as: caller)) else { return nil }
            return queues.map(\.settings.name)
        }
        #expect(listed == [["default", "old"], ["default"], ["default", "old"]])
    }

    @Test(arguments: [false, true])
    func foreignJob_cannotBeToldFromNone(_ isStopping: Bool) throws {
        let driver = CoreDriver {
            $0.queues[0].concurrency = 1
            $0.queues.append(QueueSettings(name: "free", concurrency: 9))
        }
        let running = try driver.submit(#"{"source": {"type": "url", "url": "http://a/"}}"#)
        let queued = try driver.submit(#"{"source": {"type": "url", "url": "http://a/"}}"#)
        let scheduled = try driver.submit(#"{"source": {"type": "url", "url": "http://a/"}, "delay": 60}"#)
        let finished = try driver.submit(#"{"source": {"type": "value", "value": 1}, "delay": 60}"#)
        driver.ask(.cancel(finished))
        func submit(_ source: String = #"{"type": "url", "url": "http://a/"}"#) throws -> JobID {
            try driver.submit(#"{"source": \#(source), "queue": "free"}"#)
        }
        let (succeeded, failed, removed) = (try submit(), try submit(), try submit())
        try driver.end(succeeded)
        try driver.end(failed, .lasting)
        try driver.end(removed)
        driver.ask(.remove(removed))
        let list = try submit(
            #"{"type": "list", "jobs": [{"source": {"type": "url", "url": "http://a/"}, "queue": "free"}]}"#)
        let ending = try submit()
        let own = try driver.submit(#"{"source": {"type": "value", "value": 1}, "delay": 60}"#, as: Self.stranger)
        #expect(driver.state(running) == .running && driver.state(finished) == .cancelled)
        #expect(driver.state(succeeded) == .succeeded && driver.state(failed) == .failed)
        let child = try #require(driver.store.children(of: list).first?.id)
        // Its end is on its way to the store.
        driver.holdsWrites = true
        driver.ask(.cancel(ending))
        if isStopping { driver.feed(.stop) }
        let missing: JobID = 900_000
        for (index, request) in requests(missing, beside: own).enumerated() {
            let expected = outcome(driver, request, of: missing)
            for id in [running, queued, scheduled, finished, succeeded, failed, list, child, ending, removed] {
                #expect(outcome(driver, requests(id, beside: own)[index], of: id) == expected, "\(id): \(request)")
            }
        }
    }

    @Test func foreignSchedule_isNoWork() throws {
        let driver = CoreDriver()
        try driver.set("s", every: 60)
        try driver.set("busy", every: 60)
        driver.holdsWrites = true
        let change = driver.ask(.suspendSchedule(ScheduleKey(owner: 1, name: "busy"), isSuspended: true))
        #expect(driver.answer(to: change) == nil, "it is being changed")
        for request in [
            CoreRequest.schedule, CoreRequest.removeSchedule, CoreRequest.runSchedule,
            { CoreRequest.suspendSchedule($0, isSuspended: true) },
        ] as [(ScheduleKey) -> CoreRequest] {
            func outcome(_ name: String) -> String {
                let (reads, writes) = (driver.reads.count, driver.heldWrites.count)
                let error = driver.error(driver.ask(request(ScheduleKey(owner: 1, name: name)), as: Self.stranger))
                let message = error?.message.replacing("\"\(name)\"", with: "NAME") ?? "none"
                return "\(driver.reads.count - reads) \(driver.heldWrites.count - writes) \(message)"
            }
            #expect(outcome("never").hasPrefix("0 0 There is no"))
            for name in ["s", "busy"] { #expect(outcome(name) == outcome("never"), "\(name)") }
        }
    }
}
