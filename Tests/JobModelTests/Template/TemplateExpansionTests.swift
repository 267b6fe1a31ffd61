import Testing

@testable import JobModel

@Suite struct TemplateExpansionTests {
    private let input: JSON = [
        "text": "a b/\u{E4}?", "number": 12.50, "whole": 7, "yes": true, "no": false, "none": nil, "list": [1, [2]],
        "object": ["x": "y"], "": "empty", "a/b": "slash", "m~n": "tilde", "braces": "{{input/text}}",
    ]

    private func expand(_ text: String, _ values: [TemplateText.Name: JSON]? = nil) throws -> JSON {
        try TemplateExpansion(values ?? [.input: input]).value(.string(text))
    }

    private func message(of text: String, _ values: [TemplateText.Name: JSON]? = nil) -> String? {
        let error = #expect(throws: JobError.self) { try expand(text, values) }
        #expect(error?.kind == .template && error?.isRetryable == false)
        return error?.message
    }

    // MARK: - Values

    @Test(arguments: ["text", "number", "whole", "yes", "no", "none", "list", "object", "list/1", "list/0", "object/x"])
    func expression_keepsTheTypeOfItsValue_whereItIsTheWholeString(_ pointer: String) throws {
        let pointer = try #require(JSONPointer(text: "/" + pointer))
        let value = try #require(input[pointer])
        #expect(try expand("{{input\(pointer)}}") == value)
    }

    @Test func expression_givesTheWhole_whereItHasNoPointer() throws {
        #expect(try expand("{{input}}") == input)
    }

    @Test(arguments: [
        ("<{{input/text}}>", "<a b/\u{E4}?>"), ("{{input/number}} s", "12.5 s"), ("n{{input/whole}}", "n7"),
        ("{{input/yes}}/{{input/no}}", "true/false"), ("{{input/none}}.", "null."),
        ("{{input/}}{{input/a~1b}}", "emptyslash"),
        ("{{input/m~0n}}\\{{", "tilde{{"), ("{{input/list/0}}{{input/list/1/0}}", "12"),
        (" {{input/braces}}", " {{input/text}}"), ("\\{{input/text}}", "{{input/text}}"), ("plain", "plain"),
        ("{{input/text}}}}", "a b/\u{E4}?}}"),
    ])
    func expression_isText_inALongerString(_ text: String, _ expanded: String) throws {
        #expect(try expand(text) == .string(expanded))
    }

    @Test func number_isWritten_asItCame() throws {
        for text in ["1.0", "1e2", "123456789012345678901234567890", "-0", "0.10"] {
            let value: [TemplateText.Name: JSON] = [.input: .number(JSONNumber(unchecked: text))]
            #expect(try expand("{{input}}", value).description == text)
            #expect(try expand("x{{input}}", value) == .string("x" + text))
        }
    }

    @Test(arguments: ["x{{input/list}}", "{{input/object}} ", "{{input/text}}{{input/list/1}}", "{{input}}."])
    func expansion_fails_whereAnArrayOrObjectStandsInALongerString(_ text: String) {
        #expect(message(of: text)?.contains("{{input") == true)
    }

    @Test(arguments: [
        "{{input/nothing}}", "x{{input/list/2}}", "{{input/text/0}}", "{{input/none/x}}", "{{input/list/-}}",
        "{{input/list/01}}",
    ])
    func expansion_fails_whereThePointerFindsNothing(_ text: String) {
        #expect(message(of: text)?.contains(text.drop { $0 != "{" }) == true)
    }

    @Test(arguments: ["body", "output"]) func expansion_saysSo_whereAPartWasTooLarge(_ part: String) {
        let message = message(of: "{{input/a/\(part)}}", [.input: ["a": ["spilled": true]]])
        #expect(message?.contains("finds no \(part), which is too large") == true)
    }

