import JobModel
import Testing

/// The forms that links and steps have.
@Suite struct LinkFormTests {
    private func fault(inLinks links: String) throws -> SpecError? {
        try fault(in: #"{"source":{"type":"error"},"then":[\#(links)]}"#)
    }

    private func fault(in text: String) throws -> SpecError? { try JobModelTests.fault(in: text) }

    @Test(arguments: [
        #"{"then":{"return":1}}"#, #"{"fail":{"return":null}}"#, #"{"then":{"return":1},"fail":{"return":2}}"#,
        #"{"both":{"return":[]}}"#, #"{"finally":{"return":{}}}"#, #"{"fail":{"return":1},"on":["http","my-kind"]}"#,
        #"{"then":{"return":1},"fail":{"return":1},"on":[]}"#, #"{"then":{"source":{"type":"error"}}}"#,
        #"{"then":{"source":{"type":"error"},"timeout":1,"retry":{"max":0}}}"#,
        #"{"then":{"throw":{"message":"x"}}}"#, #"{"then":{"throw":{"kind":"a-b","message":"x"}}}"#,
        #"{"then":{"throw":{"kind":"{{input}}","message":"{{input}}"}}}"#,
        #"{"then":{"return":1},"fail":null,"on":null,"both":null}"#,
        #"{"then":{"return":1,"timeout":null,"retry":null}}"#, #"{"then":{"return":null,"source":null,"throw":null}}"#,
    ])
    func link_isAccepted(_ link: String) throws {
        #expect(try fault(inLinks: link) == nil)
    }

    @Test(arguments: [
        // Links.
        ("1", ""), ("[]", ""), (#""then""#, ""), ("null", ""), ("{}", ""), (#"{"then":null}"#, ""),
        (#"{"on":["http"]}"#, "/on"), (#"{"then":{"return":1},"on":["http"]}"#, "/on"),
        (#"{"both":{"return":1},"on":["http"]}"#, "/on"), (#"{"fail":{"return":1},"on":"http"}"#, "/on"),
        (#"{"fail":{"return":1},"on":["http",1]}"#, "/on/1"), (#"{"fail":{"return":1},"on":["Bad Kind"]}"#, "/on/0"),
        (#"{"fail":{"return":1},"on":[""]}"#, "/on/0"), (#"{"fail":{"return":1},"on":["{{error/kind}}"]}"#, "/on/0"),
        (#"{"then":{"return":1},"both":{"return":1}}"#, ""), (#"{"fail":{"return":1},"finally":{"return":1}}"#, ""),
        (#"{"both":{"return":1},"finally":{"return":1}}"#, ""),
        (#"{"then":{"return":1},"fail":{"return":1},"both":{"return":1}}"#, ""),
        (#"{"then":{"return":1},"catch":{"return":1}}"#, "/catch"), (#"{"then":{"return":1},"timeout":1}"#, "/timeout"),
        // Steps.
        (#"{"then":1}"#, "/then"), (#"{"then":[]}"#, "/then"), (#"{"then":"{{input}}"}"#, "/then"),
        (#"{"then":{}}"#, "/then"), (#"{"then":{"timeout":1}}"#, "/then"),
        (#"{"then":{"return":1,"source":{"type":"error"}}}"#, "/then"),
        (#"{"then":{"return":1,"throw":{"message":"x"}}}"#, "/then"), (#"{"then":{"return":1,"x":1}}"#, "/then/x"),
        (#"{"then":{"return":1,"on":[]}}"#, "/then/on"), (#"{"fail":{"return":1,"timeout":0}}"#, "/fail/timeout"),
        (#"{"fail":{"return":1,"timeout":"1"}}"#, "/fail/timeout"),
        (#"{"both":{"return":1,"timeout":"{{input}}"}}"#, "/both/timeout"),
        (#"{"finally":{"return":1,"retry":{"max":-1}}}"#, "/finally/retry/max"),
        (#"{"then":{"return":1,"retry":{"maximum":1}}}"#, "/then/retry/maximum"),
        // What they run.
        (#"{"then":{"source":null}}"#, "/then"), (#"{"then":{"source":"{{input}}"}}"#, "/then/source"),
        (#"{"then":{"source":{}}}"#, "/then/source/type"), (#"{"then":{"source":{"type":"url"}}}"#, "/then/source/url"),
        (#"{"then":{"source":{"type":"{{input}}","url":"u"}}}"#, "/then/source/type"),
        (#"{"fail":{"source":{"type":"timer","seconds":-1}}}"#, "/fail/source/seconds"),
        (#"{"then":{"source":{"type":"list","jobs":["{{input}}"]}}}"#, "/then/source/jobs/0"),
        (#"{"then":{"throw":"x"}}"#, "/then/throw"), (#"{"then":{"throw":{}}}"#, "/then/throw/message"),
        (#"{"then":{"throw":{"message":""}}}"#, "/then/throw/message"),
        (#"{"then":{"throw":{"message":5}}}"#, "/then/throw/message"),
        (#"{"then":{"throw":{"kind":"Not Well","message":"x"}}}"#, "/then/throw/kind"),
        (#"{"then":{"throw":{"kind":5,"message":"x"}}}"#, "/then/throw/kind"),
        (#"{"then":{"throw":{"message":"x","code":1}}}"#, "/then/throw/code"),
    ])
    func link_isRefused_withThePointerOfTheMember(_ link: String, _ pointer: String) throws {
        let fault = try #require(try fault(inLinks: #"{"then":{"return":1}},\#(link)"#))
        #expect(fault.pointer.description == "/then/1" + pointer)
        #expect(fault.reason.hasSuffix("."))
    }

    /// Every member whose type an expression can give.
    @Test(arguments: [
        #"{"type":"url","url":"{{input}}","method":"{{input}}","headers":{"A":"{{input}}"},"body":"{{input}}","#
            + #""ifNoneMatch":"{{input}}","ifModifiedSince":"{{input}}","accept":"{{input}}"}"#,
        #"{"type":"url","url":"u","headers":"{{input}}","bodyBase64":"{{input}}"}"#,
        #"{"type":"json","url":"u","select":"{{input}}"}"#,
        #"{"type":"download","url":"{{input}}","path":"{{input}}","exists":"{{input}}","checksum":"{{input}}","#
            + #""mirrors":"{{input}}","rate":"{{input}}"}"#,
        #"{"type":"download","url":"u","path":"p","checksum":"sha256:{{input}}","mirrors":["{{input}}"]}"#,
        #"{"type":"list","jobs":"{{input}}","mode":"{{input}}","concurrency":"{{input}}"}"#,
        #"{"type":"each","in":"{{input}}","job":{"source":{"type":"value","value":"{{item}}"},"queue":"{{item}}","#
            + #""priority":"{{item}}","delay":"{{item}}","timeout":"{{item}}","deadline":"{{item}}","retry":"{{item}}","#
            + #""key":"{{item}}","tags":"{{item}}","label":"{{item}}"}}"#,
        #"{"type":"each","in":"{{input}}","job":{"source":{"type":"error"},"notBefore":"{{item}}","#
            + #""retry":{"max":"{{item}}","initial":"{{item}}","factor":"{{item}}","maxDelay":"{{item}}","jitter":"{{item}}"},"#
            + #""tags":["{{item}}","x{{item/a/very/long/pointer/that/is/longer/than/any/tag/would/be/allowed/to/be/as/it/"#
            + #"goes/on/and/on/and/on/for/more/than/128/bytes}}"]}}"#,
        #"{"type":"value","value":["{{input}}",{"a":"{{input/b}}"}]}"#,
        #"{"type":"error","kind":"{{input}}","message":"{{input}}"}"#, #"{"type":"timer","seconds":"{{input}}"}"#,
        #"{"type":"timer","seconds":"1{{input}}"}"#,
    ])
    func expression_fits_inThePlaceOfEveryType(_ source: String) throws {
        #expect(
            try fault(inLinks: #"{"then":{"source":{"type":"json","url":"u"}}},{"then":{"source":\#(source)}}"#) == nil)
    }

    @Test func delayAndNotBefore_excludeEachOther_whereExpressionsGiveThem() throws {
        let job = #"{"source":{"type":"error"},"delay":"{{item}}","notBefore":"{{item}}"}"#
        #expect(
            try fault(in: #"{"source":{"type":"each","in":[],"job":\#(job)}}"#)?.pointer.description
                == "/source/job/notBefore")
    }

    @Test func literalString_fitsNoOtherType_inALink() throws {
        #expect(
            try fault(inLinks: #"{"then":{"source":{"type":"timer","seconds":"\\{{input}}"}}}"#)?.pointer.description
                == "/then/0/then/source/seconds")
    }
}
