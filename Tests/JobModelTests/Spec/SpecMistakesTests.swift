import JobModel
import Testing

@Suite struct SpecMistakesTests {
    private func mistakes(_ text: String) throws -> [String] {
        SpecMistakes.all(in: try JSON(parsing: text)) { (spec) throws(SpecError) in
            _ = try JobSpecReader.spec(spec, limits: JobLimits())
        }.map(\.pointer.description)
    }

    @Test(
        arguments: [
            (#"{"source": {"type": "timer", "seconds": 1}}"#, []),
            (
                #"{"priorty": 5, "queue": 3, "tags": ["a", 1], "retry": {"mx": 1}}"#,
                ["/priorty", "/source", "/retry/mx", "/queue", "/tags/1"]
            ),
            (#"{"source": {"type": "ulr"}, "then": {}, "label": 1}"#, ["/source/type", "/then", "/label"]),
            (
                #"{"source": {"type": "url", "metod": "GET", "url": 5, "headers": 1}, "delay": -1}"#,
                ["/source/metod", "/source/url", "/delay"]
            ),
            (
                #"{"source": {"type": "value", "value": 1}, "then": [{"than": {}}, {"then": {"return": "{{inpt}}"}}, {"then": {"source": {"type": "url"}, "timeout": "x"}}, {"then": {"return": "{{input/a}}"}, "on": ["http"]}]}"#,
                [
                    "/then/0/than", "/then/0", "/then/1/then/return", "/then/2/then/timeout", "/then/2/then/source/url",
                    "/then/3/on",
                ]
            ),
            (
                #"{"source": {"type": "list", "jobs": [{"source": 1}, {"sorce": {}}, {"source": {"type": "timer"}}]}, "key": ""}"#,
                [
                    "/source/jobs/0/source", "/source/jobs/1/sorce", "/source/jobs/1/source",
                    "/source/jobs/2/source/seconds", "/key",
                ]
            ),
            (#"{"source": {"type": "program", "command": ["sh"]}, "label": 1}"#, ["/source/command/0", "/label"]),
            ("{}", ["/source"]),
        ] as [(String, [String])])
    func allOfThem_areFound_eachOnce(text: String, pointers: [String]) throws {
        #expect(try Set(mistakes(text)) == Set(pointers))
    }

    @Test func number_isBounded() throws {
        let members = (0..<50).map { "\"x\($0)\": 1" }.joined(separator: ", ")
        #expect(try mistakes("{\(members)}").count == SpecMistakes.most)
        let long = String(repeating: " ", count: 70_000)
        #expect(
            try mistakes("{\"source\": {\"type\": \"value\", \"value\": \"\(long)\"}, \"x\": 1, \"y\": 2}").count == 1)
    }
}
