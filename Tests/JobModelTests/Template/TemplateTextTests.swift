import JobModel
import TestSupport
import Testing

@Suite struct TemplateTextTests {
    private func pointer(_ text: String) throws -> JSONPointer { try #require(JSONPointer(text: text)) }

    @Test(arguments: ["", "plain", "{", "}", "}}", "{x}", "{ {", "a\\", "\\{", "100 % {of} it}}"])
    func text_isOnePiece_whereNothingOpensAnExpression(_ text: String) throws {
        #expect(try TemplateText(text).segments == [.text(text)])
        #expect(!TemplateText.hasExpression(text))
    }

    @Test(arguments: [
        ("\\{{", "{{"), ("a\\{{input}}", "a{{input}}"), ("\\\\{{", "\\{{"), ("\\{{{", "{{{"), ("\\{{\\{{", "{{{{"),
        ("\\{{x\\{{y", "{{x{{y"),
    ])
    func escape_standsForBraces(_ text: String, _ plain: String) throws {
        #expect(try TemplateText(text).segments == [.text(plain)])
        #expect(!TemplateText.hasExpression(text))
    }

    @Test func expressions_areTakenApart_withTheirPointers() throws {
        #expect(
            try TemplateText("{{input}}").segments == [.expression(.input, JSONPointer(), source: "input")])
        #expect(
            try TemplateText("a{{item/b~1c/0}}{{index}} {{job/id}}z").segments == [
                .text("a"), .expression(.item, pointer("/b~1c/0"), source: "item/b~1c/0"),
                .expression(.index, JSONPointer(), source: "index"), .text(" "),
                .expression(.job, pointer("/id"), source: "job/id"), .text("z"),
            ])
        #expect(
            try TemplateText("{{error/}}}").segments == [
                .expression(.error, pointer("/"), source: "error/"), .text("}"),
            ])
        #expect(
            try TemplateText("{{input}}\\{{error}}").segments == [
                .expression(.input, JSONPointer(), source: "input"), .text("{{error}}"),
            ])
        #expect(TemplateText.hasExpression("a{{input}}") && TemplateText.hasExpression("\\{{ {{index}}"))
    }

    @Test func expressions_areFound_besideCombiningCharacters() throws {
        // Swift joins an accent to the brace, slash or backslash before it, and a prefix to the backslash behind it.
        #expect(
            try TemplateText("{{input}}\u{301}").segments.map(String.init(describing:))
                == [
                    TemplateText.Segment.expression(.input, JSONPointer(), source: "input"), .text("\u{301}"),
                ].map(String.init(describing:)))
        guard case .expression(.input, let pointer, _)? = try TemplateText("{{input/\u{301}a}}").segments.first else {
            Issue.record("no expression")
            return
        }
        #expect(pointer.tokens.map { Array($0.unicodeScalars) } == [["\u{301}", "a"]])
        guard case .text(let text)? = try TemplateText("\u{600}\\{{").segments.first else {
            Issue.record("no text")
            return
        }
        #expect(Array(text.unicodeScalars) == ["\u{600}", "{", "{"])
    }

    @Test func escaped_standsForTheSameText() throws {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<20_000 {
            let text = (0..<Int.random(in: 0..<9, using: &generator))
                .map { _ in generator.pick(["{", "{", "}", "\\", "a", "{{input}}", "\u{301}"]) }.joined()
            let segments = try TemplateText(TemplateText.escaped(text)).segments
            let plain = segments.map { segment in
                if case .text(let plain) = segment { plain } else { "an expression!" }
            }
            #expect(Array(plain.joined().utf8) == Array(text.utf8))
        }
    }

    @Test func escaped_reachesEveryString() {
        let value: JSON = ["a": ["{{input}}", 1, nil, true, ["b": "x{{"]], "{{c}}": "y"]
        #expect(
            TemplateText.escaped(value) == ["a": ["\\{{input}}", 1, nil, true, ["b": "x\\{{"]], "{{c}}": "y"])
    }
}
