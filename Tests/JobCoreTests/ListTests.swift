import JobModel
import JobCore
import Testing

@Suite struct ListTests {
    private func list(_ count: Int, mode: String = "settled", concurrency: Int? = nil) -> JSON {
        let child: JSON = ["source": ["type": "url", "url": "http://h/"], "retry": ["max": 0]]
        var source: [(String, JSON)] = [
            ("type", "list"), ("mode", .string(mode)), ("jobs", .array(Array(repeating: child, count: count))),
        ]
        if let concurrency { source.append(("concurrency", JSON(concurrency))) }
        var object = JSONObject()
        for (name, value) in source { object.append(name, value) }
        return ["source": .object(object)]
    }

    private func children(_ driver: CoreDriver) -> [JobID] { driver.live.values.map(\.job).sorted() }

    @Test func settled_endsWithItsLastChild() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(list(3))
        #expect(try driver.row(job).waiting == .children)
        #expect(children(driver).count == 3)
        for (index, child) in children(driver).enumerated() {
            if index == 1 { try driver.fail(child) } else { try driver.succeed(child) }
        }
        let row = try driver.row(job)
        #expect(row.state == .succeeded)
        #expect(row.carried == .success(.inline(Array("[3,1]".utf8))))
        #expect(row.children == 3)
    }

    @Test func first_cancelsTheRest() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(list(3, mode: "first"))
        let all = children(driver)
        try driver.succeed(all[1])
        #expect(driver.cancelled.count == 2)
        for child in [all[0], all[2]] { try driver.succeed(child) }
        #expect(try driver.row(all[0]).state == .cancelled)
        #expect(try driver.row(job).state == .succeeded)
    }

    @Test func concurrency_letsTheNextChildIn() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(list(5, concurrency: 2))
        var ended = 0
        while let child = children(driver).first {
            #expect(children(driver).count <= 2)
            try driver.succeed(child)
            ended += 1
        }
        #expect(ended == 5)
        #expect(try driver.row(job).state == .succeeded)
    }

    @Test func cancelledList_cancelsItsChildren_runningOrNot() throws {
        var settings = CoreSettings()
        settings.queues = [QueueSettings(name: "default", concurrency: 2)]
        let driver = try CoreDriver(settings)
        let job = try driver.submit(list(300))
        driver.ask(.change(job, .cancel))
        #expect(try driver.row(job).state == .cancelled)
        while let child = children(driver).first { try driver.succeed(child) }
        #expect(driver.core.status.counts.allSatisfy { $0.key.state == .cancelled })
    }

    @Test func crash_goesOnMakingChildren() throws {
        let driver = try CoreDriver()
        driver.expandsSteps = false
        let job = try driver.submit(list(5))
        let run = try driver.run(of: job)
        driver.send(.run(run, .list(ListOpening(mode: .settled, concurrency: nil, total: 5, template: nil))))
        driver.expandsSteps = true
        try driver.restart(.crashed)
        #expect(try driver.row(job).children == 5)
        while let child = children(driver).first { try driver.succeed(child) }
        #expect(try driver.row(job).state == .succeeded)
    }

    @Test func removal_takesTheWholeTree_inPieces() throws {
        let driver = try CoreDriver()
        let job = try driver.submit(list(300))
        while let child = children(driver).first { try driver.succeed(child) }
        #expect(try driver.row(job).state == .succeeded)
        guard case .done? = driver.ask(.change(job, .remove)) else {
            return #expect(Bool(false), "It was not removed.")
        }
        #expect(!driver.exists(job))
        #expect(driver.core.status.counts.values.allSatisfy { $0.jobs == 0 && $0.bytes == 0 })
    }
}
