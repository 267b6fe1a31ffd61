import JobModel
import JobCore
import JobEngine
import Testing

/// What each kind of step comes to.
@Suite struct StepTests {
    private static let object: JSON = ["type": "value", "value": ["a": 1]]
    private static let failing: JSON = ["type": "error", "kind": "mine", "message": "No."]

    private static func after(_ link: JSON, source: JSON = object) -> JSON {
        ["source": source, "label": "mine", "then": [link]]
    }

    @Test(
        arguments: [
            (object, ["both": ["source": nil, "return": "{{input}}"]], ["a": 1]),
            (object, ["then": ["return": "{{input/a}} {{job/label}} {{job/attempt}}"]], "1 mine 1"),
            (failing, ["fail": ["return": "{{error/kind}}"]], "mine"),
        ] as [(JSON, JSON, JSON)])
    func step_givesAValue(_ source: JSON, _ link: JSON, _ result: JSON) async throws {
        try await TestEngine.with { test in
            let row = try await test.run(Self.after(link, source: source))
            #expect(try test.result(of: row) == result)
        }
    }

    @Test(
        arguments: [
            (failing, ["then": ["return": 1]], "mine", 0),
            (object, ["then": ["throw": ["kind": "odd", "message": "Got {{input/a}}."]]], "odd", 1),
            (["type": "list", "jobs": [], "mode": "all"], ["then": ["return": "{{input/5}}"]], "template", 1),
        ] as [(JSON, JSON, String, Int)])
    func step_fails(_ source: JSON, _ link: JSON, _ kind: String, _ number: Int) async throws {
        try await TestEngine.with { test in
            let error = try #require(try await test.run(Self.after(link, source: source)).carried?.error)
            #expect(error.kind.rawValue == kind && error.link == number)
            if kind == "odd" { #expect(error.message == "Got 1.") }
        }
    }

    @Test func keys_joinJobsOfTheSameSpec_whateverTheOrderOfMembers() async throws {
        try await TestEngine.with { test in
            let first = try await test.submit(["source": ["type": "value", "value": ["a": 1, "b": 2]], "key": "k"])
            let second = try await test.submit(
                ["key": "k", "label": nil, "source": ["value": ["b": 2, "a": 1], "type": "value"]])
            #expect(first == second)
            for value: JSON in [["a": 2, "b": 1], ["a": 1, "b": 2, "c": nil]] {
                await #expect(throws: ProtocolError.self) {
                    try await test.submit(["source": ["type": "value", "value": value], "key": "k"])
                }
            }
        }
    }
}
