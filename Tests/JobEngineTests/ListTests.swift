import Foundation
import InMemoryStore
import JobModel
import JobCore
import JobEngine
import Testing

/// Children of lists, and what they come to.
@Suite struct ListTests {
    private static func value(_ value: JSON) -> JSON { ["source": ["type": "value", "value": value]] }
    private static let failing: JSON = ["source": ["type": "error", "kind": "x", "message": "No."]]
    private static let waiting: JSON = ["source": ["type": "timer", "seconds": 3600]]

    private static func list(_ jobs: [JSON], _ mode: String, concurrency: Int? = nil) -> JSON {
        var source: JSONObject = JSONObject()
        source.append("type", "list")
        source.append("jobs", .array(jobs))
        source.append("mode", .string(mode))
        if let concurrency { source.append("concurrency", JSON(concurrency)) }
        return ["source": .object(source)]
    }

    private static let each: JSON = [
        "source": [
            "type": "each", "in": ["a", "b"], "mode": "all",
            "job": [
                "source": ["type": "value", "value": "{{item}}:{{index}}"],
                "then": [["then": ["return": "{{input}} of {{item}}"]]],
            ],
        ]
    ]

    @Test func list_hasTheResultOfItsMode() async throws {
        let results: [(spec: JSON, result: JSON)] = [
            (Self.list([Self.value(1), Self.value([2])], "all"), [1, [2]]), (Self.list([], "settled"), []),
            (Self.list([Self.waiting, Self.failing, Self.value(3)], "first"), ["index": 2, "value": 3]),
            (Self.each, ["a:0 of a", "b:1 of b"]),
            (
                Self.list([Self.list([Self.value(1), Self.value(2)], "all"), Self.each], "all"),
                [[1, 2], ["a:0 of a", "b:1 of b"]]
            ),
        ]
        try await TestEngine.with { test in
            for (spec, result) in results {
                let row = try await test.run(spec)
                #expect(try test.result(of: row) == result)
            }
        }
    }

    @Test func settled_hasAllOutcomes() async throws {
        try await TestEngine.with { test in
            let row = try await test.run(Self.list([Self.value(1), Self.failing, Self.value("b")], "settled"))
            let result = try test.result(of: row)
            #expect(result[0] == ["ok": true, "value": 1])
            #expect(result[1]?["ok"] == false)
            #expect(result[1]?["error"]?["kind"] == "x")
            #expect(result[1]?["error"]?["index"] == 1)
            #expect(result[2] == ["ok": true, "value": "b"])
        }
    }

    @Test func all_failsAtTheFirstFailure_andCancelsTheRest() async throws {
        try await TestEngine.with { test in
            let row = try await test.run(Self.list([Self.waiting, Self.failing], "all"))
            let error = try #require(row.carried?.error)
            #expect(error.kind == .list)
            #expect(error.cause?.kind.rawValue == "x")
            #expect(error.cause?.index == 1)
            let children = test.store.rows.allJobs.filter { $0.parent != nil }
            #expect(Set(children.map(\.state)) == [.cancelled, .failed])
        }
    }

    @Test func first_failsWithAllFailures_whenNoneSucceeds() async throws {
        try await TestEngine.with { test in
            let row = try await test.run(Self.list([Self.failing, Self.failing], "first"))
            #expect(row.carried?.error?.failures?.map(\.index) == [0, 1])
            let many = try await test.run(Self.list([JSON](repeating: Self.failing, count: 150), "first"))
            #expect(many.carried?.error?.failures?.map(\.index) == Array(0..<100))
            #expect(many.carried?.error?.failuresOmitted == 50)
            let none = try await test.run(Self.list([], "first"))
            #expect(none.carried?.error?.message.contains("has no children") == true)
        }
    }

    @Test func childThatCannotRun_isNamed_byTemplateAndElement() async throws {
        try await TestEngine.with { test in
            let child: JSON = ["source": ["type": "timer", "seconds": "{{item}}"]]
            let row = try await test.run(["source": ["type": "each", "in": [0, "x"], "job": child]])
            let message = try test.result(of: row)[1]?["error"]?["message"]?.string
            #expect(message?.contains("/source/job/source/seconds cannot run for element 1: ") == true)
        }
    }

    @Test func first_isNotWon_byACancelledChild() async throws {
        try await TestEngine.with { test in
            let job = try await test.submit(Self.list([Self.waiting, Self.waiting], "first"))
            await test.store.until { $0.allJobs.count { $0.waiting == .timer } == 2 }
            let children = test.store.rows.allJobs.filter { $0.parent != nil }.map(\.id)
            for child in children {
                #expect(test.store.rows.job(job)?.state == .running)
                _ = await test.engine.ask(.change(child, .cancel), for: TestEngine.user)
            }
            #expect(try await test.end(of: job).state == .failed)
        }
    }

