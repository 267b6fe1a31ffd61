import JobModel
import TestSupport
import Testing

/// Expressions in the specs of children: which are filled in when, and never twice.
@Suite struct ChildExpansionTests {
    private func json(_ text: String) throws -> JSON { try JSON(parsing: text) }

    // MARK: - Lists

    @Test func list_fillsItsChildrenIn_andLeavesTheirLinks() throws {
        let source = try json(
            #"""
            {"type":"list","jobs":[{"source":{"type":"url","url":"https://h/{{input/id}}"},"label":"{{input/id}}",
             "then":[{"then":{"return":"{{input}} \\{{x"},"fail":{"source":{"type":"url","url":"{{error}}"}}}]}]}
            """#)
        let expanded = try TemplateExpansion([.input: ["id": "a b"], .error: nil, .job: ["id": 1]]).source(source)
        #expect(
            try expanded
                == json(
                    #"""
                    {"type":"list","jobs":[{"source":{"type":"url","url":"https://h/a%20b"},"label":"a b",
                     "then":[{"then":{"return":"{{input}} \\{{x"},"fail":{"source":{"type":"url","url":"{{error}}"}}}]}]}
                    """#))
    }

    @Test func list_neverExpandsAgain_whatItsJobsWereMadeOf() throws {
        // Specs that came from elsewhere: every expression in them is just text.
        let foreign = try json(
            #"""
            [{"source":{"type":"value","value":"{{input/secret}}"},"label":"\\{{x",
              "then":[{"then":{"return":"{{input}} \\{{y {{"}}]},
             {"source":{"type":"each","in":[1],"job":{"source":{"type":"value","value":"{{item}}"}}}}]
            """#)
        let jobs = try #require(
            TemplateExpansion([.input: ["jobs": foreign, "secret": 1]]).source([
                "type": "list", "jobs": "{{input/jobs}}",
            ])["jobs"])
        #expect(jobs[0]?["source"]?["value"] == "{{input/secret}}")
        #expect(jobs[0]?["label"] == "\\{{x")
        let link = try #require(jobs[0]?["then"]?[0]?["then"]?["return"])
        #expect(try TemplateExpansion([.input: "expanded"]).value(link) == "{{input}} \\{{y {{")
        let grandchild = try #require(jobs[1]?["source"]?["job"])
        #expect(try TemplateExpansion([.item: 1, .index: 0]).child(grandchild)["source"]?["value"] == "{{item}}")
        for job in try #require(jobs.array) {
            #expect(throws: Never.self) {
                try JobSpecReader.child(job, at: JSONPointer(), depth: 1, limits: JobLimits())
            }
        }
    }

    // MARK: - Each

    @Test func each_givesItemAndIndex_toTheChildAndItsLinks() throws {
        let job = try json(
            #"""
            {"source":{"type":"url","url":"https://h/{{item/name}}?n={{index}}"},"label":"{{item/name}}","priority":"{{index}}",
             "then":[{"then":{"source":{"type":"download","url":"{{input/url}}","path":"{{item/name}}-{{index}}"},"timeout":5},
                      "fail":{"return":["{{error}}","{{item}}"]},"on":["http"]},
                     {"finally":{"throw":{"message":"{{job/id}} {{index}}"}}}]}
            """#)
        let child = try TemplateExpansion([.item: ["name": "a b"], .index: 3]).child(job)
        #expect(
            try child
                == json(
                    #"""
                    {"source":{"type":"url","url":"https://h/a%20b?n=3"},"label":"a b","priority":3,
                     "then":[{"then":{"source":{"type":"download","url":"{{input/url}}","path":"a b-3"},"timeout":5},
                              "fail":{"return":["{{error}}",{"name":"a b"}]},"on":["http"]},
                             {"finally":{"throw":{"message":"{{job/id}} 3"}}}]}
                    """#))
    }

    @Test func each_inALink_isFilledInTwice_eachTimeItsOwnNames() throws {
        let source = try json(
            #"""
            {"type":"each","in":"{{input/items}}","job":{"source":{"type":"value","value":["{{input/x}}","{{item}}","{{index}}"]},
             "then":[{"then":{"return":["{{input}}","{{item}}","{{job/id}}"]}}]}}
            """#)
        let expanded = try TemplateExpansion([.input: ["items": ["p", "q"], "x": 5], .job: ["id": 1]]).source(source)
        #expect(expanded["in"] == ["p", "q"])
        let child = try TemplateExpansion([.item: "q", .index: 1]).child(try #require(expanded["job"]))
        #expect(child["source"]?["value"] == [5, "q", 1])
        let link = try #require(child["then"]?[0]?["then"]?["return"])
        #expect(link == ["{{input}}", "q", "{{job/id}}"])
        #expect(try TemplateExpansion([.input: "r", .job: ["id": 9]]).value(link) == ["r", "q", 9])
    }

    @Test func innerEach_hasItsOwnItem() throws {
        let job = try json(
            #"""
            {"source":{"type":"each","in":"{{item/parts}}","job":{"source":{"type":"value","value":"{{item}}/{{index}}"},
             "then":[{"then":{"return":"{{item}}"}}]}},
             "then":[{"then":{"source":{"type":"each","in":"{{input}}","job":{"source":{"type":"value","value":"{{item}} {{input}}"}}}}},
                     {"then":{"source":{"type":"list","jobs":[{"source":{"type":"value","value":"{{item/name}}"},
                                                             "then":[{"then":{"return":"{{item/name}} {{input}}"}}]}]}}}]}
            """#)
        let child = try TemplateExpansion([.item: ["parts": [1, 2], "name": "n"], .index: 0]).child(job)
        #expect(child["source"]?["in"] == [1, 2])
        #expect(child["source"]?["job"] == job["source"]?["job"])
        #expect(child["then"]?[0] == job["then"]?[0])
        // A list in a link sees the outer item, its children's links among it.
        let grandchild = child["then"]?[1]?["then"]?["source"]?["jobs"]?[0]
        #expect(grandchild?["source"]?["value"] == "n")
        #expect(grandchild?["then"]?[0]?["then"]?["return"] == "n {{input}}")
    }

    // MARK: - Never twice

    /// Text with expressions, as one writes it and as it must come out.
    private struct Example {
        var written = ""
        var expected = ""
    }

    /// Any sequence of texts and expressions that can be written down.
    private func example(
        _ values: [(name: String, value: String)], using generator: inout SeededGenerator
    ) -> Example {
        var example = Example()
        for _ in 0..<Int.random(in: 2..<6, using: &generator) {
            if generator.chance(0.3) {
                var text = (0..<Int.random(in: 1..<3, using: &generator))
                    .map { _ in generator.pick(["{", "}", "\\", "a", "{{"]) }.joined()
                // These cannot be written in front of an expression: they would be taken for a part of it.
                while text.last == "{" || text.last == "\\" { text.removeLast() }
                // Nor can they follow an escape that was cut in two.
                example.written += TemplateText.escaped(text)
                example.expected += text
            } else {
                let (name, value) = generator.pick(values)
                example.written += "{{\(name)}}"
                example.expected += value
            }
        }
        return example
    }

    private func value(using generator: inout SeededGenerator) -> String {
        (0..<Int.random(in: 0..<3, using: &generator)).map { _ in
            generator.pick([
                "{", "{{", "}", "}}", "\\", "a", "{{input}}", "{input}}", "\\{{", "{{=", "\\{{item}}", "\u{301}",
            ])
        }.joined()
    }

    @Test func values_areNeverExpandedAgain_whateverIsInThem() throws {
        var generator = SeededGenerator(seed: 8)
        for _ in 0..<20_000 {
            let (item, input) = (value(using: &generator), value(using: &generator))
            let example = example([("item", item), ("input", input)], using: &generator)
            guard example.expected != item, example.expected != input else { continue }

            // In a link of an `each` child: the item first, the rest when the link runs.
            let job: JSON = ["source": ["type": "error"], "then": [["then": ["return": .string(example.written)]]]]
            let child = try TemplateExpansion([.item: .string(item), .index: 0]).child(job)
            let spec = try JobSpecReader.child(child, at: JSONPointer(), depth: 1, limits: JobLimits())
            let written = try #require(spec.json["then"]?[0]?["then"]?["return"])
            let result = try TemplateExpansion([.input: .string(input), .error: nil, .job: [:]]).value(written)
            guard result == .string(example.expected) else {
                Issue.record("\(example.written) with item \(item) and input \(input): \(written) became \(result)")
                return
            }

            // In the source of an `each` child within a link: the input first.
            let source: JSON = [
                "type": "each", "in": [0], "job": ["source": ["type": "value", "value": .string(example.written)]],
            ]
            let expanded = try TemplateExpansion([.input: .string(input), .error: nil, .job: [:]]).source(source)
            let inner = try TemplateExpansion([.item: .string(item), .index: 0]).child(try #require(expanded["job"]))
            guard inner["source"]?["value"] == .string(example.expected) else {
                Issue.record("\(example.written) with item \(item) and input \(input): \(expanded) became \(inner)")
                return
            }
        }
    }

    @Test(arguments: ["{{input}}", "\\{{input}}", "{{", "x\\", "{", "{{input", "}}"])
    func item_comesThrough_unchanged(_ text: String) throws {
        let job = try json(
            #"""
            {"source":{"type":"value","value":["{{item}}",{"a":"<{{item}}>"}]},
             "then":[{"then":{"return":["{{item}}","<{{item}}>","{{input}}{{item}}{{input}}"]}},
                     {"then":{"source":{"type":"list","jobs":[{"source":{"type":"value","value":"{{item}}"},
                                                             "then":[{"then":{"return":"{{item}}{{input}}"}}]}]}}}]}
            """#)
        let child = try TemplateExpansion([.item: .string(text), .index: 0]).child(job)
        #expect(child["source"]?["value"] == [.string(text), ["a": .string("<\(text)>")]])
        let link = try #require(child["then"]?[0]?["then"]?["return"])
        #expect(
            try TemplateExpansion([.input: "I"]).value(link)
                == [.string(text), .string("<\(text)>"), .string("I\(text)I")])
        let list = try TemplateExpansion([.input: "J"]).source(try #require(child["then"]?[1]?["then"]?["source"]))
        #expect(list["jobs"]?[0]?["source"]?["value"] == .string(text))
        let innermost = try #require(list["jobs"]?[0]?["then"]?[0]?["then"]?["return"])
        #expect(try TemplateExpansion([.input: "K"]).value(innermost) == .string("\(text)K"))
    }
}
