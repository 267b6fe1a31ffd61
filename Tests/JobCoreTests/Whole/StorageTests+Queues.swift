import JobModel
import Testing
@testable import JobCore

extension StorageTests {
    @Test func queue_isMade_suspendedAndChanged_byAdministrators() throws {
        let driver = CoreDriver()
        #expect(driver.code(driver.ask(.setQueue("new", QueueChange(concurrency: 2)))) == .forbidden(nil))
        let request = driver.ask(.setQueue("new", QueueChange(concurrency: 2)), as: .root)
        guard case .queue(let status) = driver.answer(to: request) else { return #expect(Bool(false)) }
        #expect(status.settings == QueueSettings(name: "new", concurrency: 2) && status.perUser == 2)
        let ids = try (0..<4).map { _ in try driver.submit(url("a", #""queue":"new""#)) }
        #expect(driver.atWork == Array(ids[0..<2]))
        driver.ask(.setQueue("new", QueueChange(perUser: 1)), as: .root)
        try driver.end(ids[0])
        #expect(driver.atWork == [ids[1]])
        driver.ask(.setQueue("new", QueueChange(isSuspended: true)), as: .root)
        try driver.end(ids[1])
        #expect(driver.atWork.isEmpty)
        driver.restart()
        #expect(driver.atWork.isEmpty)
        guard case .queues(let queues) = driver.answer(to: driver.ask(.queues, as: .root)) else { return }
        #expect(queues.map(\.settings.name) == ["default", "new"] && queues[1].settings.isSuspended)
        #expect(queues[1].jobs == [.queued: 2, .succeeded: 2])
        driver.ask(.setQueue("new", QueueChange(isSuspended: false)), as: .root)
        #expect(driver.atWork == [ids[2]])
        driver.endAll()
        driver.expectQuiet()
    }

    @Test func queue_isNotChanged_whereThatCannotBeStored() throws {
        let driver = CoreDriver()
        driver.failsWrite = { _ in true }
        #expect(driver.code(driver.ask(.setQueue("default", QueueChange(concurrency: 1)), as: .root)) == .storage)
        #expect(driver.core.scheduler.settings(of: "default")?.concurrency == 16)
    }

    @Test func changesOfOneQueue_keepEachOther() throws {
        let driver = CoreDriver()
        driver.holdsWrites = true
        driver.ask(.setQueue("default", QueueChange(concurrency: 1)), as: .root)
        driver.ask(.setQueue("default", QueueChange(isSuspended: true)), as: .root)
        driver.holdsWrites = false
        driver.releaseWrites()
        #expect(driver.core.scheduler.settings(of: "default")?.concurrency == 1)
        #expect(driver.core.scheduler.settings(of: "default")?.isSuspended == true)
        #expect(driver.store.recovery.queues.first == driver.core.scheduler.settings(of: "default"))
    }

    @Test func jobs_runAllTheSame_whereTheirQueueIsNotConfiguredAnyMore() throws {
        let driver = CoreDriver { $0.queues.append(QueueSettings(name: "old", concurrency: 1, isSuspended: true)) }
        let id = try driver.submit(url("a", #""queue":"old""#))
        driver.settings.queues.removeLast()
        driver.restart()
        #expect(driver.atWork == [id])
        driver.endAll()
        driver.expectQuiet()
    }

    @Test(arguments: [false, true])
    func queue_thatIsNotConfiguredAnyMore_runsWhatItHas_andTakesNothingNew(_ restarts: Bool) throws {
        let driver = CoreDriver { $0.queues.append(QueueSettings(name: "old", concurrency: 2)) }
        let list = #"{"queue":"old","source":{"type":"list","mode":"all","jobs":[\#(url("a")),\#(url("a"))]}}"#
        var ids = try (0..<3).map { _ in try driver.submit(url("a", #""queue":"old""#)) }
        ids.append(try driver.submit(list))
        driver.settings.queues.removeLast()
        if restarts {
            driver.restart()
        } else {
            driver.ask(.configure(driver.settings, policy: nil), as: .root)
        }
        #expect(driver.atWork == Array(ids.prefix(restarts ? 1 : 2)))
        let names = { driver.answer(to: driver.ask(.queues, as: .root))?.queues?.map(\.settings.name) }
        #expect(names() == ["default", "old"])
        let refused = try driver.submitted(driver.requestSubmit(url("a", #""queue":"old""#))).first
        guard case .failure(let error) = refused else { return #expect(Bool(false), "it was accepted") }
        #expect(error.code == .invalid(JSONPointer(["queue"])))
        #expect(error.message == #"There is no queue "old"; there are "default"."#)
        driver.endAll()
        #expect(ids.allSatisfy { driver.state($0) == .succeeded })
        driver.expectQuiet()
        // With its last job it is gone.
        for id in ids { driver.ask(.remove(id), as: .root) }
        #expect(names() == ["default"])
        driver.ask(.setQueue("old", QueueChange(concurrency: 3)), as: .root)
        #expect(names() == ["default", "old"])
        #expect(throws: Never.self) { try driver.submit(list) }
    }

    /// Children in each of the places where lists stand, one of which names the queue.
    @Test(
        arguments: [
            (
                #"{"source":{"type":"list","jobs":[\#(url("a")),\#(url("a", #""queue":"old""#))]}}"#,
                "/source/jobs/1/queue"
            ),
            (#"{"source":{"type":"each","in":[1],"job":\#(url("a", #""queue":"old""#))}}"#, "/source/job/queue"),
            (
                #"{"source":{"type":"value","value":1},"then":[{"finally":{"source":{"type":"list","jobs":["#
                    + #"{"source":{"type":"each","in":[1],"job":\#(url("a", #""queue":"old""#))}}]}}}]}"#,
                "/then/0/finally/source/jobs/0/source/job/queue"
            ),
        ])
    func childrensQueue_isRefused_whereItIsNotThere_andKept_whereItWas(_ spec: String, _ pointer: String) throws {
        let driver = CoreDriver { $0.queues.append(QueueSettings(name: "old", concurrency: 2)) }
        let key = ScheduleKey(owner: 1, name: "s")
        try driver.set("s", spec, every: 1000)
        let early = try driver.submit(spec)
        driver.settings.queues.removeLast()
        driver.ask(.configure(driver.settings, policy: nil), as: .root)
        let refused = try driver.submitted(driver.requestSubmit(spec)).first
        guard case .failure(let error)? = refused else { return #expect(Bool(false), "it was accepted") }
        #expect(error.code == .invalid(try #require(JSONPointer(text: pointer))))
        #expect(error.message == #"There is no queue "old"; there are "default"."#)
        let set = try driver.requestSet("t", spec, every: 1000)
        #expect(driver.code(set) == .invalid(try #require(JSONPointer(text: "/spec" + pointer))))
        // A schedule's jobs are new each time.
        let run = driver.ask(.runSchedule(key))
        #expect(driver.code(run) == .invalid(try #require(JSONPointer(text: "/spec" + pointer))))
        driver.endAll()
        #expect(driver.state(early) == .succeeded)
    }

    @Test func childrensQueue_isThere_whereItsListWasAccepted_beforeARestart() throws {
        let driver = CoreDriver { $0.queues.append(QueueSettings(name: "old", concurrency: 2)) }
        let child = url("a", #""queue":"old""#)
        let list = try driver.submit(
            #"{"delay":10,"source":{"type":"list","mode":"all","jobs":[\#(child),\#(child)]}}"#)
        let each = try driver.submit(
            #"{"delay":10,"source":{"type":"each","in":["x"],"job":{"queue":"{{item}}","source":{"type":"value","value":1}}}}"#
        )
        driver.settings.queues.removeLast()
        driver.restart()
        driver.advance(11)
        #expect(driver.atWork.count == 1, "one at a time")
        driver.endAll()
        #expect(driver.state(list) == .succeeded)
        #expect(
            try driver.show(each)?.carried?.get()[0]?["error"]?["kind"] == "invalid", "an expression makes no queue")
        driver.expectQuiet()
    }

    @Test func submissions_areRefused_whileThereIsLittleRoom() throws {
        let driver = CoreDriver()
        let id = try driver.submit(url())
        driver.feed(.room(shortage: "8 bytes are free."))
        let refused = try driver.submitted(try driver.requestSubmit(url()))
        #expect(throws: CoreError.self) { try refused[0].get() }
        guard case .failure(let error) = refused[0] else { return }
        #expect(error.code == .storage && error.message.contains("8 bytes are free."))
        // What was accepted goes on, and makes room.
        try driver.end(id)
        #expect(driver.state(id) == .succeeded)
        driver.ask(.remove(id))
        #expect(driver.stored(id) == nil)
        driver.feed(.room(shortage: nil))
        let next = try driver.submit(url())
        #expect(driver.atWork == [next])
    }

    @Test func download_thatWaitsForRoom_holdsBackNobody_andIsLoggedOnce() throws {
        let driver = CoreDriver {
            $0.queues[0].concurrency = 1
            $0.jobLogging = .all
        }
        let first = try driver.submit(url("a"))
        let other = try driver.submit(url("a"))
        var error = JobError(.storage, "There is little room.", retryable: true)
        error.postponed = 5
        try driver.end(first, .failure(error))
        #expect(driver.state(first) == .scheduled && driver.show(first)?.attempt == 0)
        #expect(driver.atWork == [other], "the host is not to blame")
        try driver.end(other)
        // The longer it waits the more rarely it is tried.
        var tries = 0
        for _ in 0..<600 {
            driver.advance(1)
            guard driver.atWork == [first] else { continue }
            tries += 1
            try driver.end(first, .failure(error))
        }
        #expect((20...40).contains(tries), "\(tries)")
        let story = driver.logs.filter { $0.job == first }.map(\.message)
        #expect(story.count == 3, "\(story)")
    }

    @Test func nothingNewStarts_whileVeryMuchIsBeingStored() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 2 }
        let ids = try (0..<4).map { _ in try driver.submit(url()) }
        driver.holdsWrites = true
        try driver.end(ids[0])
        #expect(driver.atWork == [ids[1], ids[2]])
        try driver.end(ids[1], .success(.string(String(repeating: "x", count: 17 << 20))))
        #expect(driver.atWork == [ids[2]])
        driver.holdsWrites = false
        driver.releaseWrites()
        #expect(driver.atWork == [ids[2], ids[3]])
    }

    @Test func othersGoOn_whileVeryMuchOfOneOwnerIsBeingStored() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 1 }
        let own = try (0..<2).map { _ in try driver.submit(url()) }
        let others = try (0..<2).map { _ in try driver.submit(url(), as: .two) }
        driver.holdsWrites = true
        try driver.end(own[0], .success(.string(String(repeating: "x", count: 17 << 20))))
        #expect(driver.atWork == [others[0]])
        try driver.end(others[0])
        #expect(driver.atWork == [others[1]], "it is not the first one's turn")
        driver.holdsWrites = false
        driver.releaseWrites()
        try driver.end(others[1])
        #expect(driver.atWork == [own[1]])
    }

    @Test func nothingStarts_whileVeryMuchOfManyIsBeingStored() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 5 }
        for uid in 1...5 as ClosedRange<UInt32> { try driver.submit(url(), as: Caller(uid: uid, isAdmin: false)) }
        for _ in 0..<5 { try driver.submit(url("b"), as: Caller(uid: 6, isAdmin: false)) }
        driver.holdsWrites = true
        for job in driver.atWork.prefix(3) {
            try driver.end(job, .success(.string(String(repeating: "x", count: 14 << 20))))
        }
        #expect(driver.atWork.count == 4)
        driver.releaseWrites(1)
        #expect(driver.atWork.count == 5)
    }
}
