import JobModel
import Testing

/// The members of a spec beside its source and links, and the limits on the whole.
@Suite struct JobSpecReaderTests {
    private func fault(_ members: String) throws -> SpecError? {
        try JobModelTests.fault(in: #"{"source":{"type":"error"},\#(members)}"#)
    }

    @Test func spec_isReadWhole() throws {
        let text =
            #"{"source":{"type":"json","url":"https://example.org/"},"then":[{"then":{"return":1}}],"queue":"q","#
            + #""priority":-1000,"delay":1.5,"timeout":60,"deadline":600,"retry":{"max":0,"initial":0,"factor":1,"#
            + #""maxDelay":0,"jitter":false},"key":"k","tags":["a","b"],"label":"l","requires":{"node":"ada"}}"#
        let spec = try JobSpec.parsing(text)
        let (terms, plan) = (spec.terms, spec.terms.plan)
        #expect(plan.source.source == .json && plan.links.count == 1)
        #expect(terms.queue == "q" && terms.priority == -1000 && spec.delay == 1.5 && spec.notBefore == nil)
        #expect(plan.source.timeout == 60 && plan.deadline == 600)
        #expect(plan.source.retry == RetryPolicy(max: 0, initial: 0, factor: 1, maxDelay: 0, jitter: false))
        #expect(terms.key == "k" && terms.tags == ["a", "b"] && terms.label == "l" && spec.node == "ada")
        #expect(spec.json.description == text)
    }

    @Test func spec_hasDefaults_forWhatIsLeftOutOrNull() throws {
        let nulls = JobSpec.members.filter { $0 != "source" }.map { "\"\($0)\":null" }.joined(separator: ",")
        for spec in [
            try JobSpec.parsing(#"{"source":{"type":"error"}}"#),
            try .parsing(#"{"source":{"type":"error"},\#(nulls)}"#),
        ] {
            let (terms, plan) = (spec.terms, spec.terms.plan)
            #expect(terms.queue == "default" && terms.priority == 0 && spec.delay == nil && spec.notBefore == nil)
            #expect(plan.source.timeout == nil && plan.source.retry == .standard)
            #expect(plan.deadline == nil && terms.key == nil)
            #expect(terms.tags.isEmpty && terms.label == nil && plan.links.isEmpty && spec.node == nil)
        }
    }

    @Test func retry_takesTheStandard_forWhatIsLeftOut() throws {
        let spec = try JobSpec.parsing(#"{"source":{"type":"error"},"retry":{"max":7}}"#)
        var expected = RetryPolicy.standard
        expected.max = 7
        #expect(spec.terms.plan.source.retry == expected)
    }

    @Test func retries_areThoseOfTheConfiguration_whenSpecNamesNone() throws {
        var limits = JobLimits()
        limits.retry = RetryPolicy(max: 3, initial: 7, factor: 1, maxDelay: 9, jitter: false)
        let source = #""source":{"type":"url","url":"https://h/"}"#
        #expect(try JobSpec.parsing("{\(source)}", limits: limits).terms.plan.source.retry == limits.retry)
        var own = limits.retry
        own.max = 1
        #expect(
            try JobSpec.parsing(#"{\#(source),"retry":{"max":1}}"#, limits: limits).terms.plan.source.retry == own)
        var reader = JobSpecReader.ofStored(retry: limits.retry)
        #expect(try reader.spec(JSON(parsing: "{\(source)}")).terms.plan.source.retry == limits.retry)
    }

    @Test(arguments: [
        #""priority":1000"#, #""priority":1.0"#, #""delay":0"#, #""delay":315360000"#,
        #""notBefore":"2026-01-31T12:00:00+01:00""#, #""timeout":0.001"#, #""deadline":315360000"#, #""retry":{}"#,
        #""retry":{"max":1000,"initial":315360000,"factor":1000,"maxDelay":0,"jitter":true}"#, #""tags":[]"#,
        #""delay":null,"notBefore":"2026-01-31T12:00:00Z""#, #""then":[]"#, #""requires":{"node":"aZ0._-"}"#,
        #""requires":{"node":"\#(String(repeating: "x", count: 63))"}"#,
    ])
    func member_isAccepted(_ members: String) throws {
        #expect(try fault(members) == nil)
    }

    @Test(arguments: [
        (#""x":1"#, "/x"), (#""watch":true"#, "/watch"), (#""Source":{}"#, "/Source"), (#""":1"#, "/"),
        (#""queue":5"#, "/queue"), (#""queue":"""#, "/queue"), (#""priority":1001"#, "/priority"),
        (#""priority":-1001"#, "/priority"), (#""priority":1.5"#, "/priority"), (#""priority":"1""#, "/priority"),
        (#""priority":1e30"#, "/priority"), (#""delay":-1"#, "/delay"), (#""delay":"1""#, "/delay"),
        (#""delay":315360001"#, "/delay"), (#""delay":1e400"#, "/delay"), (#""delay":true"#, "/delay"),
        (#""notBefore":"tomorrow""#, "/notBefore"), (#""notBefore":5"#, "/notBefore"),
        (#""delay":1,"notBefore":"2026-01-31T12:00:00Z""#, "/notBefore"), (#""timeout":0"#, "/timeout"),
        (#""timeout":-1"#, "/timeout"), (#""timeout":"60""#, "/timeout"), (#""deadline":0"#, "/deadline"),
        (#""deadline":[]"#, "/deadline"), (#""retry":5"#, "/retry"), (#""retry":[]"#, "/retry"),
        (#""retry":{"x":1}"#, "/retry/x"), (#""retry":{"max":-1}"#, "/retry/max"),
        (#""retry":{"max":1001}"#, "/retry/max"),
        (#""retry":{"max":1.5}"#, "/retry/max"), (#""retry":{"max":"4"}"#, "/retry/max"),
        (#""retry":{"initial":-1}"#, "/retry/initial"), (#""retry":{"factor":0.5}"#, "/retry/factor"),
        (#""retry":{"factor":1001}"#, "/retry/factor"), (#""retry":{"maxDelay":-1}"#, "/retry/maxDelay"),
        (#""retry":{"maxDelay":1e10}"#, "/retry/maxDelay"), (#""retry":{"jitter":1}"#, "/retry/jitter"),
        (#""key":"""#, "/key"), (#""key":1"#, "/key"), (#""tags":"a""#, "/tags"), (#""tags":["a",1]"#, "/tags/1"),
        (#""tags":[""]"#, "/tags/0"), (#""tags":{}"#, "/tags"), (#""label":"""#, "/label"), (#""label":{}"#, "/label"),
        (#""then":{}"#, "/then"), (#""then":"{{input}}""#, "/then"), (#""then":[1]"#, "/then/0"),
        (#""requires":"ada""#, "/requires"), (#""requires":{}"#, "/requires/node"),
        (#""requires":{"x":1}"#, "/requires/x"), (#""requires":{"node":1}"#, "/requires/node"),
        (#""requires":{"node":""}"#, "/requires/node"), (#""requires":{"node":"a b"}"#, "/requires/node"),
        (#""requires":{"node":"{{item}}"}"#, "/requires/node"),
        (#""requires":{"node":"\#(String(repeating: "x", count: 64))"}"#, "/requires/node"),
    ])
    func member_isRefused_withItsPointer(_ members: String, _ pointer: String) throws {
        let fault = try #require(try fault(members))
        #expect(fault.pointer.description == pointer)
        #expect(fault.reason.hasSuffix("."))
    }

    @Test(arguments: [
        (#"{"source":{"type":"error"},"requires":{"node":"ada"}}"#, nil),
        (#"{"source":{"type":"error"},"requires":{"node":"bob"}}"#, "/requires/node"),
        (
            #"{"source":{"type":"list","jobs":[{"source":{"type":"error"},"requires":{"node":"bob"}}]}}"#,
            "/source/jobs/0/requires/node"
        ),
        (
            #"{"source":{"type":"each","in":["ada"],"job":{"source":{"type":"error"},"requires":{"node":"{{item}}"}}}}"#,
            nil
        ),
    ])
    func otherNode_isRefused_whenThereIsOnlyOne(_ text: String, _ pointer: String?) throws {
        var reader = JobSpecReader(limits: JobLimits(), onlyNode: "ada")
        do {
            _ = try reader.spec(JSON(parsing: text))
            #expect(pointer == nil)
        } catch let error as SpecError {
            #expect(error.pointer.description == pointer && error.reason.contains("\"bob\""))
        }
        #expect(try JobModelTests.fault(in: text) == nil)
    }

    @Test(arguments: ["timeout", "priority"]) func number_isRefused_whenItIsTooLarge(_ name: String) throws {
        #expect(try fault(#""\#(name)":1e999"#)?.reason.contains(" from ") == true)
    }

    @Test func children_inherit_whereTheyNameNothing() throws {
        let child: JSON = ["source": ["type": "error"], "queue": nil, "priority": nil]
        let inherited = child.inheriting(queue: "q", priority: 5)
        #expect(inherited["queue"] == "q" && inherited["priority"] == 5)
    }

    @Test func unknownMember_isNamed() throws {
        #expect(try fault(#""prio":1"#)?.reason.contains("\"prio\"") == true)
    }

    @Test(arguments: [("queue", 64), ("key", 256), ("label", 256)])
    func text_isAtMost_soManyBytes(_ name: String, _ limit: Int) throws {
        #expect(try fault(#""\#(name)":"\#(String(repeating: "x", count: limit))""#) == nil)
        #expect(
            try fault(#""\#(name)":"\#(String(repeating: "x", count: limit - 1))\u00e4""#)?.pointer.description
                == "/\(name)")
    }

    @Test func tags_areAtMost32_of256Bytes() throws {
        func tags(_ count: Int, _ length: Int) -> String {
            let tag = "\"" + String(repeating: "x", count: length) + "\""
            return "\"tags\":[" + Array(repeating: tag, count: count).joined(separator: ",") + "]"
        }
        #expect(try fault(tags(32, 256)) == nil)
        #expect(try fault(tags(33, 1))?.pointer.description == "/tags")
        #expect(try fault(tags(3, 257))?.pointer.description == "/tags/0")
    }

    @Test func place_isThatInTheParams() throws {
        let error = #expect(throws: SpecError.self) {
            try JobSpecReader.spec(["source": 1], at: JSONPointer(["spec"]), limits: JobLimits())
        }
        #expect(error?.pointer.description == "/spec/source")
        #expect(try JobModelTests.fault(in: "{}")?.pointer.description == "/source")
        #expect(try JobModelTests.fault(in: "[]")?.pointer.description == "")
    }

    // MARK: - Limits

    @Test func links_areAtMostAsManyAsTheLimit() throws {
        var limits = JobLimits()
        limits.links = 3
        func spec(_ count: Int) -> String {
            let links = Array(repeating: #"{"then":{"return":1}}"#, count: count).joined(separator: ",")
            return #"{"source":{"type":"error"},"then":[\#(links)]}"#
        }
        #expect(try JobModelTests.fault(in: spec(3), limits: limits) == nil)
        #expect(try JobModelTests.fault(in: spec(4), limits: limits)?.pointer.description == "/then")
        #expect(try JobModelTests.fault(in: spec(100)) == nil)
        #expect(try JobModelTests.fault(in: spec(101))?.pointer.description == "/then")
        // Each child's chain is one of its own.
        let child = #"{"source":{"type":"list","jobs":[\#(spec(3)),\#(spec(4))]}}"#
        #expect(try JobModelTests.fault(in: child, limits: limits)?.pointer.description == "/source/jobs/1/then")
    }

    @Test func children_areAtMostAsManyAsTheLimit() throws {
        var limits = JobLimits()
        limits.children = 3
        func list(_ count: Int) -> String {
            let jobs = Array(repeating: #"{"source":{"type":"error"}}"#, count: count).joined(separator: ",")
            return #"{"source":{"type":"list","jobs":[\#(jobs)]}}"#
        }
        func each(_ count: Int) -> String {
            let items = Array(repeating: "1", count: count).joined(separator: ",")
            return #"{"source":{"type":"each","in":[\#(items)],"job":{"source":{"type":"error"}}}}"#
        }
        #expect(try JobModelTests.fault(in: list(3), limits: limits) == nil)
        #expect(try JobModelTests.fault(in: list(4), limits: limits)?.pointer.description == "/source/jobs")
        #expect(try JobModelTests.fault(in: each(3), limits: limits) == nil)
        #expect(try JobModelTests.fault(in: each(4), limits: limits)?.pointer.description == "/source/in")
    }

    @Test func children_areBounded_inAllTogether() throws {
        var limits = JobLimits()
        limits.children = 3
        limits.depth = 2
        let leaf = #"{"source":{"type":"error"}}"#
        let inner = #"{"source":{"type":"list","jobs":[\#(leaf)]}}"#
        #expect(
            try JobModelTests.fault(
                in: #"{"source":{"type":"list","jobs":[\#(inner),\#(inner),\#(inner)]}}"#, limits: limits)
                == nil)
        let wide = #"{"source":{"type":"list","jobs":[\#(leaf),\#(leaf)]}}"#
        #expect(
            try JobModelTests.fault(
                in: #"{"source":{"type":"list","jobs":[\#(inner),\#(wide),\#(inner)]}}"#, limits: limits)?
                .pointer.description == "/source/jobs/2/source")
    }

    @Test(arguments: [
        (#"{"source":{"type":"list","jobs":["#, "]}}", "/source/jobs/0"),
        (#"{"source":{"type":"each","in":[],"job":"#, "}}", "/source/job"),
    ])
    func lists_nestAsDeepAsTheLimit(_ open: String, _ close: String, _ step: String) throws {
        var limits = JobLimits()
        limits.depth = 4
        func nested(_ depth: Int) -> String {
            (0..<depth).reduce(#"{"source":{"type":"error"}}"#) { inner, _ in open + inner + close }
        }
        #expect(try JobModelTests.fault(in: nested(4), limits: limits) == nil)
        #expect(
            try JobModelTests.fault(in: nested(5), limits: limits)?.pointer.description
                == String(repeating: step, count: 4) + "/source")
        #expect(try JobModelTests.fault(in: nested(16)) == nil)
        #expect(try JobModelTests.fault(in: nested(17)) != nil)
    }

    @Test func depth_countsTheListsAroundAChild() throws {
        let list: JSON = ["source": ["type": "list", "jobs": []]]
        var limits = JobLimits()
        limits.depth = 2
        #expect(throws: Never.self) { try JobSpecReader.child(list, at: JSONPointer(), depth: 1, limits: limits) }
        #expect(throws: SpecError.self) { try JobSpecReader.child(list, at: JSONPointer(), depth: 2, limits: limits) }
    }

    @Test func child_holdsWhatWasAccepted_butNoMoreOfWhatComesOutOfExpressions() throws {
        func list(_ count: Int, links: Int = 0, _ inner: JSON = ["source": ["type": "error"]]) -> JSON {
            [
                "source": ["type": "list", "jobs": .array(Array(repeating: inner, count: count))],
                "then": .array(Array(repeating: ["then": ["return": 1]], count: links)),
            ]
        }
        var limits = JobLimits()
        limits.children = 2
        limits.links = 1
        limits.depth = 2
        func read(_ json: JSON, accepted: JSON?) throws -> JobSpec {
            try JobSpecReader.child(json, at: JSONPointer(), depth: 1, limits: limits, accepted: accepted)
        }
        for json in [list(3), list(1, links: 2), list(1, list(1)), list(3, list(3))] {
            #expect(throws: SpecError.self) { try read(json, accepted: nil) }
            #expect(throws: SpecError.self) { try read(json, accepted: list(1)) }
            #expect(try read(json, accepted: json).json == json)
        }
        let open: JSON = ["source": ["type": "list", "jobs": "{{input}}"]]
        #expect(throws: SpecError.self) { try read(list(3), accepted: open) }
    }

    // MARK: - Retries

    @Test(arguments: [
        ("GET", "", "", 10), ("POST", "", "", 0), ("patch", "", "", 0), ("PUT", "", "", 10), ("DELETE", "", "", 10),
        ("POST", #","retry":{"max":2}"#, "", 2), ("POST", "", #","retry":{"max":3}"#, 3),
        ("GET", #","retry":{"max":2}"#, #","retry":{"max":3}"#, 3), ("POST", #","retry":{}"#, "", 10),
        ("{{input}}", "", "", 0), ("{{input}}", #","retry":{"max":2}"#, "", 2),
    ])
    func retries_ofPOSTAndPATCH_areOnlyThoseOfTheSpec(
        _ method: String, _ ofJob: String, _ ofStep: String, _ max: Int
    ) throws {
        for type in ["url", "json"] {
            let source = #"{"type":"\#(type)","url":"https://h/","method":"\#(method)"}"#
            let spec = try JobSpec.parsing(
                #"{"source":{"type":"error"},"then":[{"then":{"source":\#(source)\#(ofStep)}}]\#(ofJob)}"#)
            guard case .pair(let step?, _, _) = spec.terms.plan.links.first else {
                Issue.record("no step")
                return
            }
            #expect(step.retry.max == max)
            if ofStep.isEmpty, !method.hasPrefix("{") {
                let own = try JobSpec.parsing(#"{"source":\#(source)\#(ofJob)}"#)
                #expect(own.terms.plan.source.retry.max == max)
            }
        }
    }

    // MARK: - Children and what is stored

    @Test func child_takesText_forNumbersAndScalarsForText() throws {
        // What expressions make of a child's members need not have the type that they stand for.
        let json = try JSON(
            parsing:
                #"{"source":{"type":"timer","seconds":"2.5"},"priority":"7","label":5,"tags":[1,true,"x"],"queue":"q"}"#
        )
        let spec = try JobSpecReader.child(json, at: JSONPointer(), depth: 1, limits: JobLimits())
        #expect(spec.terms.priority == 7 && spec.terms.label == "5" && spec.terms.tags == ["1", "true", "x"])
        #expect(throws: SpecError.self) { try JobSpecReader.spec(json, limits: JobLimits()) }
        for bad in [#""priority":"x""#, #""priority":"1.5""#, #""label":[]"#, #""tags":[[]]"#, #""timeout":"0""#] {
            let json = try JSON(parsing: #"{"source":{"type":"error"},\#(bad)}"#)
            #expect(throws: SpecError.self) {
                try JobSpecReader.child(json, at: JSONPointer(), depth: 1, limits: JobLimits())
            }
        }
    }

    @Test func storedSpec_isRead_whateverTheLimitsAreNow() throws {
        let links = Array(repeating: #"{"then":{"return":1}}"#, count: 300).joined(separator: ",")
        let nested = (0..<17).reduce(#"{"source":{"type":"error"}}"#) { inner, _ in
            #"{"source":{"type":"list","jobs":[\#(inner)]}}"#
        }
        for text in [#"{"source":{"type":"error"},"then":[\#(links)]}"#, nested] {
            let json = try JSON(parsing: text)
            #expect(throws: Never.self, "one of a schedule") {
                try JobSpecReader.scheduled(
                    json, by: ScheduleKey(owner: 1, name: "s"), at: .after(0), hasKey: false)
            }
        }
    }
}
