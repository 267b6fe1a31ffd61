import JobModel
import Testing

@Suite struct MaskingTests {
    @Test(arguments: [
        ("https://example.org/", "https://example.org/"),
        ("https://user:pass@example.org/a", "https://***@example.org/a"),
        ("https://user@example.org", "https://***@example.org"),
        ("https://a:b@c@example.org/", "https://***@example.org/"),
        ("https://:secret@example.org?x=1", "https://***@example.org?x=1"), ("HTTPS://u:p@h", "HTTPS://***@h"),
        ("ftp://u:p@[::1]:21/x", "ftp://***@[::1]:21/x"), ("https://example.org/@user", "https://example.org/@user"),
        ("https://example.org?mail=a@b", "https://example.org?mail=a@b"), ("https://h#u@v", "https://h#u@v"),
        ("user:pass@example.org", "user:pass@example.org"), ("", ""), ("://", "://"), ("://@", "://***@"),
        ("no url", "no url"), ("a://b://u:p@h", "a://b://***@h"),
        ("see https://u:p@a/ and http://v:q@b/.", "see https://***@a/ and http://***@b/."),
        ("\"https://u:p@h/\"", "\"https://***@h/\""), ("https://h\nmail a@b", "https://h\nmail a@b"),
        ("https://u:p@h/?next=https://v:q@i/", "https://***@h/?next=https://***@i/"),
        ("https://u:\u{E4}\u{1F600}@h", "https://***@h"), ("https://u:p@\u{301}h/", "https://***@\u{301}h/"),
    ])
    func url_losesItsUserInformation(_ text: String, _ masked: String) {
        #expect(Masking.masked(url: text) == masked)
    }

    @Test(arguments: [
        ("https://u:p w@h/a", "https://***@h/a"), ("//h:0/cb?code=secret", "//h:0/cb?***"),
        ("//u:p@h:0/", "//***@h:0/"), ("example.org/?token=secret#a", "example.org/?***"), ("u:p@h", "***@h"),
        ("ftp://h/a b?t=s", "ftp://h/a b?***"), ("https://h/@a", "https://***@a"), ("no url", "no url"), ("?", "?"),
        ("", ""), ("https://u:\"@h", "https://***@h"),
        ("mailto:a@h?b=c//d@e", "***@h?***"), ("https://bob:s3/cret@host/", "https://***@host/"),
    ])
    func textThatIsNoURL_losesWhatMayBeSecret(_ text: String, _ masked: String) {
        #expect(Masking.masked(noURL: text) == masked)
    }

    @Test(arguments: [
        ("https://{{input/user}}:secret@h/", "https://***@h/"), ("https://u:{{input/a}}secret@h/x", "https://***@h/x"),
        ("https://{{input/host}}/a@b", "https://{{input/host}}/a@b"),
        ("https://{{input/host/a@b", "https://{{input/host/a@b"),
        ("{{input/scheme}}://u:p@h/", "{{input/scheme}}://***@h/"),
    ])
    func url_losesItsUserInformation_whereExpressionsStandInIt(_ text: String, _ masked: String) {
        #expect(Masking.masked(url: text) == masked)
    }

    @Test func secretHeaders_areMasked_howeverTheyAreSpelt() {
        let source: JSON = [
            "type": "url", "url": "https://u:p@h/",
            "headers": [
                "Authorization": "Bearer x", "proxy-AUTHORIZATION": "Basic x", "cookie": "a=b", "Accept": "text/html",
                "Referer": "https://u:p@h/",
            ],
        ]
        #expect(
            Masking.masked(source) == [
                "type": "url", "url": "https://***@h/",
                "headers": [
                    "Authorization": "***", "proxy-AUTHORIZATION": "***", "cookie": "***", "Accept": "text/html",
                    "Referer": "https://***@h/",
                ],
            ])
    }

    @Test func explanation_isMasked_inEveryText() throws {
        let text: JSON = "http://u:secret@h/"
        var reader = JobSpecReader(limits: JobLimits())
        let spec = try reader.spec([
            "source": ["type": "url", "url": text], "key": text, "label": text, "tags": [text],
            "then": [["then": ["source": ["type": "url", "url": text]]]],
        ])
        #expect(!spec.explained.description.contains("secret"))
    }

    @Test func secrets_areMasked_atEveryDepth() throws {
        let source: JSON = [
            "type": "each", "in": ["https://u:p@a/"],
            "job": [
                "source": ["type": "url", "url": "{{item}}", "headers": ["Cookie": "secret"]],
                "then": [["then": ["source": ["type": "download", "mirrors": ["http://u:secret@m/"]]]]],
                "label": "from https://u:secret@h",
            ],
        ]
        let masked = Masking.masked(source).description
        #expect(!masked.contains("secret") && !masked.contains("u:p"))
    }

    @Test func variablesOfPrograms_areMasked_butNotTheirNames() {
        let program: JSON = ["type": "program", "program": "x", "environment": ["TOKEN": "a", "N": "{{input}}"]]
        let masked: JSON = ["type": "program", "program": "x", "environment": ["TOKEN": "***", "N": "***"]]
        #expect(Masking.masked(program) == masked)
        #expect(Masking.masked(["then": [["then": ["source": program]]]]) == ["then": [["then": ["source": masked]]]])
        let open: JSON = ["type": "program", "environment": "{{input}}"]
        #expect(Masking.masked(open) == open)
    }

    @Test func otherMembers_areLeftAsTheyAre() {
        let value: JSON = [
            "Authorization": "not a header", "headers": [1, "x"], "n": [1.5, nil, true], "deep": [[:]],
            "environment": ["A": "b"],
        ]
        #expect(Masking.masked(value) == value)
    }

    @Test func masking_takesEveryString_howeverManyURLsAreInIt() {
        let text = String(repeating: "://", count: 350_000)
        #expect(Masking.masked(url: text) == text)
        let many = String(repeating: "a://u:p@h ", count: 100_000)
        #expect(Masking.masked(url: many) == String(repeating: "a://***@h ", count: 100_000))
    }
}

@Suite struct LogMaskingTests {
    @Test(arguments: [
        ("https://h/?key=secret", "https://h/?***"), ("https://u:p@h/a?b=c#d", "https://***@h/a?***#d"),
        ("\"https://h?x\" and (http://i/?y=1&z=2 ended)", "\"https://h?***\" and (http://i/?*** ended)"),
        ("https://h/?next=https://i/?z", "https://h/?***"), ("https://h/?", "https://h/?"),
        ("why? because", "why? because"),
        ("https://h/\nreally?", "https://h/\nreally?"), ("", ""), ("://?", "://?"), ("://?x", "://?***"),
        ("https://h/?\u{E4}", "https://h/?***"),
    ])
    func url_losesItsQuery(_ text: String, _ masked: String) {
        #expect(Masking.masked(log: text) == masked)
    }
}
