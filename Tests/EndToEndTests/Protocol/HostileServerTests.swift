import Glibc
import JobModel
import TestOrigin
import TestSupport
import Testing

/// Servers that try to end the daemon: it continues, also after a restart.
@Suite struct HostileServerTests {
    /// The values of expressions may come from a server.
    @Test(arguments: ["a\r\nX-Evil: 1", "a\nX-Evil: 1", "a\rX-Evil: 1", "a\u{0}b"])
    func header_isNotSplit_byWhatIsFilledIn(_ value: String) async throws {
        try await GuidedOrigin.run({ request, _ in .json(#""reached""#) }) { origin in
            try await Daemon.run { daemon in
                let wire = try daemon.connect()
                let error = try await wire.fail([
                    "source": ["type": "value", "value": .string(value)],
                    "then": [
                        [
                            "then": [
                                "source": [
                                    "type": "json", "url": origin.url("/"), "headers": ["X-Value": "{{input}}"],
                                ]
                            ]
                        ]
                    ],
                ])
                #expect(error["kind"] == "invalid", "\(error)")
                #expect(origin.requests.isEmpty)
            }
        }
    }

    @Test func daemon_goesOn_whenResumeIsAnsweredWithRangeAtTheEndOfNumbers() async throws {
        let script: ScriptedOrigin.Script = { request, _ in
            let fields = [("Content-Length", "6"), ("ETag", "\"a\"")]
            guard let range = request.headers["range"] else { return [.head("200 OK", fields), .send("abc"), .close] }
            let start = range.dropFirst("bytes=".count).dropLast()
            return [
                .head(
                    "206 Partial Content",
                    [("Content-Range", "bytes \(start)-9223372036854775807/*"), ("ETag", "\"a\"")]), .send("def"),
                .close,
            ]
        }
        try await survives(script) { origin in
            .download(.string(origin.url("/x")), to: "x", retry: ["max": 2, "initial": 0])
        }
    }

    @Test(arguments: ["099 X", "000 X", "101 Switching Protocols"])
    func daemon_goesOn_whenStatusEndsNoExchange(status: String) async throws {
        try await survives({ _, _ in [.head(status, [("Content-Length", "2")]), .send("{}"), .close] }) { origin in
            .fetch(.string(origin.url("/x")), ["retry": ["max": 1, "initial": 0]])
        }
    }

    /// Possible JSON from a server, and the kind of the failure; nil if it is valid.
    private static let documents: [(String, [UInt8], String?)] = [
        ("/arrays", bytes(String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)), "parse"),
        (
            "/objects",
            bytes(String(repeating: #"{"a":"#, count: 100_000) + "1" + String(repeating: "}", count: 100_000)), "parse"
        ),
        ("/unclosed", bytes(String(repeating: #"[{"a":"#, count: 100_000)), "parse"),
        ("/large", bytes("1e999999"), nil), ("/small", bytes("-1e-999999"), nil),
        ("/digits", bytes(String(repeating: "9", count: 10_000)), nil),
        (
            "/fraction",
            bytes("0." + String(repeating: "9", count: 10_000) + "e-" + String(repeating: "9", count: 100)), nil
        ),
        ("/names", bytes("{" + (0..<5000).map { #""a": \#($0)"# }.joined(separator: ", ") + "}"), nil),
        ("/utf-8", [0x22, 0xC3, 0x28, 0x22], "parse"), ("/overlong", [0x22, 0xC0, 0x80, 0x22], "parse"),
        ("/surrogate-bytes", [0x22, 0xED, 0xA0, 0x80, 0x22], "parse"),
        ("/beyond", [0x22, 0xF4, 0x90, 0x80, 0x80, 0x22], "parse"),
        ("/high", bytes(#""\ud800""#), "parse"), ("/low", bytes(#""\udc00""#), "parse"),
        ("/two-high", bytes(#""\ud800\ud800""#), "parse"), ("/pair", bytes(#""\ud83d\ude00""#), nil),
        ("/mark", [0xEF, 0xBB, 0xBF] + bytes("{}"), nil),
        ("/utf-16", [0xFF, 0xFE, 0x7B, 0x00, 0x7D, 0x00], "parse"),
        ("/nul", bytes("{}\0"), "parse"), ("/nothing", [], "parse"), ("/two", bytes("{} {}"), "parse"),
        ("/nan", bytes("NaN"), "parse"), ("/zeros", bytes("007"), "parse"), ("/plus", bytes("+7"), "parse"),
    ]

    private static func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    /// Each one gives a value or a separate failure, the stored data can be read again, and the daemon continues.
    @Test func json_isAValueOrParse_whateverTheServerCallsSo() async throws {
        try await GuidedOrigin.run({ request, _ in
            Self.documents.first { $0.0 == request.path }.map { GuidedOrigin.Reply(body: $0.1) }
                ?? .status("404 Not Found")
        }) { origin in
            try await Household.with { household in
                var jobs: [JSON] = []
                let daemon = try await household.start()
                let wire = try daemon.connect()
                for (path, body, kind) in Self.documents {
                    let job = try await wire.submit(["source": ["type": "json", "url": origin.url(path)]])
                    let ended = try await wire.wait(job)
                    #expect(ended["state"]?.string == (kind == nil ? "succeeded" : "failed"), "\(path)")
                    #expect(ended["error"]?["kind"]?.string == kind, "\(path)")
                    if kind == nil, !["/names", "/pair", "/mark"].contains(path) {
                        #expect(ended["result"]?.description == String(decoding: body, as: UTF8.self), "\(path)")
                    }
                    jobs.append(ended)
                }
                try await daemon.stop()
                let again = try await household.start()
                let other = try again.connect()
                for job in jobs { #expect(try await other.call("job.get", ["job": job["job"] ?? 0]) == job) }
                try await again.stop()
            }
        }
    }

    /// Where a number from a server becomes a number of the daemon.
    @Test(arguments: ["/large", "/digits"]) func number_isInvalid_whenItIsFilledInAndTooLarge(path: String) async throws
    {
        let body = try #require(Self.documents.first { $0.0 == path }?.1)
        try await GuidedOrigin.run({ _, _ in GuidedOrigin.Reply(body: body) }) { origin in
            try await Daemon.run { daemon in
                let wire = try daemon.connect()
                let sources: [JSON] = [
                    ["type": "timer", "seconds": "{{input}}"],
                    ["type": "download", "url": origin.url("/x"), "path": "x", "rate": "{{input}}"],
                    ["type": "download", "url": origin.url("/x"), "path": "x", "segments": "{{input}}"],
                    ["type": "list", "jobs": [["source": ["type": "value", "value": 1]]], "concurrency": "{{input}}"],
                ]
                for source in sources {
                    let error = try await wire.fail([
                        "source": ["type": "json", "url": origin.url(path)], "then": [["then": ["source": source]]],
                    ])
                    #expect(error["kind"] == "invalid", "\(error)")
                }
                let job = try await wire.submit([
                    "source": ["type": "json", "url": origin.url(path)],
                    "then": [["then": ["source": ["type": "value", "value": "{{input}}"]]]],
                ])
                #expect(try await wire.wait(job)["result"]?.description == String(decoding: body, as: UTF8.self))
            }
        }
    }

    private static let openssl = "/usr/bin/openssl"

    @Test(.enabled(if: Files.exists(openssl), "openssl(1) makes and serves the certificate"))
    func job_failsWithTLS_whenCertificateIsSelfSigned() async throws {
        try await Daemon.run { daemon in
            let (key, certificate) = (daemon.directory.path + "/key.pem", daemon.directory.path + "/certificate.pem")
            let made = try await ChildProcess.run([
                Self.openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate,
                "-days",
                "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
            ])
            try #require(made.end == .code(0), "\(made.errors)")
            let server = try ChildProcess([
                Self.openssl, "s_server", "-accept", "127.0.0.1:0", "-key", key, "-cert", certificate, "-www",
            ])
            defer { server.send(signal: SIGKILL) }
            let port = try #require(try await server.line(containing: "ACCEPT").text.split(separator: ":").last)
            let wire = try daemon.connect()
            for host in ["localhost", "127.0.0.1"] {
                let job = try await wire.submit(.fetch(.string("https://\(host):\(port)/")))
                let ended = try await wire.wait(job)
                #expect(ended["error"]?["kind"] == "tls")
                #expect(ended["error"]?["retryable"] == false)
                #expect(ended["error"]?["message"]?.string?.contains("certificate") == true)
            }
        }
    }

    /// A timeout holds whatever the transfer waits for, a descriptor among it.
    @Test func job_ends_whenAllDescriptorsAreInUse() async throws {
        try await ScriptedOrigin.run({ _, _ in [.head("200 OK", [("Content-Length", "2")]), .send("ok")] }) { origin in
            try await Daemon.run { daemon in
                let wire = try daemon.connect()
                _ = try await wire.call("server.info")
                let limit = "/usr/bin/prlimit"
                // No lower number is free, and higher ones are not allowed.
                let used = Set(Files.names(in: "/proc/\(daemon.pid)/fd").compactMap { Int($0) })
                let free = try #require((0...1024).first { !used.contains($0) })
                for (count, state) in [(free, "failed"), (1024, "succeeded")] {
                    let change = try await ChildProcess.run([limit, "--pid", "\(daemon.pid)", "--nofile=\(count):1024"])
                    try #require(change.end == .code(0), "\(change.errors)")
                    let job = try await wire.submit(
                        .fetch(.string(origin.url("/x")), ["timeout": state == "failed" ? 5 : 60, "retry": ["max": 0]]))
                    let ended = try await wire.wait(job)
                    #expect(ended["state"]?.string == state)
                    if state == "failed" {
                        #expect(
                            ended["error"]?["kind"] == "connect" && ended["error"]?["retryable"] == true, "\(ended)")
                    }
                }
            }
        }
    }

    /// Only the job fails, and a daemon restarted in the same directory works too.
    private func survives(
        _ script: @escaping ScriptedOrigin.Script, _ job: @Sendable (ScriptedOrigin) -> JSON
    ) async throws {
        try await ScriptedOrigin.run(script) { origin in
            try await Household.with { household in
                for _ in 1...2 {
                    let daemon = try await household.start()
                    let wire = try daemon.connect()
                    let ended = try await wire.wait(try await wire.submit(job(origin)))
                    #expect(ended["state"] == "failed")
                    #expect(ended["error"]?["kind"] == "network")
                    try await daemon.stop()
                }
            }
        }
    }
}
