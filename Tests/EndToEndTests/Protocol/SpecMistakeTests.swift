import JobModel
import TestOrigin
import TestSupport
import Testing

/// Mistakes in specs: all at once, with their place in the text.
@Suite struct SpecMistakeTests {
    @Test func mistakes_areAllAnswered() async throws {
        try await Daemon.run { _, wire in
            for method in ["job.submit", "job.explain"] {
                let error = try await wire.refusal(
                    method, ["priorty": 1, "source": ["type": "timer", "seconds": "x"]])
                #expect(error.data["pointer"] == "/priorty")
                #expect(
                    error.data["mistakes"]?.array?.compactMap { $0["pointer"]?.string } == [
                        "/priorty", "/source/seconds",
                    ], "\(error)")
                #expect(error.data["reason"]?.string?.contains("did you mean \"priority\"?") == true)
                let one = try await wire.refusal(method, ["source": ["type": "timer", "seconds": "x"]])
                #expect(one.data["mistakes"] == nil)
            }
        }
    }

    @Test func deferctl_showsThemInTheText() async throws {
        try await Daemon.run { daemon in
            let yaml = "source:\n  type: ulr\n  url: http://h/\nlabel: 5\n"
            let path = try daemon.directory.write(yaml, to: "job.yaml")
            for words in [["explain", path], ["submit", "--dry-run", path], ["submit", path]] {
                let said = try await daemon.deferctl(words, end: .code(65)).errorText
                #expect(said.contains("\(path):2:3: \"type\" must be one of"), "\(said)")
                #expect(said.contains("did you mean \"url\"?\n    type: ulr\n\(path):4:1: \"label\""), "\(said)")
            }
            let json = try daemon.directory.write("{\n \"source\": {},\n}\n", to: "job.json")
            let said = try await daemon.deferctl(["submit", json], end: .code(65)).errorText
            #expect(said.contains("line 3, column 1: a member's name is missing, found `}`"), "\(said)")
        }
    }

    @Test func explain_showsTheSpecAsItWouldRun_andDryRunSubmitsNothing() async throws {
        try await Daemon.run { daemon in
            let path = try daemon.directory.write("source: {type: timer, seconds: 1}\n", to: "job.yml")
            let shown = try await daemon.deferctl(["explain", "--json", path]).outputText
            #expect(try JSON(parsing: shown)["queue"] == "default")
            #expect(try await daemon.deferctl(["submit", "--dry-run", path]).outputText.isEmpty)
            #expect(try await daemon.deferctl(["list"]).outputText.contains("JOB") == false)
            let job = try await daemon.deferctl(["submit", path]).outputText
            #expect(job == "1\n")
        }
    }

    @Test func json_isSentAsTheBody() async throws {
        try await TestOrigin.run { origin in
            origin["/hook"] = OriginResource(text: "noted")
            try await Daemon.run { daemon, wire in
                let text = #"It said "no" \ at {{"#
                let step: JSON = [
                    "type": "url", "url": .string(origin.url("/hook")),
                    "json": ["text": "{{error/message}}", "n": [1]],
                ]
                _ = try await wire.succeed([
                    "source": ["type": "error", "message": .string(text)], "then": [["fail": ["source": step]]],
                ])
                let request = try #require(origin.log.last("/hook"))
                #expect(request.method == "POST" && request.headers["content-type"] == "application/json")
                #expect(try JSON(parsing: request.body) == ["text": .string(text), "n": [1]])
                let words = ["fetch", "--method", "PUT", "--data-json", "[null]", origin.url("/hook")]
                _ = try await daemon.deferctl(words)
                #expect(origin.log.last("/hook")?.method == "PUT")
                #expect(origin.log.last("/hook")?.body == Array("[null]".utf8))
            }
        }
    }
}
