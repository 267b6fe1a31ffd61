import JobModel
import Testing
import TestOrigin

@testable import DataSources

@Suite struct ProxyTests {
    private static let names = Workbench.Names { name in
        switch name {
        case "proxy.example": .success([IPAddress(bytes: [127, 0, 0, 1])])
        default: .failure(NameResolver.Failure(reason: "no such name"))
        }
    }

    /// Proxy and server in one: what follows the answer to CONNECT goes to the server.
    private static let script: ScriptedOrigin.Script = { request, _ in
        request.method == "CONNECT"
            ? [.send("HTTP/1.1 200 Go on\r\nX-Proxy: yes\r\n\r\n")]
            : [.head("200 OK", [("Content-Length", "2")]), .send("ok")]
    }

    @Test(arguments: [
        ("http://a", 80), ("http://a:1080", 1080), ("socks5://a", 1080), ("socks5://a:80", 80),
        ("SOCKS5://u:p@a:443", 443),
    ])
    func port_isTheGivenOne_orElseThatOfTheScheme(proxy: String, port: Int) throws {
        #expect(try ProxyAddress(proxy).port == port)
    }

    @Test func request_asksProxyForItsURL_whenHTTP() async throws {
        try await ScriptedOrigin.run(Self.script) { proxy in
            try await Workbench.run(names: Self.names) {
                $0.http.proxy = "http://user:secret@proxy.example:\(proxy.port)"
            } _: { bench in
                for host in ["unknown.example", "[2001:db8::1]:8080"] {
                    let result = try await bench.result(["type": "url", "url": .string("http://\(host)/x?y")])
                    #expect(result["body"] == "ok")
                    let entry = try #require(proxy.log.entries.last)
                    #expect(entry.method == "GET")
                    #expect(entry.target == "http://\(host)/x?y")
                    #expect(entry.headers["host"] == host)
                    #expect(entry.headers["proxy-authorization"] == "Basic dXNlcjpzZWNyZXQ=")
                }
            }
        }
    }

    @Test func proxy_isAskedForConnection_whenHTTPS() async throws {
        try await ScriptedOrigin.run({ _, _ in [.send("HTTP/1.1 200 Go on\r\n\r\n"), .close] }) { proxy in
            try await Workbench.run(names: Self.names) {
                $0.http.proxy = "http://user:secret@proxy.example:\(proxy.port)"
            } _: { bench in
                _ = try await bench.failure(["type": "url", "url": "https://unknown.example/x"])
                let entry = try #require(proxy.log.entries.first)
                #expect(entry.method == "CONNECT")
                #expect(entry.target == "unknown.example:443")
                #expect(entry.headers["proxy-authorization"] == "Basic dXNlcjpzZWNyZXQ=")
            }
        }
    }

