import JobModel
import Testing

@testable import JobCore

/// Lists: their modes, their children, their concurrency.
@Suite struct ListSourceTests {
    private func list(_ jobs: [String], _ members: String = "", job: String = "") -> String {
        #"{"source":{"type":"list","jobs":[\#(jobs.joined(separator: ","))]\#(members.isEmpty ? "" : ",")\#(members)}\#(job.isEmpty ? "" : ",")\#(job)}"#
    }

    private func each(_ items: String, _ job: String, _ members: String = "") -> String {
        #"{"source":{"type":"value","value":\#(items)},"then":[{"then":{"source":{"type":"each","in":"{{input}}","job":\#(job)\#(members.isEmpty ? "" : ",")\#(members)}}}]}"#
    }

    private func children(_ driver: CoreDriver, _ id: JobID) -> [JobID] { driver.store.children(of: id).map(\.id) }

    private func result(_ driver: CoreDriver, _ id: JobID) -> JSON? {
        guard case .success(let value) = driver.stored(id)?.carried else { return nil }
        return value
    }

    private func failure(_ driver: CoreDriver, _ id: JobID) -> JobError? {
        guard case .failure(let error) = driver.stored(id)?.carried else { return nil }
        return error
    }

    // MARK: - Modes

    @Test func settledList_givesAllOutcomes_inOrder() throws {
        let driver = CoreDriver()
        let id = try driver.submit(list([url("a"), url("b"), url("c")]))
        let ids = children(driver, id)
        #expect(driver.atWork == ids && driver.stored(id)?.state == .running && driver.stored(id)?.children == 3)
        try driver.end(ids[2], .success(3))
        try driver.end(ids[0], .success(1))
        try driver.end(ids[1], .lasting)
        let value = try #require(result(driver, id))
        #expect(value[0] == ["ok": true, "value": 1] && value[2] == ["ok": true, "value": 3])
        #expect(value[1]?["ok"] == false && value[1]?["error"]?["kind"] == "checksum")
        #expect(value[1]?["error"]?["job"]?.int == Int(ids[1]) && value[1]?["error"]?["index"] == 1)
        driver.expectQuiet()
    }

