import JobModel
import Testing

/// What each type of source takes, and what it refuses.
@Suite struct SourceRulesTests {
    private static let digest =
        String(repeating: "0123456789abcdefABCDEF", count: 2) + String(repeating: "0", count: 20)

    @Test(arguments: [
        #""type":"url","url":"https://h/""#,
        #""type":"url","url":"https://h/","method":"PUT","headers":{"A":"b","a":"c"},"body":"","ifNoneMatch":"\"e\"","#
            + #""ifModifiedSince":"2026-01-31T12:00:00Z","accept":"any""#,
        #""type":"url","url":"https://h/","bodyBase64":"AA==","accept":"success""#,
        #""type":"url","url":"https://h/","body":null,"bodyBase64":null,"headers":null,"method":null"#,
        #""type":"json","url":"https://h/","select":"/a/0/b~1c""#, #""type":"json","url":"https://h/","select":"""#,
        #""type":"download","url":"https://h/","path":"a/b""#,
        #""type":"download","url":"https://h/","path":"p","headers":{},"exists":"validate","checksum":"sha256:\#(digest)","#
            + #""mirrors":["https://m/"],"rate":1"#,
        #""type":"download","url":"https://h/","path":"a/","exists":"rename","remoteTime":true,"#
            + #""checksum":"md5:0123456789abcdefABCDEF0000000000""#,
        #""type":"upload","url":"https://h/","path":"p","multipart":{"field":"f","filename":"n","fields":{"a":"1"}},"#
            + #""headers":{"X":"y"}"#,
        #""type":"list","jobs":[]"#, #""type":"list","jobs":[],"mode":"first","concurrency":1"#,
        #""type":"list","jobs":[{"source":{"type":"timer","seconds":0}}],"mode":"all""#,
        #""type":"each","in":[1,"x",null],"job":{"source":{"type":"value","value":"{{item}}"}},"mode":"settled""#,
        #""type":"value","value":null"#, #""type":"value","value":{"a":["{{anything"]}"#, #""type":"error""#,
        #""type":"error","kind":"my-kind","message":"x""#, #""type":"timer","seconds":0.5"#,
        #""type":"timer","seconds":31622400"#, #""type":"job","job":1"#, #""type":"job","job":9007199254740993"#,
        // What looks like an expression is data there, and a name with other braces is one.
        #""type":"url","url":"https://h/{{a}}","method":"POST","body":"{{schedule/time}}","headers":{"A":"{{input}}"}"#,
        #""type":"download","url":"https://h/{a}","path":"{{ project.name }}/{{item""#,
    ])
    func source_isAccepted(_ members: String) throws {
        #expect(try fault(in: #"{"source":{\#(members)}}"#) == nil)
    }