    @Test func manyChildren_areMadeInPieces() async throws {
        try await TestEngine.with { test in
            let items = JSON.array((0..<700).map { JSON($0) })
            let row = try await test.run(
                [
                    "source": [
                        "type": "each", "in": items, "job": Self.value("{{item}}"), "mode": "all", "concurrency": 50,
                    ]
                ])
            #expect(try test.result(of: row) == items)
            #expect(row.children == 700)
        }
    }

    @Test func childOfAnUnknownQueue_fails_whenAnExpressionNamesIt() async throws {
        try await TestEngine.with { test in
            let child: JSON = ["source": ["type": "value", "value": 1], "queue": "{{item}}"]
            let row = try await test.run(["source": ["type": "each", "in": ["default", "none"], "job": child]])
            let result = try test.result(of: row)
            #expect(result[0]?["ok"] == true)
            #expect(result[1]?["error"]?["kind"] == "invalid")
        }
    }

    @Test func longItemsAndTemplates_standInFiles_andGoWithTheirJobs() async throws {
        try await TestEngine.with {
            $0.core.limits.inlineResult = 100
        } _: { test in
            let long = JSON.string(String(repeating: "x", count: 200))
            let child: JSON = ["source": ["type": "value", "value": ["{{item}}", long]]]
            let row = try await test.run(["source": ["type": "each", "in": [long, "b"], "job": child, "mode": "all"]])
            #expect(try test.result(of: row) == [[long, long], ["b", long]])
            guard case .done = await test.engine.ask(.change(row.id, .remove), for: TestEngine.user) else {
                throw TestEngine.Unexpected("It was not removed.")
            }
            await test.store.until { $0.jobCount == 0 }
            _ = await test.engine.probe()
            test.engine.blobs.removals.sync {}
            #expect(try FileManager.default.contentsOfDirectory(atPath: test.directory + "/blobs").isEmpty)
        }
    }

    @Test func longTemplate_isWholeInEachChild() async throws {
        try await TestEngine.with { test in
            let long = JSON.string(String(repeating: "x", count: 5_000))
            let child: JSON = [
                "source": ["type": "value", "value": ["{{item}}", long]],
                "then": [["then": ["return": ["{{input/1}}", long, "{{item}}"]]], ["then": ["return": "{{input}}"]]],
            ]
            let row = try await test.run(["source": ["type": "each", "in": [1, 2, 3], "job": child, "mode": "all"]])
            #expect(try test.result(of: row) == .array([1, 2, 3].map { [long, long, JSON($0)] }))
        }
    }

    @Test func specOfAChild_hasItsSize_whereItIsNotAtHand() async throws {
        try await TestEngine.with { test in
            let long = JSON.string(String(repeating: "x", count: 5_000))
            for value in [long, "short"] {
                let child: JSON = [
                    "source": ["type": "value", "value": ["{{item}}", value]], "then": [["then": ["return": value]]],
                ]
                let list = try await test.run(["source": ["type": "each", "in": [1, "two"], "job": child]])
                let children = test.store.rows.allJobs.filter { $0.parent?.job == list.id }
                #expect(children.count == 2)
                for row in children {
                    let stored = try #require(test.store.job(row.id))
                    let whole = JobView(row, document: stored.document, template: stored.template).json()
                    #expect(whole["source"]?["value"]?[1] == value)
                    let view = JobView(row, document: stored.document)
                    #expect(view.json(.brief)["specSize"] == JSON(row.specSize))
                }
            }
        }
    }

    @Test func results_areRefused_whenTheyAreTooLongTogether() async throws {
        try await TestEngine.with {
            $0.core.limits.body = 100
        } _: { test in
            let long = Self.value(.string(String(repeating: "x", count: 60)))
            let row = try await test.run(Self.list([long, long], "all"))
            #expect(row.carried?.error?.kind == .tooLarge)
        }
    }

    /// Clients refuse an answer that nests too deep, with all other jobs in it.
    @Test func list_isTooLarge_whereJobsThatWaitForListsNestTooDeep() async throws {
        try await TestEngine.with { test in
            var rows = [try await test.run(Self.value(1))]
            while rows.count < 120, let last = rows.last, last.state == .succeeded {
                let waiting: JSON = ["source": ["type": "job", "job": JSON(Int(last.id))]]
                rows.append(try await test.run(Self.list([waiting], "settled")))
            }
            // Each adds an array and an object.
            #expect(rows.count == 98)
            #expect(rows.last?.carried?.error?.kind == .tooLarge)
        }
    }
}
