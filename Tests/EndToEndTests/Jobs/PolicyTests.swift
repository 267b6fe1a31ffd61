import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// Where the daemon connects to, and what it sends there, for any user and any spelling of a URL.
@Suite struct PolicyTests {
    /// Spellings of 127.0.0.1, and how each is treated.
    private static let spellings: [(host: String, kinds: Set<String>)] =
        [
            "127.0.0.1", "127.0.0.1.", "2130706433", "017700000001", "0x7f000001", "0X7F000001", "127.1", "127.0.1",
            "0177.0.0.1", "0x7f.1", "0177.0x0.0.01", "0", "0.0.0.0", "0x0", "[::ffff:127.0.0.1]", "[::FFFF:7F00:1]",
            "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]", "[::]", "[::1]",
            "[0:0:0:0:0:0:0:1]", "[::1%25lo]", "[::1%lo]", "[::ffff:127.0.0.1%25lo]", "localhost", "localhost.",
            "LOCALHOST", "LocalHost.", "\u{FF11}\u{FF12}\u{FF17}.0.0.1", "127\u{3002}0\u{FF0E}0\u{FF61}1",
            "\u{2460}\u{2461}\u{2466}.0.0.1", "\u{FF4C}ocalhost", "127.0.0.2@127.0.0.1", "127.0.0.2:80@localhost",
        ].map { ($0, ["policy"]) }
        // These are not hosts.
        + [
            "127.0.0.%31", "%31%32%37.0.0.1", "%6cocalhost", "local%68ost", "127.0.0.1%2f", "127.0.0.1\\@127.0.0.2",
            "127..1", "127.0.0.1..", "[127.0.0.1]", "[::1", "127.0.0.1%00.example",
        ].map { ($0, ["invalid", "http"]) }

    /// How specs end, which run at the same time: refused at once, or when they run.
    private func ends(_ specs: [JSON], _ wire: Wire) async throws -> [(kind: String, error: JSON)] {
        let requests = specs.map { wire.send("job.submit", $0.with(["retry": ["max": 0]])) }
        var answers: [JSON] = []
        for request in requests { answers.append(try await wire.answer(JSON(request))) }
        var ends: [(kind: String, error: JSON)] = []
        for answer in answers {
            if let error = answer["error"] {
                let code = error["code"]?.int ?? 0
                ends.append(([-32002: "policy", -32602: "invalid"][code] ?? "\(code)", error))
            } else {
                let job = try await wire.wait(answer["result"]?["job"]?.int ?? 0)
                ends.append((job["error"]?["kind"]?.string ?? "none", job["error"] ?? job))
            }
        }
        return ends
    }

    /// By every way to it: the URL, a mirror, the target of an upload, and redirects of each.
    @Test func deniedAddress_isNotConnectedTo_howeverItIsWritten() async throws {
        let denied = try WatchedPort("127.0.0.1")
        let urls = Self.spellings.map { "http://\($0.host):\(denied.port)/" }
        let rule: GuidedOrigin.Rule = { request, _ in
            let names = request.path.split(separator: "/")
            guard names.count == 2, let index = Int(names[1]) else { return .status("404 Not Found") }
            return .status("\(names[0]) Moved", [("Location", urls[index])])
        }
        try await GuidedOrigin.withDaemon(
            at: "127.0.0.2", rule, configuration: "policy: {denyAddresses: [127.0.0.1/32, \"::1\"]}\n"
        ) { origin, daemon, wire in
            try FileManager.default.createDirectory(atPath: daemon.downloads, withIntermediateDirectories: true)
            try Data("text".utf8).write(to: URL(filePath: daemon.downloads + "/sent"))
            for (index, (host, kinds)) in Self.spellings.enumerated() {
                let url = JSON.string(urls[index])
                let moved = origin.url("/302/\(index)")
                let specs: [JSON] = [
                    .fetch(url), .download(url, to: "x0"),
                    ["source": ["type": "upload", "url": url, "path": "sent"]],
                    .value(url, ["then": [.fetching("{{input}}")]]), .fetch(moved),
                    .download(moved, to: "x1", ["segments": 4]),
                    ["source": ["type": "upload", "url": origin.url("/307/\(index)"), "path": "sent"]],
                    .download(origin.url("/gone"), to: "x2", ["mirrors": [url]]),
                ]
                for (spec, end) in zip(specs, try await ends(specs, wire)) {
                    let mirror = end.error["failures"]?[1]?["kind"]?.string
                    #expect(kinds.contains(mirror ?? end.kind), "\(host): \(spec) \(end.error)")
                }
            }
            #expect(!denied.wasConnectedTo)
            #expect(Files.names(in: daemon.downloads) == ["sent"])
        }
    }

