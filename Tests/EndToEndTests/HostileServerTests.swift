import JobModel
import TestOrigin
import Testing

/// Servers that try to end the daemon: it goes on, and so it does when it is started again.
@Suite struct HostileServerTests {
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

    /// The job fails by itself, and a daemon started again in the same folder serves as well.
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