    @Test func expansion_reachesEveryString_andLeavesNames() throws {
        let template: JSON = ["{{input}}": ["{{input/whole}}", ["a": "x{{input/whole}}"], 1, nil, true]]
        #expect(
            try TemplateExpansion([.input: input]).value(template) == ["{{input}}": [7, ["a": "x7"], 1, nil, true]])
    }

    @Test func expansion_givesNull_forTheOneThatDoesNotApply() throws {
        #expect(try expand("{{error}}", [.input: 1, .error: nil]) == .null)
        #expect(try expand("[{{error}}]", [.input: 1, .error: nil]) == "[null]")
        #expect(message(of: "{{error/kind}}", [.input: 1, .error: nil]) != nil)
    }

    @Test func member_isTheLastOfItsBytes_whereManyAreAskedFor() throws {
        var members = (0..<100).map { JSONObject.Member(name: "n\($0)", value: 0) }
        for (name, value) in [("\u{E9}", 1), ("e\u{301}", 2), ("n7", 3), ("n7", 4)] as [(String, JSON)] {
            members.append(JSONObject.Member(name: name, value: value))
        }
        let input: JSON = ["a": [.object(JSONObject(members))]]
        for text in ["\u{E9}", "e\u{301}", "n7", "n8"] {
            let template = JSON.array(Array(repeating: .string("{{input/a/0/\(text)}}"), count: 20))
            let found = try TemplateExpansion([.input: input]).value(template)
            #expect(found.array?.count == 20 && Set(found.array ?? []) == [input["a"]?[0]?[text]])
        }
        let missing = JSON.array(Array(repeating: "{{input/a/0/n7}}", count: 20) + ["{{input/a/0/n200}}"])
        #expect(throws: JobError.self) { try TemplateExpansion([.input: input]).value(missing) }
    }

    // MARK: - URLs

    @Test func text_isPercentEncoded_inURLs() throws {
        let source: JSON = [
            "type": "download", "url": "https://h/{{input/text}}?n={{input/number}}&b={{input/yes}}&z={{input/none}}",
            "mirrors": ["https://m/{{input/text}}", "{{input/text}}"], "path": "{{input/text}} x",
            "headers": ["X": "<{{input/text}}>"],
        ]
        #expect(
            try TemplateExpansion([.input: input]).source(source) == [
                "type": "download", "url": "https://h/a%20b%2F%C3%A4%3F?n=12.5&b=true&z=null",
                "mirrors": ["https://m/a%20b%2F%C3%A4%3F", "a b/\u{E4}?"], "path": "a b/\u{E4}? x",
                "headers": ["X": "<a b/\u{E4}?>"],
            ])
    }

    @Test func url_isTakenAsItIs_whereItIsOneExpression() throws {
        let source = try TemplateExpansion([.input: "https://h/a b?c"]).source(["type": "url", "url": "{{input}}"])
        #expect(source["url"] == "https://h/a b?c")
    }

    @Test func url_isOnlyThatOfTheSource() throws {
        let source: JSON = ["type": "value", "value": ["url": "x {{input/text}}"]]
        #expect(try TemplateExpansion([.input: input]).source(source)["value"]?["url"] == "x a b/\u{E4}?")
    }

    @Test func url_cannotBeLed_toAnotherHost() throws {
        for value in ["evil.example", "@evil.example/", "/../", "?", "#", "\\", "%2e%2e", "\r\nHost: x"] {
            let url = try TemplateExpansion([.input: .string(value)])
                .source(["type": "url", "url": "https://h/{{input}}/x"])["url"]?.string
            let inside = try #require(url?.dropFirst("https://h/".count).dropLast("/x".count))
            #expect(inside.utf8.allSatisfy { !"/?#@\\\r\n: ".utf8.contains($0) })
        }
    }

    // MARK: - Bounds

    @Test func expansion_fails_whereItWouldGrowWithoutEnd() throws {
        let part = String(repeating: "x", count: 1 << 20)
        let template = JSON.array(Array(repeating: "{{input}}", count: 65))
        let error = #expect(throws: JobError.self) {
            try TemplateExpansion([.input: .string(part)]).value(template)
        }
        #expect(error?.kind == .tooLarge)
        let text = JSON.string(String(repeating: "{{input}}", count: 65))
        #expect(throws: JobError.self) { try TemplateExpansion([.input: .string(part)]).value(text) }
        #expect(throws: Never.self) {
            try TemplateExpansion([.input: .string(part)]).value(.array(Array(repeating: "{{input}}", count: 63)))
        }
    }

    @Test func expansion_fails_whereAValueThatIsSharedWouldBeLargeOnceReadAgain() throws {
        let part = JSON.array(Array(repeating: ["": 0], count: 20_000))
        let template = JSON.array(Array(repeating: "{{input}}", count: 440))
        let error = #expect(throws: JobError.self) { try TemplateExpansion([.input: part]).value(template) }
        #expect(error?.kind == .tooLarge)
        let child: JSON = ["source": ["type": "value", "value": template]]
        #expect(throws: JobError.self) { try TemplateExpansion([.input: part]).child(child) }
        let few = JSON.array(Array(repeating: "{{input}}", count: 4))
        #expect(try TemplateExpansion([.input: part]).value(few).parsedCost <= JobLimits().composedValues)
    }

    @Test func expansion_fails_whereLinksNestAResultDeeperAndDeeper() {
        var value: JSON = "x"
        var depth = 0
        let error = #expect(throws: JobError.self) {
            while depth < 10_000 {
                value = try TemplateExpansion([.input: value]).value(["{{input}}"])
                depth += 1
            }
        }
        #expect(error?.kind == .tooLarge)
        #expect(depth >= 64, "what a client may write can be wrapped")
    }

    @Test func budget_countsTheTemplateAndWhatIsFilledIn() throws {
        let template: JSON = .array([.string("{{input}}"), .string(String(repeating: "x", count: 1000))])
        let input: JSON = .string(String(repeating: "y", count: 500))
        #expect(throws: JobError.self) { try TemplateExpansion([.input: input], budget: 1000).value(template) }
        let filled = try TemplateExpansion([.input: input], budget: 3000).value(template)
        #expect(filled[0] == input)
    }
}
