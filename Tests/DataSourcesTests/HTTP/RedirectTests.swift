import DataSources
import JobModel
import Testing
import TestOrigin

@Suite struct RedirectTests {
    @Test(arguments: [
        (301, "GET", "GET"), (302, "GET", "GET"), (303, "GET", "GET"), (307, "GET", "GET"), (308, "GET", "GET"),
        (301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (307, "POST", "POST"),
        (308, "POST", "POST"), (301, "PUT", "PUT"), (302, "PUT", "PUT"), (303, "PUT", "GET"), (303, "HEAD", "HEAD"),
    ])
    func redirect_keepsOrChangesMethod(status: Int, method: String, next: String) async throws {
        try await Workbench.run(
            serving: ["/a": .redirect(status, to: "/b/../c?d#e"), "/c": OriginResource(text: "there")]
        ) { origin, bench in
            var members: [String: JSON] = ["method": .string(method)]
            if method != "GET", method != "HEAD" {
                members["body"] = "text"
                members["headers"] = ["Content-Type": "text/x"]
            }
            let result = try await bench.result(.source("url", origin.url("/a"), members))
            #expect(result["status"] == 200)
            let entry = try #require(origin.log.last("/c"))
            #expect(entry.method == next)
            #expect(entry.target == "/c?d")
            let keepsBody = next != "GET" && next != "HEAD"
            #expect(entry.body == (keepsBody ? Array("text".utf8) : []))
            #expect(entry.headers["content-type"] == (keepsBody ? "text/x" : nil))
        }
    }

    @Test(arguments: ["url", "download"]) func credentials_areNotSent_toAnotherOrigin(type: String) async throws {
        try await TestOrigin.run { first in
            try await TestOrigin.run { second in
                first["/a"] = .redirect(307, to: "/b")
                first["/b"] = .redirect(307, to: second.url("/c"))
                second["/c"] = .redirect(307, to: first.url("/d"))
                first["/d"] = OriginResource(text: "there")
                try await Workbench.run { bench in
                    for (user, fields) in [
                        ("", ["Authorization": "Bearer t", "Cookie": "c=1", "Proxy-Authorization": "p", "X-Own": "1"]),
                        ("user:secret@", ["Cookie": "c=1", "X-Own": "1"]),
                    ] as [(String, JSON)] {
                        var members: [String: JSON] = ["headers": fields]
                        if type == "download" { members.merge(["path": "x", "exists": "replace"]) { $1 } }
                        let url = "http://\(user)127.0.0.1:\(first.port)/a"
                        let result = try await bench.result(.source(type, url, members))
                        if type == "download" { #expect(result["url"]?.string == first.url("/d")) }
                        // The same origin is trusted on, but not once another one has been in between.
                        for (entry, isTrusted) in [
                            (first.log.last("/a"), true), (first.log.last("/b"), true), (second.log.last("/c"), false),
                            (first.log.last("/d"), false),
                        ] {
                            let headers = try #require(entry).headers
                            #expect((headers["authorization"] != nil) == isTrusted)
                            #expect((headers["cookie"] != nil) == isTrusted)
                            #expect((headers["proxy-authorization"] != nil) == (isTrusted && user.isEmpty))
                            #expect(headers["x-own"] == "1")
                        }
                    }
                }
            }
        }
    }

    @Test(arguments: [0, 3, 10]) func failure_isHTTP_afterTooManyRedirects(limit: Int) async throws {
        try await Workbench.run(
            against: { request, _ in [.head("302 Found", [("Location", request.path + "x"), ("Content-Length", "0")])] }
        ) {
            $0.http.redirects = limit
        } _: { origin, bench in
            let error = try await bench.failure(["type": "url", "url": .string(origin.url("/x"))])
            #expect(error.kind == .http)
            #expect(error.http?["status"]?.int == 302)
            #expect(!error.isRetryable)
            #expect(origin.log.count() == limit + 1)
        }
    }

    @Test(arguments: [
        ("http://", JobError.Kind.http), ("ftp://127.0.0.1/", .policy), ("http://a b/", .http),
        ("file:///etc/passwd", .policy), ("file:/etc/passwd", .policy), ("data:,x", .policy), ("unix:/run/x", .policy),
        ("JAVASCRIPT:1", .policy), ("http://127.0.0.1:65536/", .http),
    ])
    func redirect_isRefused_whenLocationIs(location: String, kind: JobError.Kind) async throws {
        try await Workbench.run(serving: ["/a": .redirect(302, to: location)]) { origin, bench in
            let error = try await bench.failure(["type": "url", "url": .string(origin.url("/a"))])
            #expect(error.kind == kind && !error.isRetryable)
        }
    }

    @Test(arguments: [
        ("http://h/a/b?c", "d", "http://h/a/d"), ("http://h/a/b?c", "?d", "http://h/a/b?d"),
        ("http://h/a/b?c", "", "http://h/a/b?c"), ("http://h/a/b?c", "#f", "http://h/a/b?c"),
        ("http://h/a/b", "../../../x", "http://h/x"), ("http://h/a/b", "./", "http://h/a/"),
        ("http://h/a/b/", "..", "http://h/a/"), ("https://h/a", "//g:81/x", "https://g:81/x"),
        ("http://h/a", "https://g", "https://g/"), ("http://h/a", "/b:c", "http://h/b:c"),
        ("http://h/a", "b?u=http://x/../y", "http://h/b?u=http://x/../y"), ("http://h/a", " /b", "http://h/b"),
        ("http://h", "x", "http://h/x"), ("http://h/a/%2e%2E/b", "./c/./%2e%2e/d", "http://h/d"),
    ])
    func location_isResolvedAgainstURL(base: String, location: String, url: String) throws {
        #expect(RequestURL(base)?.resolving(location)?.description == url)
    }
}