    /// Existing connections were allowed by rules that no longer apply.
    @Test func keptConnection_isNotUsed_whenItsAddressIsDeniedByNow() async throws {
        try await GuidedOrigin.withDaemon({ _, _ in .text("new") }) { origin, daemon, wire in
            let spec = JSON.fetch(origin.url("/x", host: "localhost"))
            _ = try await wire.succeed(spec)
            try await daemon.reload("policy: {denyAddresses: [127.0.0.0/8, \"::1\"]}\n")
            #expect(try await ends([spec], wire).map(\.kind) == ["policy"])
            #expect(origin.count("/x") == 1)
        }
    }

    // MARK: Headers

    /// Text from a server cannot end a line of a request to another server.
    @Test func headerField_holdsNoLineBreak_whateverIsFilledIn() async throws {
        try await GuidedOrigin.withDaemon({ _, _ in .text("kept") }) { origin, daemon, wire in
            try FileManager.default.createDirectory(atPath: daemon.downloads, withIntermediateDirectories: true)
            try Data("text".utf8).write(to: URL(filePath: daemon.downloads + "/sent"))
            let wrong = [
                "a\r\nX-Injected: secret", "a\nX-Injected: secret", "a\rX-Injected: secret", "secret\u{0}",
                "secret\u{7F}", "secret\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n", "\r\n secret",
            ]
            let sources: [JSON] = [
                ["type": "url", "url": origin.url("/x")], ["type": "json", "url": origin.url("/x")],
                ["type": "download", "url": origin.url("/x"), "path": "x"],
                ["type": "upload", "url": origin.url("/x"), "path": "sent"],
            ]
            func filled(_ source: JSON, _ members: [String: JSON], _ value: String) -> JSON {
                .value(.string(value), ["then": [["then": ["source": source.with(members)]]]])
            }
            for value in wrong {
                for source in sources {
                    let texts = ["{{input}}", "Bearer {{input}}"]
                    let specs = texts.map { filled(source, ["headers": ["X-Given": .string($0)]], value) }
                    for (kind, error) in try await ends(specs, wire) {
                        let message = error["message"]?.string ?? ""
                        #expect(["invalid", "template"].contains(kind) && error["link"] == 1, "\(error)")
                        #expect(message.lowercased().contains("header field"), "\(error)")
                        #expect(!message.contains("secret"), "\(error)")
                    }
                    let literal: JSON = ["source": source.with(["headers": ["X-Given": .string(value)]])]
                    let refusal = try await wire.refusal("job.submit", literal)
                    #expect(refusal.code == -32602 && refusal.pointer == "/source/headers/X-Given", "\(refusal)")
                }
                let specs = ["method", "ifNoneMatch"].map { filled(sources[0], [$0: "{{input}}"], value) }
                for (kind, error) in try await ends(specs, wire) {
                    #expect(["invalid", "template"].contains(kind), "\(error)")
                }
            }
            #expect(origin.requests.isEmpty)
            // And plain text arrives.
            let good = filled(sources[0], ["headers": ["X-Given": "Bearer {{input}}"]], "a: b\tc")
            _ = try await wire.succeed(good)
            #expect(origin.requests.last?.headers["x-given"] == "Bearer a: b\tc")
        }
    }
}