    @Test func allList_givesTheValues_orFailsWithTheFirstFailure() throws {
        let driver = CoreDriver()
        let id = try driver.submit(list([url("a"), url("b")], #""mode":"all""#))
        driver.endAll { .success(.string(String($0.job))) }
        #expect(result(driver, id) == ["2", "3"])
        let other = try driver.submit(list([url("a"), url("b"), url("c", #""delay":900"#)], #""mode":"all""#))
        let ids = children(driver, other)
        try driver.end(ids[1], .lasting)
        let error = try #require(failure(driver, other))
        #expect(error.kind == .list && error.cause?.kind == .checksum)
        #expect(error.cause?.job == ids[1] && error.cause?.index == 1)
        #expect(ids.map { driver.stored($0)?.state } == [.cancelled, .failed, .cancelled])
        driver.expectQuiet()
    }

    @Test func firstList_givesTheFirstSuccess_orAllFailures() throws {
        let driver = CoreDriver()
        let id = try driver.submit(list([url("a"), url("b"), url("c")], #""mode":"first""#))
        let ids = children(driver, id)
        try driver.end(ids[0], .lasting)
        try driver.end(ids[2], .success("won"))
        #expect(result(driver, id) == ["index": 2, "value": "won"])
        #expect(driver.stored(ids[1])?.state == .cancelled)
        let other = try driver.submit(list([url("a"), url("b")], #""mode":"first""#))
        driver.endAll { _ in .lasting }
        #expect(failure(driver, other)?.kind == .list && failure(driver, other)?.failures?.map(\.index) == [0, 1])
        driver.expectQuiet()
    }

    @Test(arguments: [("settled", true), ("all", true), ("first", false)])
    func emptyList_isOverAtOnce(_ mode: String, _ succeeds: Bool) throws {
        let driver = CoreDriver()
        let id = try driver.submit(list([], #""mode":"\#(mode)""#))
        #expect(driver.stored(id)?.state == (succeeds ? .succeeded : .failed))
        driver.expectQuiet()
    }

    @Test func errorOfAList_namesTheFirstHundredFailures() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 500 }
        let id = try driver.submit(list((0..<150).map { url("h\($0)") }, #""mode":"first""#))
        driver.endAll { _ in .lasting }
        #expect(failure(driver, id)?.failures?.count == 100)
        driver.expectQuiet()
    }

    // MARK: - Children

    @Test func eachChild_isMadeOfItsItem() throws {
        let driver = CoreDriver()
        let id = try driver.submit(each(#"["x","y"]"#, url("{{item}}", #""label":"{{index}}""#), #""mode":"all""#))
        #expect(driver.core.inspectHosts().map(\.host) == ["x", "y"])
        #expect(children(driver, id).compactMap { driver.stored($0)?.spec.label } == ["0", "1"])
        driver.expectCounted()
        driver.endAll()
        #expect(result(driver, id) == ["done", "done"])
        driver.expectQuiet()
        driver.restart()
        driver.expectQuiet()
    }

    @Test(arguments: [("settled", 3), ("all", 1), ("first", 3)])
    func childThatCannotBeMade_failsAlone(_ mode: String, _ ended: Int) throws {
        let driver = CoreDriver()
        driver.ask(.watch(WatchScope(.all, includesChildren: true), 7))
        let id = try driver.submit(
            each(#"[{"h":"x"},{},{"h":"y"}]"#, url("{{item/h}}"), #""mode":"\#(mode)""#))
        let ids = children(driver, id)
        #expect(ids.count == 3 && driver.stored(ids[1])?.state == .failed)
        driver.endAll { $0.job == ids[2] ? .success("won") : .lasting }
        #expect(driver.stored(ids[1])?.state == .failed && driver.stored(id)?.state.isTerminal == true)
        let states = ids.compactMap { driver.stored($0)?.state }
        switch mode {
        case "all":
            #expect(failure(driver, id)?.cause?.kind == .template && failure(driver, id)?.cause?.index == 1)
            #expect(states == [.cancelled, .failed, .cancelled])
        case "first": #expect(result(driver, id)?["index"] == 2)
        default: #expect(result(driver, id)?[1]?["error"]?["kind"] == "template")
        }
        for id in ids { #expect(driver.states(of: id, to: 7).count { $0.isTerminal } == 1, "job \(id)") }
        driver.expectQuiet()
    }

    @Test func children_areAllOver_whereNoneCanBeMade() throws {
        let driver = CoreDriver()
        let id = try driver.submit(each(#"[{},{}]"#, url("{{item/h}}")))
        #expect(driver.stored(id)?.state == .succeeded && result(driver, id)?.array?.count == 2)
        driver.expectQuiet()
    }

    @Test func children_areMadeInPortions_whileOthersAreServed() throws {
        let driver = CoreDriver()
        let filler = String(repeating: "x", count: 100_000)
        let id = try driver.submit(
            each(
                "[1,2,3,4,5,6,7,8,9,10]", #"{"source":{"type":"value","value":"\#(filler){{item}}"}}"#, #""mode":"all""#
            ))
        driver.advance(0)
        #expect(children(driver, id).count == 10 && driver.stored(id)?.state == .succeeded)
        #expect(result(driver, id)?[9]?.string?.hasSuffix("10") == true)
        driver.expectQuiet()
    }

    @Test func children_canBeListsThemselves() throws {
        let driver = CoreDriver()
        let id = try driver.submit(list([list([url("a"), url("b")], #""mode":"all""#), url("c")], #""mode":"all""#))
        #expect(driver.atWork.count == 3 && driver.core.inspection.joins == 2 && driver.core.inspection.openLists == 1)
        driver.endAll()
        #expect(result(driver, id) == [["done", "done"], "done"])
        driver.expectQuiet()
    }

    @Test func nestedList_isCancelled_withAllBelowIt() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 2 }
        let id = try driver.submit(list([list([url("a"), url("b"), url("c", #""delay":99"#)]), url("c")]))
        driver.ask(.cancel(id))
        #expect(driver.store.all.allSatisfy { $0.state == .cancelled } && driver.store.all.count == 6)
        driver.advance(200)
        #expect(driver.open.isEmpty)
        driver.expectQuiet()
    }

    @Test func list_takesTooLong_afterItsTimeout() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 1 }
        let id = try driver.submit(list([url("a"), url("b")], job: #""timeout":60"#))
        driver.advance(60)
        #expect(failure(driver, id)?.kind == .timeout)
        #expect(children(driver, id).allSatisfy { driver.stored($0)?.state == .cancelled })
        #expect(driver.started.count == 1)
        driver.expectQuiet()
    }

    @Test func chain_goesOnBehindAList_inASlot() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 1 }
        let id = try driver.submit(list([url("a")], job: #""then":[{"then":\#(step("b"))}]"#))
        driver.endAll()
        #expect(driver.started.map(\.job) == [id + 1, id] && driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test func twoLists_inOneChain_haveChildrenEach() throws {
        let driver = CoreDriver()
        let id = try driver.submit(list([url("a")], job: #""then":[{"then":\#(list([url("b"), url("c")]))}]"#))
        driver.endAll()
        #expect(driver.stored(id)?.children == 3 && driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    // MARK: - Concurrency

    @Test func children_runNoMoreAtOnce_thanTheListAllows() throws {
        let driver = CoreDriver()
        let id = try driver.submit(list((0..<20).map { url("h\($0)") }, #""concurrency":3"#))
        let ids = children(driver, id)
        #expect(driver.atWork == Array(ids[0..<3]))
        while let next = driver.atWork.first {
            try driver.end(next)
            #expect(driver.atWork.count <= 3)
        }
        #expect(driver.started.map(\.job) == ids && driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test func sibling_runs_whileAChildWaitsForItsRetry() throws {
        let driver = CoreDriver()
        let retry = #""retry":{"max":5,"initial":10,"jitter":false}"#
        let id = try driver.submit(list([url("a", retry), url("b"), url("c")], #""concurrency":1"#))
        let ids = children(driver, id)
        try driver.end(ids[0], .passing)
        #expect(driver.atWork == [ids[1]])
        driver.advance(10)
        #expect(driver.atWork == [ids[1]])
        try driver.end(ids[1])
        #expect(driver.atWork == [ids[0]], "it is the first by index")
        #expect(try driver.run(of: ids[0]).attempt == 2)
        driver.endAll()
        #expect(driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test func childrenOfAGate_areNotLost_overCrashes() throws {
        let driver = CoreDriver()
        let id = try driver.submit(list((0..<12).map { url("h\($0)") }, #""concurrency":2"#))
        for round in 0..<12 {
            driver.holdsReads = round.isMultiple(of: 2)
            driver.crash()
            driver.releaseReads()
            driver.holdsReads = false
            driver.releaseReads()
            #expect(driver.atWork.count <= 2, "round \(round)")
            if let first = driver.atWork.first { try driver.end(first) }
        }
        driver.endAll()
        #expect(driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test func gatedChild_ofALargeSpec_runsInItsOwnQueue() throws {
        let driver = CoreDriver { $0.queues.append(QueueSettings(name: "other", concurrency: 1)) }
        let large = String(repeating: "r", count: 3000)
        let child = url("a", #""queue":"other","then":[{"then":{"return":"\#(large)"}}]"#)
        let id = try driver.submit(list([child, child, child], #""concurrency":2"#))
        #expect(driver.core.inspectSlots().map(\.queue) == ["other"])
        driver.endAll()
        #expect(driver.stored(id)?.state == .succeeded)
        driver.expectQuiet()
    }

    @Test func listOfAnOwner_waits_whereManyOfTheirsAreOpen() throws {
        let driver = CoreDriver { $0.openLists = 4 }
        let ids = try (0..<5).map { _ in try driver.submit(list([url("a")])) }
        #expect(driver.core.inspection.openLists == 3)
        let other = try driver.submit(list([url("b")]), as: .two)
        #expect(driver.stored(other)?.state == .running && driver.state(ids[3]) == .queued)
        driver.endAll()
        #expect(driver.store.all.allSatisfy { $0.state == .succeeded })
        driver.expectQuiet()
    }

    @Test(arguments: [false, true])
    func listsOfAnOwner_wait_whereThoseThatAreOpenAreLarge(_ isReadAgain: Bool) throws {
        let driver = CoreDriver { $0.openLists = 40 }
        let text = String(repeating: "x", count: 500_000)
        let links = Array(repeating: #"{"then":{"return":"\#(text)"}}"#, count: 6).joined(separator: ",")
        let large = list([url("a")], job: #""then":[\#(links)]"#)
        driver.holdsWrites = isReadAgain
        for _ in 0..<6 { _ = try driver.requestSubmit(large) }
        if isReadAgain {
            driver.commitWrites()
            driver.holdsWrites = false
            driver.crash()
        }
        #expect(driver.core.inspection.openLists == 3)
        driver.endAll()
        #expect(driver.store.all.allSatisfy { $0.state == .succeeded })
        driver.expectQuiet()
    }

    // MARK: - What comes in between

    @Test func childrenThatAreBeingMade_areGone_whereTheirListIsCancelled() throws {
        for commits in [false, true] {
            let driver = CoreDriver()
            driver.holdsWrites = true
            _ = try driver.requestSubmit(list([url("a"), url("b")]))
            driver.releaseWrites()
            driver.ask(.cancel(1))
            if commits { driver.commitWrites(1) }
            driver.releaseWrites()
            driver.holdsWrites = false
            driver.releaseWrites()
            #expect(driver.store.all.allSatisfy { $0.state == .cancelled }, "\(driver.store.all.map(\.state))")
            #expect(driver.started.isEmpty)
            driver.expectQuiet()
        }
    }

    @Test func children_areCancelled_whereTheyCouldNotBeReadForIt() throws {
        let driver = CoreDriver { $0.queues[0].concurrency = 1 }
        let id = try driver.submit(list([url("a"), url("b"), url("c", #""delay":60"#)]))
        driver.failsRead = { if case .jobs = $0 { true } else { false } }
        let request = driver.ask(.cancel(id))
        #expect(driver.error(request) == nil && driver.stored(id)?.state == .cancelled)
        driver.advance(3)
        driver.failsRead = { _ in false }
        driver.advance(2)
        #expect(driver.store.all.allSatisfy { $0.state == .cancelled } && driver.open.isEmpty)
        driver.expectQuiet()
    }

    @Test func list_fails_whereItsChildrenCannotBeStored() throws {
        let driver = CoreDriver()
        driver.failsWrite = { if case .children = $0 { true } else { false } }
        let id = try driver.submit(list([url("a")]))
        #expect(failure(driver, id)?.kind == .storage && driver.stored(id)?.children == 0)
        driver.advance(2)
        driver.expectQuiet()
    }

    @Test func list_fails_whereItsChildrenCannotBeRead() throws {
        let driver = CoreDriver()
        let id = try driver.submit(list([url("a")]))
        driver.failsRead = { if case .children = $0 { true } else { false } }
        driver.endAll()
        #expect(failure(driver, id)?.kind == .storage)
        driver.expectQuiet()
    }

    @Test func list_isCancelled_whileItsOutcomeIsPutTogether() throws {
        let driver = CoreDriver()
        let id = try driver.submit(list([url("a")]))
        driver.holdsReads = true
        driver.endAll()
        let request = driver.ask(.cancel(id))
        driver.holdsReads = false
        driver.releaseReads()
        #expect(driver.answer(to: request) != nil && driver.stored(id)?.state == .cancelled)
        driver.expectQuiet()
    }

    @Test func resultOfAList_isBounded() throws {
        let driver = CoreDriver { $0.limits.body = 1000 }
        let id = try driver.submit(list([url("a"), url("b")]))
        driver.endAll { _ in .success(.string(String(repeating: "x", count: 600))) }
        #expect(failure(driver, id)?.kind == .tooLarge)
        driver.expectQuiet()
    }

    @Test func resultOfAList_isBounded_byWhatItTakesOnceReadAgain() throws {
        let driver = CoreDriver { $0.limits.body = 1 << 20 }
        let id = try driver.submit(list((0..<8).map { url("u\($0)") }))
        // 80 KB of text, and 2.2 MB of memory.
        driver.endAll { _ in .success(.array(Array(repeating: ["": 0], count: 10_000))) }
        #expect(failure(driver, id)?.kind == .tooLarge)
        driver.expectQuiet()
    }
}
