import Testing

@testable import JobModel

struct ScheduleTests {
    private let set = Timestamp(milliseconds: 1_790_000_000_000)
    private let key = ScheduleKey(owner: 1, name: "nightly")

    @Test func every_countsFromWhenItWasSet_alsoBackwards() {
        let timing = ScheduleTiming.every(1500)
        func next(_ offset: Int64) -> Int64? {
            timing.next(after: Timestamp(milliseconds: set.milliseconds + offset), since: set, in: .utc)
                .map { $0.milliseconds - set.milliseconds }
        }
        #expect(next(0) == 1500)
        #expect(next(1499) == 1500)
        #expect(next(1500) == 3000)
        #expect(next(-1) == 0)
        #expect(next(-1500) == 0)
        #expect(next(-1501) == -1500)
    }

    @Test(arguments: [ScheduleTiming.every(60_000), .every(ScheduleTiming.longest), .every(1)])
    func next_neverTraps(_ timing: ScheduleTiming) {
        for time: Int64 in [.min, 0, .max] {
            for start: Int64 in [.min, 0, .max] {
                _ = timing.next(
                    after: Timestamp(milliseconds: time), since: Timestamp(milliseconds: start), in: .utc)
            }
        }
    }

    @Test(arguments: ["* * * * *", "0 6 * * *", "*/7 3 * 1 *", "0 0 29 2 *", "0 0 1 1 *"])
    func last_givesTheNewestTimes_inOrder(_ text: String) throws {
        let timing = ScheduleTiming.calendar(text, try CalendarExpression(text), zone: "UTC")
        for days: Int64 in [1, 40, 800, 3000] {
            let end = Timestamp(milliseconds: set.milliseconds + days * 86_400_000)
            var all: [Timestamp] = []
            var after = set
            // Minute by minute that are many.
            if text.hasPrefix("* "), days > 100 { continue }
            while let next = timing.next(after: after, since: set, in: .utc), next <= end {
                all.append(next)
                after = next
            }
            #expect(timing.last(100, after: set, upTo: end, since: set, in: .utc) == all.suffix(100))
        }
    }

    @Test func names_arePlain() {
        for name in ["a", "A.b_c-9", String(repeating: "x", count: 64)] { #expect(ScheduleKey.flaw(in: name) == nil) }
        for name in ["", " ", "a b", "a/b", "ä", "a\n", "a\u{301}", String(repeating: "x", count: 65), "a:b"] {
            #expect(ScheduleKey.flaw(in: name) != nil, Comment(rawValue: name))
        }
    }

    // MARK: - Specs

    private func fault(_ text: String) throws -> String? {
        do {
            _ = try JobSpecReader.schedule(
                JSON(parsing: text), at: JSONPointer(["spec"]), limits: JobLimits())
            return nil
        } catch let error as SpecError { return error.pointer.description }
    }

    @Test func spec_knowsItsSchedule_everywhere() throws {
        #expect(
            try fault(
                #"{"source":{"type":"url","url":"http://a/{{schedule/name}}"},"label":"{{schedule/time}}","then":[{"then":{"return":"{{schedule/time}}"}}]}"#
            ) == nil)
        #expect(
            try fault(
                #"{"source":{"type":"list","jobs":[{"source":{"type":"value","value":"{{schedule}}"},"then":[{"fail":{"return":"{{schedule/name}}"}}]}]}}"#
            ) == nil)
    }

    @Test(arguments: [
        (#"{"source":{"type":"value","value":1},"key":"x"}"#, "/spec/key"),
        (#"{"source":{"type":"value","value":1},"notBefore":"2026-01-01T00:00:00Z"}"#, "/spec/notBefore"),
        (#"{"source":{"type":"value","value":1},"watch":true}"#, "/spec/watch"),
        (#"{"source":{"type":"value","value":"{{job/id}}"}}"#, "/spec/source/value"),
        (#"{"source":{"type":"value","value":"{{schedule/nothing}}"}}"#, "/spec/source/value"),
        (#"{"source":{"type":"value"}}"#, "/spec/source/value"), ("{}", "/spec/source"), ("[]", "/spec"),
        (#"{"source":{"type":"value","value":1},"then":[{"then":{"return":"{{item}}"}}]}"#, "/spec/then/0/then/return"),
    ])
    func spec_isRefused_withThePointer(_ text: String, _ pointer: String) throws {
        #expect(try fault(text) == pointer)
    }

    @Test(arguments: ["schedul/time", "job/id"])
    func unknownName_isRefused_withThoseThatAreKnownThere(_ expression: String) throws {
        let spec: JSON = ["source": ["type": "value", "value": .string("{{\(expression)}}")]]
        let error = #expect(throws: SpecError.self) { try JobSpecReader.schedule(spec, limits: JobLimits()) }
        #expect(error?.reason.hasSuffix("{{\(expression)}}; known are \"schedule\".") == true)
    }

    @Test func otherSpecs_knowNoSchedule_andHaveNoSuchKey() throws {
        for text in [
            #"{"source":{"type":"value","value":1},"then":[{"then":{"return":"{{schedule/time}}"}}]}"#,
            #"{"source":{"type":"each","in":[1],"job":{"source":{"type":"value","value":"{{schedule}}"}}}}"#,
            #"{"source":{"type":"value","value":1},"key":"schedule:x"}"#,
            #"{"source":{"type":"download","url":"http://a/","path":"{{schedule/time}}"}}"#,
        ] {
            let json = try JSON(parsing: text)
            #expect(throws: SpecError.self) { try JobSpecReader.spec(json, limits: JobLimits()) }
        }
        let json = try JSON(parsing: #"{"source":{"type":"value","value":1},"key":"Schedule:x"}"#)
        #expect(try JobSpecReader.spec(json, limits: JobLimits()).terms.key == "Schedule:x")
    }

    @Test func job_hasTheValuesFilledIn_onceAndForAll() throws {
        let text = #"""
            {"source":{"type":"url","url":"http://a/?t={{schedule/time}}&b=\\{{x}}"},"then":[{"then":{"return":["{{input}}","{{schedule/name}}","\\{{y}}"]}}]}
            """#
        let spec = try JobSpecReader.scheduled(
            JSON(parsing: text), by: key, at: set, hasKey: true)
        #expect(spec.terms.key == "schedule:nightly:2026-09-21T14:13:20.000Z")
        #expect(spec.json["source"]?["url"] == "http://a/?t=2026-09-21T14%3A13%3A20.000Z&b={{x}}")
        // What the link fills in later stands as it was, braces that are none with their backslash.
        #expect(spec.json["then"]?[0]?["then"]?["return"] == ["{{input}}", "nightly", #"\{{y}}"#])
        let byHand = try JobSpecReader.scheduled(
            JSON(parsing: text), by: key, at: set, hasKey: false)
        #expect(byHand.terms.key == nil)
        // Braces that a schedule's spec has escaped are the name of a file.
        let braces = try JobSpecReader.scheduled(
            ["source": ["type": "download", "url": "http://a/", "path": #"\{{schedule/name}}"#]], by: key, at: set,
            hasKey: true)
        #expect(braces.json["source"]?["path"] == "{{schedule/name}}")
    }
}
