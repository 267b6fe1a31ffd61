@testable import DataSources
import Testing

@Suite struct RequestURLTests {
    @Test(arguments: [
        ("http://example.org", "http://example.org/"),
        ("HTTPS://Example.ORG.:443/A?b#c", "https://example.org/A?b"),
        ("http://example.org:8080?q=1", "http://example.org:8080/?q=1"),
        ("http://u:p@example.org/x", "http://example.org/x"),
        ("http://2130706433/x", "http://127.0.0.1/x"),
        ("http://[::FFFF:127.0.0.1]:81/", "http://[::ffff:127.0.0.1]:81/"),
        ("http://example.org/a b/ü?x={y}|%zz%41", "http://example.org/a%20b/%C3%BC?x=%7By%7D%7C%25zz%41"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
        ("http://\u{FF11}\u{FF16}\u{FF19}.254.169.254/", "http://169.254.169.254/"),
        ("http://a_b-c.example/", "http://a_b-c.example/"),
        ("http://example.org/a#\u{301}b", "http://example.org/a"),
        ("http://example.org#\u{301}/b", "http://example.org/"),
    ])
    func text_isOneSpelling(text: String, url: String) {
        #expect(RequestURL(text)?.description == url)
    }

    @Test(arguments: [
        "", "example.org", "//example.org", "http:", "http://", "http:///path", "http://:80/", "http://a b/",
        "http://example.org:0/", "http://example.org:65536/", "http://example.org:8x/", "http://exa%6dple.org/",
        "http://a..b/", "http://[::1/", "http://[127.0.0.1]/", "http://256.1.1.1/", "http://1.2.3.4.5/", "http://a.08/",
        "http://good.example\\@evil.example/", "http://example.org/\u{0}", "http://example.org/\r\nX: y", " http://a/",
        "1http://example.org/", "http://a:99999999999999999999/", "http://a:-1/", "http://a:+80/", "http://a:0x50/",
        "http://4294967296.0.0.1/", "http://[::fffff]/", "http://a:8 0/", "http://08/", "http://[1:2:3:4:5:6:7::8]/",
        // What shows a URL in a text takes it to end there, and would show the rest of a password.
        "http://user:pass word@h/", "http://user:pass\"word@h/",
    ])
    func text_isNoURL_whenMalformed(text: String) {
        #expect(RequestURL(text) == nil)
    }

    @Test func credentials_areDecoded() {
        #expect(RequestURL("http://u%40x:p%3Aq@example.org/")?.credentials == "u@x:p:q")
        #expect(RequestURL("http://user@example.org/")?.credentials == "user:")
        #expect(RequestURL("http://@example.org/")?.credentials == nil)
    }

    @Test func accent_joinsNoSign() {
        let url = RequestURL("http://h/\u{301}@evil/")
        #expect(url?.credentials == nil && url?.origin == RequestURL("http://h/")?.origin)
        #expect(RequestURL("http://a\\\u{301}b@h/") == nil)
    }

    @Test(arguments: [
        ("http://Example.org./x", "example.org:80"), ("https://example.org", "example.org:443"),
        ("https://example.org:8443", "example.org:8443"), ("http://0x7f.1/", "127.0.0.1:80"),
        ("http://[::1]/", "[::1]:80"),
    ])
    func host_isNameAndPort(url: String, host: String) {
        #expect(RequestURL(url)?.hostAndPort == host)
    }

    /// One character may have any number of marks.
    @Test func text_isShortened_inMessages_whateverItsCharacters() {
        let marks = String(repeating: "\u{301}", count: 100_000)
        for text in ["e" + marks, "http://example.org/e" + marks] {
            #expect(SourceMessage.quoted(text).utf8.count < 2000)
            #expect(SourceMessage.quoted(noURL: text).utf8.count < 2000)
        }
    }
}