    @Test func proxy_isNotAsked_forThisMachine() async throws {
        try await ScriptedOrigin.run(Self.script) { origin in
            try await Workbench.run {
                $0.http.proxy = "http://127.0.0.1:1"
            } _: { bench in
                for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0x7f000001"] {
                    let result = try await bench.result(["type": "url", "url": .string(origin.url("/x", host: host))])
                    #expect(result["body"] == "ok")
                }
                #expect(origin.log.entries.allSatisfy { $0.target == "/x" && $0.headers["proxy-authorization"] == nil })
            }
        }
    }

    @Test(arguments: [
        ("a.example", true), ("b.a.example", false), ("b.example", false), ("x.b.example", true),
        ("10.1.2.3", true), ("11.1.2.3", false), ("[2001:db8::1]", true), ("192.0.2.7", true), ("localhost", true),
        ("[::1]", true),
    ])
    func exception_includesHost(host: String, isIncluded: Bool) throws {
        let exceptions = try ProxyExceptions(["a.example", "*.b.example", "10.0.0.0/8", "2001:db8::/32", "192.0.2.7"])
        #expect(try exceptions.include(#require(RequestURL("http://\(host)/")).host) == isIncluded)
    }

    @Test(arguments: ["a b", "10.0.0.0/33", "*", "", "10.1", "010.0.0.1", "192.168/16"])
    func exception_isRefused_whenNoHost(text: String) {
        #expect(throws: JobError.self) { try ProxyExceptions([text]) }
    }

    @Test(arguments: ["http", "https"]) func failure_isNotRetried_whenProxyDemandsPassword(scheme: String) async throws
    {
        try await ScriptedOrigin.run({ _, _ in [.head("407 Who", [("Content-Length", "0")])] }) { proxy in
            try await Workbench.run(names: Self.names) {
                $0.http.proxy = "http://127.0.0.1:\(proxy.port)"
            } _: { bench in
                let error = try await bench.failure(["type": "url", "url": .string("\(scheme)://unknown.example/")])
                #expect(error.kind == .connect && !error.isRetryable)
                #expect(error.message.contains("user and password; check http.proxy"))
            }
        }
    }

    @Test(arguments: [
        "HTTP/1.1 403 Forbidden\r\n\r\n", "HTTP/1.1 407 Who\r\n\r\n", "HTTP/1.1 099 X\r\n\r\n",
        "HTTP/1.1 2000 X\r\n\r\n",
        "nonsense\r\n\r\n", "\r\n\r\n", String(repeating: "x", count: 20_000),
    ])
    func failure_isConnect_whenProxyRefuses(answer: String) async throws {
        try await ScriptedOrigin.run({ _, _ in [.send(answer)] }) { proxy in
            try await Workbench.run(names: Self.names) {
                $0.http.proxy = "http://127.0.0.1:\(proxy.port)"
            } _: { bench in
                let error = try await bench.failure(["type": "url", "url": "https://unknown.example/"])
                #expect(error.kind == .connect)
                #expect(error.message.contains("proxy"))
            }
        }
    }

    @Test(arguments: ["u:secret@h:80", "http://u:secret word@h:80", "u:secret@", "ftp://u:secret@h"])
    func mistake_isToldWithoutThePassword(text: String) {
        let error = #expect(throws: JobError.self) { try ProxyAddress(text) }
        #expect(error?.message.contains("secret") == false, "\(error?.message ?? "")")
    }

    private func handshake(_ url: String) throws -> ProxyHandshake {
        ProxyHandshake(to: try #require(RequestURL(url)), by: try ProxyAddress("socks5://127.0.0.1"))
    }

    @Test(
        arguments: [
            ("http://ab.example:258/", [3, 10] + Array("ab.example".utf8) + [1, 2]),
            ("http://1.2.3.4/", [1, 1, 2, 3, 4, 0, 80]),
            ("http://[::1]/", [4] + [UInt8](repeating: 0, count: 15) + [1, 0, 80]),
        ] as [(String, [UInt8])])
    func socks_isAskedForTheServer_inWhateverPiecesItAnswers(url: String, target: [UInt8]) throws {
        for size in 1...20 {
            var handshake = try handshake(url)
            #expect(handshake.greeting == [5, 1, 0])
            var rest: [UInt8] = [5, 0]
            var action = ProxyHandshake.Action.wait
            while action == .wait {
                action = handshake.receive(rest.prefix(size))
                rest.removeFirst(min(size, rest.count))
            }
            #expect(action == .send([5, 1, 0] + target))
            rest = [5, 0, 0, 3, 2, 7, 7, 0, 1, 42]
            action = .wait
            var left: [UInt8] = []
            while action == .wait, !rest.isEmpty {
                action = handshake.receive(rest.prefix(size))
                rest.removeFirst(min(size, rest.count))
            }
            if case .done(let bytes) = action { left = bytes }
            #expect(left + rest == [42])
        }
    }

    @Test(
        arguments: [[5, 255], [4, 0], [0, 0]] as [[UInt8]],
        [[5, 1, 0, 1, 0], [4, 0, 0, 1, 0], [5, 0, 0, 9, 0]] as [[UInt8]])
    func socks_fails_whenProxyRefuses(greeting: [UInt8], answer: [UInt8]) throws {
        var first = try handshake("http://a/")
        guard case .failed = first.receive(greeting) else { throw Unexpected() }
        var second = try handshake("http://a/")
        _ = second.receive([5, 0])
        guard case .failed = second.receive(answer) else { throw Unexpected() }
        guard case .failed = second.receive([]) else { throw Unexpected() }
    }

    @Test func socks_sendsPassword_whenProxyWantsIt() throws {
        let proxy = try ProxyAddress("socks5://me:a%3Ab@127.0.0.1")
        var handshake = ProxyHandshake(to: try #require(RequestURL("http://1.2.3.4/")), by: proxy)
        #expect(handshake.greeting == [5, 2, 0, 2])
        #expect(handshake.receive([5, 2]) == .send([1, 2] + Array("me".utf8) + [3] + Array("a:b".utf8)))
        var refused = handshake
        #expect(refused.receive([1, 1]) == .failed(ProxyAddress.unauthorized))
        #expect(handshake.receive([1, 0]) == .send([5, 1, 0, 1, 1, 2, 3, 4, 0, 80]))
    }

    private struct Unexpected: Error {}
}
