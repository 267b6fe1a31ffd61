import Glibc
import InMemoryStore
import JobModel
import JobCore
import JobEngine
import Synchronization
import TestOrigin
import Testing

/// What each kind of step comes to.
@Suite struct StepTests {
    private static let object: JSON = ["type": "value", "value": ["a": 1]]
    private static let failing: JSON = ["type": "error", "kind": "mine", "message": "No."]

    private static func after(_ link: JSON, source: JSON = object) -> JSON {
        ["source": source, "label": "mine", "then": [link]]
    }

    @Test(
        arguments: [
            (object, ["both": ["return": "{{input}}"]], ["a": 1]),
            (object, ["then": ["return": "{{input/a}} {{job/label}} {{job/attempt}}"]], "1 mine 1"),
            (failing, ["fail": ["return": "{{error/kind}}"]], "mine"),
        ] as [(JSON, JSON, JSON)])
    func step_givesAValue(_ source: JSON, _ link: JSON, _ result: JSON) async throws {
        try await TestEngine.with { test in
            let row = try await test.run(Self.after(link, source: source))
            #expect(try test.result(of: row) == result)
        }
    }

    @Test(
        arguments: [
            (failing, ["then": ["return": 1]], "mine", 0),
            (object, ["then": ["throw": ["kind": "odd", "message": "Got {{input/a}}."]]], "odd", 1),
            (["type": "list", "jobs": [], "mode": "all"], ["then": ["return": "{{input/5}}"]], "template", 1),
        ] as [(JSON, JSON, String, Int)])
    func step_fails(_ source: JSON, _ link: JSON, _ kind: String, _ number: Int) async throws {
        try await TestEngine.with { test in
            let error = try #require(try await test.run(Self.after(link, source: source)).carried?.error)
            #expect(error.kind.rawValue == kind && error.link == number)
            if kind == "odd" { #expect(error.message == "Got 1.") }
        }
    }

    @Test func timer_goesOn_whenItsTimeHasCome() async throws {
        try await TestEngine.with { test in
            let row = try await test.run(["source": ["type": "timer", "seconds": 0.01]])
            #expect(row.state == .succeeded)
            #expect(test.store.rows.counts.values.reduce(0) { $0 + $1.jobs } == 1)
        }
    }

    @Test func program_givesItsOutput() async throws {
        try await TestEngine.with { test in
            let program: JSON = [
                "type": "program", "command": ["/bin/sh", "-c", "echo [$(cat)]"], "input": "{{input/a}}",
            ]
            let row = try await test.run(Self.after(["then": ["source": program]]))
            #expect(try test.result(of: row) == ["exit": 0, "output": "[1]", "size": 4])
            let failing: JSON = ["type": "program", "command": ["/bin/sh", "-c", "exit 3"], "input": "{{input/a}}"]
            let failed = try await test.run(Self.after(["then": ["source": failing]]))
            #expect(failed.carried?.error?.kind.rawValue == "program")
        }
    }

    @Test func program_thatIsCancelled_isToldToEnd_andAnswered() async throws {
        try await TestEngine.with { test in
            let path = test.directory + "/fifo"
            mkfifo(path, 0o600)
            let script = "trap 'exit 0' TERM; echo > \(path); while :; do sleep 0.01; done"
            let job = try await test.submit([
                "source": ["type": "program", "command": ["/bin/sh", "-c", .string(script)]]
            ])
            #expect(try await test.engine.blocking(for: 0) { try SystemFile.contents(path) } == Array("\n".utf8))
            guard case .changed = await test.engine.ask(.change(job, .cancel), for: TestEngine.user) else {
                throw TestEngine.Unexpected("It was not cancelled.")
            }
            #expect(try await test.end(of: job).state == .cancelled)
        }
    }

    @Test func url_givesItsResponse() async throws {
        try await TestOrigin.run { origin in
            origin["/x"] = OriginResource(text: "hello")
            try await TestEngine.with { test in
                let row = try await test.run(["source": ["type": "url", "url": .string(origin.url("/x"))]])
                #expect(try test.result(of: row)["body"] == "hello")
            }
        }
    }

    @Test func url_inALink_asksItsHostFirst() async throws {
        try await TestOrigin.run { origin in
            origin["/1"] = OriginResource(text: "hello")
            try await TestEngine.with { test in
                let source: JSON = ["type": "url", "url": .string(origin.url("/{{input/a}}"))]
                let row = try await test.run(Self.after(["then": ["source": source]]))
                #expect(try test.result(of: row)["status"] == 200)
            }
        }
    }

    @Test func policy_failsALink_whoseExpressionNamesAForbiddenURL() async throws {
        try await TestEngine.with { test in
            let source: JSON = ["type": "url", "url": "ftp{{input/a}}://x/"]
            let row = try await test.run(Self.after(["then": ["source": source]]))
            #expect([.policy, .invalid].contains(row.carried?.error?.kind))
        }
    }

    @Test func hosts_haveNoMoreConnectionsThanAllowed() async throws {
        try await TestOrigin.run { origin in
            origin["/x"] = OriginResource(text: "hello")
            try await TestEngine.with {
                $0.core.perHost = 1
            } _: { test in
                var jobs: [JobID] = []
                for _ in 0..<20 {
                    let link: JSON = ["then": ["source": ["type": "url", "url": .string(origin.url("/x"))]]]
                    jobs.append(try await test.submit(Self.after(link)))
                }
                for job in jobs { #expect(try await test.end(of: job).state == .succeeded) }
            }
        }
    }

    @Test func download_writesItsFile_andRemembersIt() async throws {
        try await TestOrigin.run { origin in
            origin["/x"] = OriginResource(text: "hello", etag: "\"1\"")
            try await TestEngine.with { test in
                let row = try await test.run(
                    ["source": ["type": "download", "url": .string(origin.url("/x")), "path": "here"]])
                #expect(row.state == .succeeded)
                let path = try #require(try test.result(of: row)["path"]?.string)
                #expect(try SystemFile.contents(path) == Array("hello".utf8))
                #expect(test.store.download(to: path) != nil)
            }
        }
    }

    @Test func segments_getFurtherConnections() async throws {
        try await TestOrigin.run { origin in
            origin["/x"] = OriginResource([UInt8](repeating: 7, count: 4 << 20), etag: "\"1\"")
            try await TestEngine.with { test in
                let row = try await test.run([
                    "source": ["type": "download", "url": .string(origin.url("/x")), "path": "here", "segments": 4]
                ])
                let path = try #require(try test.result(of: row)["path"]?.string)
                #expect(try SystemFile.contents(path).count == 4 << 20)
                #expect(origin.log.entries.count > 1)
            }
        }
    }

    @Test func keys_joinJobsOfTheSameSpec_whateverTheOrderOfMembers() async throws {
        try await TestEngine.with { test in
            let first = try await test.submit(["source": ["type": "value", "value": ["a": 1, "b": 2]], "key": "k"])
            let second = try await test.submit(["key": "k", "source": ["value": ["b": 2, "a": 1], "type": "value"]])
            #expect(first == second)
            await #expect(throws: CoreError.self) {
                try await test.submit(["source": ["type": "value", "value": ["a": 2, "b": 1]], "key": "k"])
            }
        }
    }
}