    @Test(arguments: [
        // The type.
        (#""url":"https://h/""#, "/type"), (#""type":null"#, "/type"), (#""type":5"#, "/type"),
        (#""type":"ftp""#, "/type"), (#""type":"URL""#, "/type"), (#""type":"{{item}}""#, "/type"),
        // A member too many.
        (#""type":"url","url":"https://h/","path":"x""#, "/path"), (#""type":"url","url":"u","select":"""#, "/select"),
        (#""type":"download","url":"u","path":"p","method":"GET""#, "/method"),
        (#""type":"json","url":"u","checksum":"x""#, "/checksum"), (#""type":"list","jobs":[],"in":[]"#, "/in"),
        (#""type":"each","in":[],"job":{"source":{"type":"error"}},"jobs":[]"#, "/jobs"),
        (#""type":"value","value":1,"x":null"#, "/x"), (#""type":"error","code":1"#, "/code"),
        (#""type":"timer","seconds":1,"a/b~c":1"#, "/a~1b~0c"),
        // A member too few.
        (#""type":"url""#, "/url"), (#""type":"url","url":null"#, "/url"), (#""type":"json""#, "/url"),
        (#""type":"download","path":"p""#, "/url"), (#""type":"download","url":"u""#, "/path"),
        (#""type":"list""#, "/jobs"), (#""type":"each","job":{"source":{"type":"error"}}"#, "/in"),
        (#""type":"each","in":[]"#, "/job"), (#""type":"value""#, "/value"), (#""type":"timer""#, "/seconds"),
        (#""type":"job""#, "/job"),
        // Requests.
        (#""type":"url","url":"""#, "/url"), (#""type":"url","url":5"#, "/url"), (#""type":"url","url":["u"]"#, "/url"),
        (#""type":"url","url":"u","method":"""#, "/method"), (#""type":"url","url":"u","method":"GE T""#, "/method"),
        (#""type":"url","url":"u","method":1"#, "/method"), (#""type":"url","url":"u","body":{}"#, "/body"),
        (#""type":"url","url":"u","body":1"#, "/body"), (#""type":"url","url":"u","bodyBase64":"a""#, "/bodyBase64"),
        (#""type":"url","url":"u","body":"","bodyBase64":"""#, "/bodyBase64"),
        (#""type":"url","url":"u","ifNoneMatch":"a\u0000""#, "/ifNoneMatch"),
        (#""type":"url","url":"u","ifModifiedSince":"Sat, 31 Jan 2026 12:00:00 GMT""#, "/ifModifiedSince"),
        (#""type":"url","url":"u","ifModifiedSince":1"#, "/ifModifiedSince"),
        (#""type":"url","url":"u","accept":"all""#, "/accept"), (#""type":"url","url":"u","accept":true"#, "/accept"),
        (#""type":"json","url":"u","select":"a""#, "/select"), (#""type":"json","url":"u","select":"/~""#, "/select"),
        (#""type":"json","url":"u","select":1"#, "/select"),
        // Headers.
        (#""type":"url","url":"u","headers":[]"#, "/headers"),
        (#""type":"url","url":"u","headers":"A: b""#, "/headers"),
        (#""type":"url","url":"u","headers":{"A":1}"#, "/headers/A"),
        (#""type":"url","url":"u","headers":{"A":null}"#, "/headers/A"),
        (#""type":"url","url":"u","headers":{"":"x"}"#, "/headers/"),
        (#""type":"url","url":"u","headers":{"A b":"x"}"#, "/headers/A b"),
        (#""type":"url","url":"u","headers":{"A:":"x"}"#, "/headers/A:"),
        (#""type":"url","url":"u","headers":{"A":"x\r\nB: y"}"#, "/headers/A"),
        (#""type":"url","url":"u","headers":{"A":"\u007f"}"#, "/headers/A"),
        (#""type":"url","url":"u","headers":{"host":"x"}"#, "/headers/host"),
        (#""type":"url","url":"u","headers":{"Content-Length":"1"}"#, "/headers/Content-Length"),
        (#""type":"download","url":"u","path":"p","headers":{"Transfer-Encoding":"x"}"#, "/headers/Transfer-Encoding"),
        // Downloads.
        (#""type":"download","url":"u","path":"""#, "/path"),
        (#""type":"download","url":"u","path":"a\u0000b""#, "/path"),
        (#""type":"download","url":"u","path":1"#, "/path"),
        (#""type":"download","url":"u","path":"p","exists":"keep""#, "/exists"),
        (#""type":"download","url":"u","path":"p","checksum":"md5:00""#, "/checksum"),
        (#""type":"download","url":"u","path":"p","checksum":"sha256:00""#, "/checksum"),
        (#""type":"download","url":"u","path":"p","checksum":"sha256\#(digest)""#, "/checksum"),
        (#""type":"download","url":"u","path":"p","checksum":"sha256:\#(digest.dropLast())g""#, "/checksum"),
        (#""type":"download","url":"u","path":"p","checksum":"sha256:\#(digest.dropLast(3))\uff11""#, "/checksum"),
        (#""type":"download","url":"u","path":"p","mirrors":"m""#, "/mirrors"),
        (#""type":"download","url":"u","path":"p","mirrors":["m",1]"#, "/mirrors/1"),
        (#""type":"download","url":"u","path":"p","mirrors":[null]"#, "/mirrors/0"),
        (#""type":"download","url":"u","path":"p","rate":0"#, "/rate"),
        (#""type":"download","url":"u","path":"p","rate":1.5"#, "/rate"),
        (#""type":"download","url":"u","path":"p","rate":"1""#, "/rate"),
        (#""type":"download","url":"u","path":"p","rate":1e300"#, "/rate"),
        // Uploads.
        (#""type":"upload","path":"p""#, "/url"), (#""type":"upload","url":"u""#, "/path"),
        (#""type":"upload","url":"u","path":null"#, "/path"),
        (#""type":"upload","url":"u","path":"p","method":"GET""#, "/method"),
        (#""type":"upload","url":"u","path":"p","method":"put""#, "/method"),
        (#""type":"upload","url":"u","path":"p","headers":{"content-length":"3"}"#, "/headers/content-length"),
        (#""type":"upload","url":"u","path":"p","checksum":"sha256:12""#, "/checksum"),
        (#""type":"download","url":"u","path":"p/","exists":"replace""#, "/exists"),
        (#""type":"download","url":"u","path":"p/","exists":"validate""#, "/exists"),
        (#""type":"upload","url":"u","path":"p","multipart":{}"#, "/multipart/field"),
        (#""type":"upload","url":"u","path":"p","multipart":{"field":"f","x":1}"#, "/multipart/x"),
        (#""type":"upload","url":"u","path":"p","multipart":{"field":"f","fields":{"a":1}}"#, "/multipart/fields/a"),
        (
            #""type":"upload","url":"u","path":"p","multipart":{"field":"f"},"headers":{"content-TYPE":"a/b"}"#,
            "/headers/content-TYPE"
        ),
        (#""type":"upload","url":"u","path":"p","body":"x""#, "/body"),
        (#""type":"upload","url":"u","path":"p","rate":1"#, "/rate"),
        (#""type":"upload","url":"u","path":"p","idleTimeout":0"#, "/idleTimeout"),
        (#""type":"download","url":"u","path":"p","idleTimeout":-1"#, "/idleTimeout"),
        (#""type":"url","url":"u","idleTimeout":"1""#, "/idleTimeout"),
        (#""type":"json","url":"u","idleTimeout":1e300"#, "/idleTimeout"),
        // Expressions where nothing fills them in.
        (#""type":"url","url":"https://h/{{input}}""#, "/url"), (#""type":"json","url":"https://{{item}}/""#, "/url"),
        (#""type":"download","url":"https://h/","path":"{{job/id}}""#, "/path"),
        (
            #""type":"download","url":"https://h/","path":"p","mirrors":["https://m/","https://m/{{index}}"]"#,
            "/mirrors/1"
        ),
        (#""type":"upload","url":"https://h/","path":"{{schedule/name}}.gz""#, "/path"),
        (
            #""type":"list","jobs":[{"source":{"type":"upload","url":"https://h/{{error}}","path":"p"}}]"#,
            "/jobs/0/source/url"
        ),
        // Lists.
        (#""type":"list","jobs":{}"#, "/jobs"), (#""type":"list","jobs":"{{input}}""#, "/jobs"),
        (#""type":"list","jobs":[1]"#, "/jobs/0"), (#""type":"list","jobs":[{}]"#, "/jobs/0/source"),
        (#""type":"list","jobs":[{"source":{"type":"error"}},{"source":{"type":"url"}}]"#, "/jobs/1/source/url"),
        (#""type":"list","jobs":[{"source":{"type":"error"},"watch":true}]"#, "/jobs/0/watch"),
        (#""type":"list","jobs":[{"source":{"type":"error"},"priority":"1"}]"#, "/jobs/0/priority"),
        (
            #""type":"list","jobs":[{"source":{"type":"error"},"then":[{"then":{"return":"{{error}}"}}]}]"#,
            "/jobs/0/then/0/then/return"
        ),
        (#""type":"list","jobs":[],"mode":"any""#, "/mode"),
        (#""type":"list","jobs":[],"concurrency":0"#, "/concurrency"),
        (#""type":"list","jobs":[],"concurrency":1.5"#, "/concurrency"),
        (#""type":"each","in":{},"job":{"source":{"type":"error"}}"#, "/in"),
        (#""type":"each","in":"{{input}}","job":{"source":{"type":"error"}}"#, "/in"),
        (#""type":"each","in":[],"job":[]"#, "/job"), (#""type":"each","in":[],"job":{}"#, "/job/source"),
        (#""type":"each","in":[],"job":{"source":{"type":"url"}}"#, "/job/source/url"),
        // The rest.
        (#""type":"error","kind":"Bad Kind""#, "/kind"), (#""type":"error","kind":5"#, "/kind"),
        (#""type":"error","message":5"#, "/message"), (#""type":"timer","seconds":-1"#, "/seconds"),
        (#""type":"job","job":0"#, "/job"), (#""type":"job","job":"1""#, "/job"), (#""type":"job","job":1.5"#, "/job"),
        (#""type":"timer","seconds":"1""#, "/seconds"), (#""type":"timer","seconds":31622401"#, "/seconds"),
        (#""type":"timer","seconds":1e999"#, "/seconds"), (#""type":"timer","seconds":null"#, "/seconds"),
    ])
    func source_isRefused_withThePointerOfTheMember(_ members: String, _ pointer: String) throws {
        let fault = try #require(try fault(in: #"{"source":{\#(members)}}"#))
        #expect(fault.pointer.description == "/source" + pointer)
        #expect(fault.reason.hasSuffix(".") && fault.reason.count > 10)
    }

    @Test(arguments: [("null", "/source"), ("[]", "/source"), (#""https://h/""#, "/source"), ("1", "/source")])
    func source_isRefused_whereItIsNoObject(_ source: String, _ pointer: String) throws {
        #expect(try fault(in: #"{"source":\#(source)}"#)?.pointer.description == pointer)
    }

    @Test(
        arguments: [
            (["type": "url", "url": "{{input}}"], "url"),
            (["type": "url", "url": "u", "method": "{{input}}"], "method"),
            (["type": "url", "url": "u", "accept": "{{input}}"], "accept"),
            (["type": "url", "url": "u", "ifNoneMatch": "{{input}}"], "ifNoneMatch"),
            (["type": "json", "url": "u", "select": "{{input}}"], "select"),
            (["type": "download", "url": "u", "path": "{{input}}"], "path"),
            (["type": "download", "url": "u", "path": "p", "exists": "{{input}}"], "exists"),
            (["type": "download", "url": "u", "path": "p", "checksum": "{{input}}"], "checksum"),
            (["type": "download", "url": "u", "path": "p", "mirrors": ["{{input}}"]], "mirrors/0"),
            (["type": "program", "program": "{{input}}"], "program"),
            (["type": "error", "kind": "{{input}}"], "kind"),
        ] as [(JSON, String)])
    func member_isRefusedByItsLength_beforeItIsTakenApart(_ source: JSON, _ pointer: String) throws {
        let text = JSON.string(String(repeating: "/", count: MemberReader.longestString + 1))
        let long = try TemplateExpansion([.input: text]).source(source)
        let written = try #require(try fault(in: (["source": long] as JSON).description))
        let expanded = #expect(throws: SpecError.self) {
            try SourceParameters(long, mode: .expanded, limits: JobLimits())
        }
        for fault in [written, try #require(expanded)] {
            #expect(fault.pointer.description == "/source/\(pointer)")
            #expect(
                fault.reason.contains("\"\(pointer.prefix { $0 != "/" })\"") && fault.reason.contains("65536 bytes"))
        }
    }

    /// Each of its parts is within the bound.
    @Test func combiningCharacters_areRefused_whereExpressionsJoinThem() throws {
        let marks = JSON.string(String(repeating: "\u{301}\u{316}", count: 100))
        let source: JSON = ["type": "download", "url": "http://h/", "path": "p", "checksum": "{{input}}{{input}}"]
        let expanded = try TemplateExpansion([.input: marks]).source(source)
        let error = #expect(throws: SpecError.self) {
            try SourceParameters(expanded, mode: .expanded, limits: JobLimits())
        }
        #expect(error?.reason.contains("256 combining characters") == true, "\(error?.reason ?? "")")
    }

    /// Text from a server ends no line of a request to another one, and its numbers may be beyond all bounds.
    @Test func whatIsFilledIn_isRefused_likeWhatIsWritten() throws {
        func expectRefusal(_ source: JSON, _ pointer: String) {
            let error = #expect(throws: SpecError.self) {
                try SourceParameters(source, mode: .expanded, limits: JobLimits())
            }
            #expect(error?.pointer.description == "/source/\(pointer)")
            #expect(error?.reason.contains("secret") == false)
        }
        let lines = [
            "a\r\nX: secret", "a\nX: secret", "a\rX: secret", "secret\u{0}", "secret\u{7F}", "\r\n secret",
            "secret\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n",
        ]
        for line in lines.map(JSON.string) {
            for type in ["url", "json"] as [JSON] {
                expectRefusal(["type": type, "url": "u", "headers": ["X-Given": line]], "headers/X-Given")
            }
            for type in ["download", "upload"] as [JSON] {
                expectRefusal(["type": type, "url": "u", "path": "p", "headers": ["X-Given": line]], "headers/X-Given")
            }
            for name in ["method", "ifNoneMatch"] {
                expectRefusal(.object(["type": "url", "url": "u", name: line]), name)
            }
        }
        for digits in ["1e999999", String(repeating: "9", count: 10_000)] {
            let number = try JSON(parsing: digits)
            expectRefusal(["type": "timer", "seconds": number], "seconds")
            for name in ["rate", "segments"] {
                expectRefusal(.object(["type": "download", "url": "u", "path": "x", name: number]), name)
            }
            expectRefusal(["type": "list", "jobs": [], "concurrency": number], "concurrency")
        }
    }

    @Test func text_mayBeLong_whereItHasABoundOfItsOwn() throws {
        let text = JSON.string(String(repeating: "x", count: 4 * MemberReader.longestString))
        let sources: [JSON] = [
            ["type": "url", "url": "u", "body": text], ["type": "url", "url": "u", "bodyBase64": text],
            ["type": "value", "value": text], ["type": "error", "message": text],
            ["type": "program", "program": "p", "input": text],
        ]
        for source in sources { #expect(try fault(in: (["source": source] as JSON).description) == nil) }
    }

    @Test func mirrors_areAtMost32() throws {
        func spec(_ count: Int) -> String {
            let mirrors = Array(repeating: #""https://m/""#, count: count).joined(separator: ",")
            return #"{"source":{"type":"download","url":"u","path":"p","mirrors":[\#(mirrors)]}}"#
        }
        #expect(try fault(in: spec(32)) == nil)
        #expect(try fault(in: spec(33))?.pointer.description == "/source/mirrors")
    }

    @Test func headers_areAtMost64KiB() throws {
        func spec(_ size: Int) -> String {
            #"{"source":{"type":"url","url":"u","headers":{"A":"\#(String(repeating: "x", count: size))"}}}"#
        }
        #expect(try fault(in: spec((64 << 10) - 1)) == nil)
        #expect(try fault(in: spec(64 << 10))?.pointer.description == "/source/headers")
    }

    @Test func headers_areRefused_whereTheyAreVeryMany() throws {
        // Looking each up by its name would take minutes, and so this test.
        let fields = (0..<90_000).map { "\"x\($0)\":\"\"" }.joined(separator: ",")
        #expect(
            try fault(in: #"{"source":{"type":"url","url":"u","headers":{\#(fields)}}}"#)?.pointer.description
                == "/source/headers")
    }

    @Test func header_isTheLater_ofADoubledName() throws {
        let json = try JSON(parsing: #"{"type":"url","url":"u","headers":{"A":"1","B":"2","A":"3"}}"#)
        guard case .url(let request) = try SourceParameters(json, mode: .literal, limits: JobLimits()) else {
            Issue.record("no request")
            return
        }
        #expect(Set(request.headers.map { "\($0.name)=\($0.value)" }) == ["A=3", "B=2"])
        #expect(request.headers.count == 2)
    }

    @Test func parameters_haveTheirDefaults() throws {
        func read(_ text: String) throws -> SourceParameters {
            try SourceParameters(JSON(parsing: text), mode: .literal, limits: JobLimits())
        }
        guard case .url(let request) = try read(#"{"type":"url","url":"u"}"#),
            case .download(let download) = try read(
                #"{"type":"download","url":"u","path":"p","checksum":"SHA256:\#(Self.digest)"}"#),
            case .list(let list) = try read(#"{"type":"list","jobs":[]}"#)
        else {
            Issue.record("another type")
            return
        }
        #expect(request.method == "GET" && request.accept == .success && request.body == nil)
        #expect(download.exists == .fail && download.mirrors.isEmpty && download.rate == nil)
        #expect(download.checksum?.hexadecimal == Self.digest.lowercased())
        #expect(list.mode == .settled && list.concurrency == nil)
        #expect(try read(#"{"type":"error"}"#) == .error(.invalid, "The job was written to fail."))
        #expect(try read(#"{"type":"json","url":"u"}"#) == .json(request, select: JSONPointer()))
    }
}
