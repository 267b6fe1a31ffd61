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

    @Test func request_goesThroughProxy_byItsName() async throws {
        try await ScriptedOrigin.run(Self.script) { proxy in
            try await Workbench.run(names: Self.names) {
                $0.http.proxy = "http://user:secret@proxy.example:\(proxy.port)"
            } _: { bench in
                for host in ["unknown.example", "[2001:db8::1]:8080"] {
                    let result = try await bench.result(["type": "url", "url": .string("http://\(host)/x")])
                    #expect(result["body"] == "ok")
                    let entries = proxy.log.entries.suffix(2)
                    #expect(entries.map(\.method) == ["CONNECT", "GET"])
                    #expect(entries.first?.target == (host.contains("8080") ? host : host + ":80"))
                    #expect(entries.first?.headers["proxy-authorization"] == "Basic dXNlcjpzZWNyZXQ=")
                    #expect(entries.last?.headers["host"] == host)
                    #expect(entries.last?.headers["proxy-authorization"] == nil)
                }
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
                let error = try await bench.failure(["type": "url", "url": "http://unknown.example/"])
                #expect(error.kind == .connect)
                #expect(error.message.contains("proxy"))
            }
        }
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

    private struct Unexpected: Error {}
}
