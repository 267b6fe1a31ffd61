@testable import DataSources
import JobModel
import TestOrigin
import Testing

/// Cookies in a chain of redirects.
@Suite struct CookieTests {
    private func sent(_ values: [String], from first: String = "https://a.example.org/dir/x", to second: String) throws
        -> String?
    {
        var jar = CookieJar()
        jar.store(values, from: try #require(RequestURL(first)), now: Timestamp(milliseconds: 1_800_000_000_000))
        return jar.header(for: try #require(RequestURL(second)))
    }

    @Test(arguments: [
        ("a=1", "https://a.example.org/dir/y", "a=1"), ("a=1", "https://a.example.org/dir", "a=1"),
        ("a=1", "https://a.example.org/directory", nil), ("a=1", "https://b.example.org/dir/y", nil),
        ("a=1", "https://x.a.example.org/dir/y", nil), ("a=1; path=/", "https://a.example.org/", "a=1"),
        ("a=1; Path=/other", "https://a.example.org/other/x", "a=1"), ("a=1; path=/", "http://a.example.org/", "a=1"),
        ("a=1; path=/; Secure", "http://a.example.org/", nil), ("a=1; path=/; Secure", "https://a.example.org/", "a=1"),
        ("a=1; path=/; Domain=.example.org", "https://b.example.org/", "a=1"),
        ("a=1; path=/; domain=a.example.org", "https://x.a.example.org/", "a=1"),
        ("a=1; path=/; domain=org", "https://a.example.org/", nil),
        ("a=1; path=/; domain=b.example.org", "https://b.example.org/", nil),
        ("a=1; path=/; Max-Age=0", "https://a.example.org/", nil),
        ("a=1; path=/; Max-Age=9", "https://a.example.org/", "a=1"),
        ("a=1; path=/; Expires=Thu, 01-Jan-1970 00:00:00 GMT", "https://a.example.org/", nil),
        ("a=1; path=/; Expires=Thu, 31-Dec-37 23:55:55 GMT", "https://a.example.org/", "a=1"),
        ("a=1; path=/; Expires=Thu, 31-Dec-98 23:55:55 GMT", "https://a.example.org/", nil),
        ("a=1; path=/; Expires=Thu, 01 Jan 2099 00:00:00 GMT", "https://a.example.org/", "a=1"),
        ("a=1; path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=9", "https://a.example.org/", "a=1"),
        ("a=; path=/", "https://a.example.org/", "a="), ("=1", "https://a.example.org/dir/", nil),
        ("a", "https://a.example.org/dir/", nil), ("a=b=c; path=/", "https://a.example.org/", "a=b=c"),
    ])
    func cookie_isSent_whereItBelongs(value: String, url: String, cookie: String?) throws {
        #expect(try sent([value], to: url) == cookie)
    }

    @Test func domain_isNotWidened_whenHostIsAddress() throws {
        #expect(try sent(["a=1; domain=0.0.1"], from: "http://127.0.0.1/", to: "http://127.0.0.1/") == nil)
        #expect(try sent(["a=1; domain=127.0.0.1"], from: "http://127.0.0.1/", to: "http://127.0.0.1/") == "a=1")
    }

    @Test func cookies_replaceEachOther_andGoLongestPathFirst() throws {
        let values = ["a=1; path=/", "b=2; path=/", "c=3; path=/dir", "a=4; path=/", "b=; path=/; Max-Age=0"]
        #expect(try sent(values, to: "https://a.example.org/dir/x") == "c=3; a=4")
    }

    @Test func cookies_areBounded() throws {
        let many = (0..<60).map { "n\($0)=1; path=/" } + ["big=" + String(repeating: "x", count: 4094)]
        let cookies = try #require(try sent(many, to: "https://a.example.org/")).split(separator: "; ")
        #expect(cookies.count == 50 && cookies.first == "n10=1" && cookies.last == "n59=1")
    }

    @Test func login_succeeds_whenCookieLeadsOn() async throws {
        let script: ScriptedOrigin.Script = { request, _ in
            switch request.path {
            case "/login":
                [
                    .head(
                        "302 Found",
                        [("Location", "/file"), ("Set-Cookie", "s=1; Path=/"), ("Content-Length", "0")])
                ]
            default: [.head("200 OK", [("Content-Length", "2")]), .send("ok")]
            }
        }
        try await Workbench.run(against: script) { origin, bench in
            for type in ["url", "download"] {
                let more: [String: JSON] = ["headers": ["Cookie": "own=2"]]
                _ = try await bench.result(
                    type == "url"
                        ? .source(type, origin.url("/login"), more) : .download(origin.url("/login"), to: "x", more))
                #expect(origin.log.last("/login")?.headers["cookie"] == "own=2")
                #expect(origin.log.last("/file")?.headers["cookie"] == "own=2; s=1")
            }
        }
    }
}
