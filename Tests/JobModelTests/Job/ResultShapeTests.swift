import JobModel
import Testing

/// Pointers that can never find anything are refused before anything runs.
@Suite struct ResultShapeTests {
    private func isAccepted(_ source: String, _ expression: String, links: String = "") throws -> Bool {
        let last = #"{"then":{"return":"{{\#(expression)}}"}}"#
        let fault = try fault(in: #"{"source":\#(source),"then":[\#(links.isEmpty ? "" : links + ",")\#(last)]}"#)
        if let fault { #expect(fault.pointer.tokens.suffix(2) == ["then", "return"], "\(fault)") }
        return fault == nil
    }

    @Test(arguments: [
        (
            #"{"type":"url","url":"u"}"#,
            ["", "/status", "/headers/etag", "/mediaType", "/size", "/notModified", "/body", "/encoding", "/spilled"],
            ["/stat", "/0", "/Body", "/"]
        ),
        (
            #"{"type":"download","url":"u","path":"p"}"#,
            ["/path", "/size", "/status", "/etag", "/lastModified", "/sha256", "/resumedFrom", "/attempts", "/url"],
            ["/body", "/file"]
        ),
        (#"{"type":"json","url":"u"}"#, ["", "/a/0/b", "/"], []),
        (
            #"{"type":"program","program":"p"}"#,
            ["", "/exit", "/output", "/output/a/0", "/encoding", "/size", "/omitted", "/spilled"],
            ["/stdout", "/0"]
        ),
        (#"{"type":"error"}"#, ["/anything"], []),
        (#"{"type":"job","job":1}"#, ["", "/a"], []),
        (#"{"type":"timer","seconds":0}"#, [""], ["/a", "/0"]),
        (
            #"{"type":"value","value":{"a":[1,{"b":null}]}}"#, ["", "/a", "/a/0", "/a/1/b"], ["/b"]
        ),
        (#"{"type":"value","value":{"a":"\\x"}}"#, ["/a"], ["/anything"]),
        (#"{"type":"value","value":[1]}"#, ["/0"], ["/a"]),
        (
            #"{"type":"list","jobs":[]}"#, ["", "/0", "/12/ok", "/0/value/x", "/0/error/kind"],
            ["/x", "/01", "/-1", "/0/result"]
        ),
        (#"{"type":"list","jobs":[],"mode":"settled"}"#, ["/0/ok"], ["/0/x"]),
        (#"{"type":"list","jobs":[],"mode":null}"#, ["/0/ok"], ["/0/x"]),
        (#"{"type":"list","jobs":[],"mode":"all"}"#, ["/0", "/0/anything"], ["/value"]),
        (#"{"type":"list","jobs":[],"mode":"first"}"#, ["/index", "/value/x"], ["/0", "/ok"]),
        (#"{"type":"each","in":[],"job":{"source":{"type":"error"}},"mode":"first"}"#, ["/index"], ["/0"]),
    ])
    func pointer_isRefused_whereTheSourceNeverGivesIt(
        _ source: String, _ known: [String], _ unknown: [String]
    ) throws {
        for pointer in known { #expect(try isAccepted(source, "input" + pointer), "\(pointer)") }
        for pointer in unknown { #expect(try !isAccepted(source, "input" + pointer), "\(pointer)") }
        // The same behind links that pass a success on, or do not run.
        for links in [
            #"{"finally":{"return":1}}"#, #"{"fail":{"source":\#(source)}}"#, #"{"both":{"source":\#(source)}}"#,
            #"{"then":{"source":\#(source)}}"#, #"{"then":{"source":\#(source)},"fail":{"source":\#(source)}}"#,
        ] {
            for pointer in unknown {
                #expect(try !isAccepted(source, "input" + pointer, links: links), "\(links) \(pointer)")
            }
        }
    }

    @Test(arguments: [
        #"{"then":{"source":{"type":"json","url":"u"}}}"#, #"{"fail":{"return":{"x":1}}}"#,
        #"{"then":{"return":"{{input/status}}"}}"#, #"{"both":{"return":{"x":"{{job/id}}"}}}"#,
        #"{"then":{"return":{"x":1}},"fail":{"return":{"x":2}}}"#, #"{"both":{"throw":{"message":"x"}}}"#,
        #"{"then":{"source":{"type":"list","jobs":[],"mode":"{{job/label}}"}}}"#,
        #"{"fail":{"source":{"type":"value","value":1}},"on":["http"]}"#,
    ])
    func pointer_isAccepted_whereTheResultIsNotKnown(_ links: String) throws {
        #expect(try isAccepted(#"{"type":"url","url":"u"}"#, "input/x", links: links))
    }

    @Test func literal_isKnown_whateverCameBefore() throws {
        let links = #"{"both":{"return":{"a":1}}}"#
        #expect(try isAccepted(#"{"type":"json","url":"u"}"#, "input/a", links: links))
        #expect(try !isAccepted(#"{"type":"json","url":"u"}"#, "input/b", links: links))
    }

    @Test(arguments: [
        ("fail", "error", true), ("fail", "error/kind", true), ("fail", "error/http/status", true),
        ("fail", "error/failures/0/kind", true), ("fail", "error/cause/job", true), ("fail", "error/index", true),
        ("fail", "error/status", false), ("fail", "error/0", false), ("fail", "error/retryAfter", false),
        ("both", "error/status", true), ("finally", "error/status", true), ("finally", "input/status", true),
        ("then", "job/id", true), ("then", "job/attempt", true), ("then", "job/label", true), ("then", "job", true),
        ("then", "job/key", false), ("then", "job/0", false),
    ])
    func pointer_intoErrorOrJob_isOneOfItsMembers(_ branch: String, _ expression: String, _ isAccepted: Bool) throws {
        let links = #"{"then":{"return":1}},{"\#(branch)":{"return":"x {{\#(expression)}}"}}"#
        #expect(try (fault(in: #"{"source":{"type":"error"},"then":[\#(links)]}"#) == nil) == isAccepted)
    }

    @Test func pointer_intoIndex_isRefused() throws {
        func each(_ expression: String) -> String {
            #"{"source":{"type":"each","in":[],"job":{"source":{"type":"value","value":"{{\#(expression)}}"}}}}"#
        }
        #expect(try fault(in: each("index")) == nil)
        #expect(try fault(in: each("index/0"))?.pointer.description == "/source/job/source/value")
        #expect(try fault(in: each("item/0/x")) == nil)
    }

    @Test func childsChain_hasItsOwnShapes() throws {
        func child(_ pointer: String) -> String {
            #"{"source":{"type":"list","jobs":[{"source":{"type":"url","url":"u"},"then":[{"then":{"return":"{{input\#(pointer)}}"}}]}]}}"#
        }
        #expect(try fault(in: child("/body")) == nil)
        #expect(try fault(in: child("/path"))?.pointer.description == "/source/jobs/0/then/0/then/return")
    }
}
