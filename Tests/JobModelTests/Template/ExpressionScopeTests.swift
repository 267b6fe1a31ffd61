import JobModel
import Testing

/// Which names expressions can use where.
@Suite struct ExpressionScopeTests {
    private static let json = #"{"source":{"type":"json","url":"u"}}"#

    private func fault(inLinks links: String) throws -> SpecError? {
        try fault(in: #"{"source":{"type":"json","url":"u"},"then":[\#(links)]}"#)
    }

    private func fault(in text: String) throws -> SpecError? { try JobModelTests.fault(in: text) }

    @Test(arguments: [
        ("then", "input", true), ("then", "error", false), ("then", "item", false), ("then", "index", false),
        ("then", "job", true), ("fail", "input", false), ("fail", "error", true), ("fail", "item", false),
        ("fail", "job", true), ("both", "input", true), ("both", "error", true), ("both", "index", false),
        ("both", "job", true), ("finally", "input", true), ("finally", "error", true), ("finally", "item", false),
        ("finally", "job", true), ("then", "nothing", false), ("then", "", false), ("then", "Input", false),
        ("then", " input", false), ("then", "input ", false), ("then", "inputs", false), ("then", "=", false),
        ("then", "=x", false), ("then", "={", false), ("then", "=\\\\", false),
    ])
    func name_isKnown_onlyWhereItCanExist(_ branch: String, _ name: String, _ isKnown: Bool) throws {
        for (text, inside) in [
            (#"{"return":"{{\#(name)}}"}"#, "return"), (#"{"return":["x",{"a":"x {{\#(name)}} y"}]}"#, "return/1/a"),
            (#"{"throw":{"message":"{{\#(name)}}"}}"#, "throw/message"),
            (#"{"source":{"type":"value","value":{"a":"{{\#(name)}}"}}}"#, "source/value/a"),
            (#"{"source":{"type":"url","url":"https://h/{{\#(name)}}","headers":{"A":"b"}}}"#, "source/url"),
            (#"{"source":{"type":"url","url":"u","headers":{"A":"{{\#(name)}}"}}}"#, "source/headers/A"),
        ] {
            let fault = try fault(inLinks: #"{"then":{"return":1}},{"\#(branch)":\#(text)}"#)
            #expect((fault == nil) == isKnown, "\(branch) \(text)")
            if let fault { #expect(fault.pointer.description == "/then/1/\(branch)/\(inside)") }
        }
    }

    @Test(arguments: [
        "{{", "a{{", "{{input", "a{{input}", "{{}}", "{{ input }}", "{{input.x}}", "{{input/~}}", "{{input/~2}}",
        "{{/a}}",
        "{{{{input}}}}", "{{{input}}}", "{{{input}}", "{{input}}{{",
    ])
    func expression_isRefused_whereItIsMalformed(_ text: String) throws {
        // It is nothing that a reader may take literally.
        #expect(TemplateText.hasExpression(text))
        #expect(
            try fault(inLinks: #"{"then":{"return":{"a":"\#(text)"}}}"#)?.pointer.description == "/then/0/then/return/a"
        )
    }

    @Test(arguments: [#"\\{{"#, #"\\{{nothing}}"#, "}}", "{", "{ {input}}", "{input}", #"x\\{{\\{{y"#])
    func text_isNoExpression_whereNothingOpensOne(_ text: String) throws {
        #expect(try fault(inLinks: #"{"then":{"return":"\#(text)"}}"#) == nil)
    }

    @Test func strings_areLiteral_outsideLinks() throws {
        for member in ["{{input}}", "{{nothing", "{{"] {
            #expect(
                try fault(
                    in: #"{"source":{"type":"value","value":"\#(member)"},"label":"\#(member)","key":"\#(member)"}"#)
                    == nil)
            let child = #"{"source":{"type":"value","value":"\#(member)"},"label":"\#(member)"}"#
            #expect(try fault(in: #"{"source":{"type":"list","jobs":[\#(child)]}}"#) == nil)
        }
    }

    // MARK: - Children

    /// An `each` whose child has this source and these links.
    private func each(value: String, links: String = "", in items: String = "[1]") -> String {
        #"{"type":"each","in":\#(items),"job":{"source":{"type":"value","value":"\#(value)"},"then":[\#(links)]}}"#
    }

    @Test(
        arguments: [
            // The child's source, then a link of the child's.
            ("{{item}}{{index}}", "", nil), ("{{input}}", "", "source/value"), ("{{error}}", "", "source/value"),
            ("{{job/id}}", "", "source/value"), ("", "{{input}}{{item}}{{index}}{{job/id}}", nil),
            ("", "{{error}}", "then/0/then/return"),
        ] as [(String, String, String?)])
    func child_ofASourceThatIsAnEach_knowsItemAndIndex(_ value: String, _ link: String, _ pointer: String?) throws {
        let source = each(value: value, links: #"{"then":{"return":"\#(link)"}}"#)
        #expect(try fault(in: #"{"source":\#(source)}"#)?.pointer.description == pointer.map { "/source/job/" + $0 })
    }

    @Test(
        arguments: [
            ("then", "{{item}}{{index}}{{input}}{{job/id}}", "", nil), ("then", "{{error}}", "", "source/value"),
            ("fail", "{{item}}{{error}}", "", nil), ("fail", "{{input}}", "", "source/value"),
            ("finally", "{{input}}{{error}}{{item}}", "", nil),
            // In the child's link `error` is the child's, and its link is a `then`.
            ("fail", "", "{{input}}{{item}}", nil), ("fail", "", "{{error}}", "then/0/then/return"),
        ] as [(String, String, String, String?)])
    func child_ofALinkThatIsAnEach_knowsTheLinksNamesToo(
        _ branch: String, _ value: String, _ link: String, _ pointer: String?
    ) throws {
        let source = each(value: value, links: #"{"then":{"return":"\#(link)"}}"#, in: "[]")
        let links = #"{"then":\#(Self.json)},{"\#(branch)":{"source":\#(source)}}"#
        #expect(try fault(inLinks: links)?.pointer.description == pointer.map { "/then/1/\(branch)/source/job/" + $0 })
    }

    @Test func items_areOutsideTheEach() throws {
        #expect(
            try fault(
                inLinks: #"{"then":{"source":{"type":"each","in":"{{item}}","job":{"source":{"type":"error"}}}}}"#)?
                .pointer.description == "/then/0/then/source/in")
        #expect(
            try fault(inLinks: #"{"then":{"source":\#(each(value: ""))}},{"then":{"return":"{{item}}"}}"#)?
                .pointer.description == "/then/1/then/return")
    }

    @Test func childrenOfAList_knowTheLinksNames_butTheirLinksDoNot() throws {
        func list(_ value: String, _ link: String) -> String {
            #"{"fail":{"source":{"type":"list","jobs":[{"source":{"type":"value","value":"\#(value)"},"#
                + #""label":"{{error/kind}}","then":[{"then":{"return":"\#(link)"}}]}]}}}"#
        }
        #expect(try fault(inLinks: list("{{error}}", "{{input}}")) == nil)
        #expect(
            try fault(inLinks: list("{{item}}", ""))?.pointer.description == "/then/0/fail/source/jobs/0/source/value")
        #expect(
            try fault(inLinks: list("", "{{error}}"))?.pointer.description
                == "/then/0/fail/source/jobs/0/then/0/then/return")
    }

    @Test func innerEach_seesTheOuterItem_onlyInItsItems() throws {
        let inner = each(value: "{{item}}", in: #""{{item/parts}}""#)
        #expect(try fault(in: #"{"source":{"type":"each","in":[],"job":{"source":\#(inner)}}}"#) == nil)
        // In a link of the outer child as well.
        let linked =
            #"{"type":"each","in":[],"job":{"source":{"type":"error"},"then":[{"fail":{"source":\#(inner)}}]}}"#
        #expect(try fault(in: #"{"source":\#(linked)}"#) == nil)
    }

    @Test func faultInAChild_isFound_howeverDeepItStands() throws {
        let deep =
            #"{"type":"each","in":[],"job":{"source":{"type":"list","jobs":[{"source":{"type":"error"},"#
            + #""then":[{"finally":{"source":{"type":"url","url":"{{items}}"}}}]}]}}}"#
        #expect(
            try fault(in: #"{"source":\#(deep)}"#)?.pointer.description
                == "/source/job/source/jobs/0/then/0/finally/source/url")
        #expect(
            try fault(in: #"{"source":{"type":"each","in":[],"job":{"source":{"type":"error"},"label":"{{input}}"}}}"#)?
                .pointer.description == "/source/job/label")
        #expect(
            try fault(in: #"{"source":{"type":"each","in":[],"mode":"{{item}}","job":{"source":{"type":"error"}}}}"#)?
                .pointer.description == "/source/mode")
    }
}
