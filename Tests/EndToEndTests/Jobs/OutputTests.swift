import Foundation
import Glibc
import JobModel
import TestSupport
import Testing

/// What programs write: read while they run and afterwards, and as their result.
@Suite struct OutputTests {
    private static let configuration = ProgramTests.anyProgram

    private static func shell(_ script: String, _ source: [String: JSON] = [:], _ members: [String: JSON] = [:]) -> JSON
    {
        let program: JSON = ["type": "program", "command": ["/bin/sh", "-c", .string(script)]]
        let spec: JSON = ["source": program.with(source)]
        return spec.with(members)
    }

    /// A named pipe at which a script waits with `: <path`.
    struct Gate {
        let path: String

        init(in directory: TemporaryDirectory, _ name: String = "gate") throws {
            path = directory.path + "/" + name
            try #require(mkfifo(path, 0o600) == 0)
        }

        /// Lets the script go on once it waits there.
        func open() async {
            await withCheckedContinuation { continuation in
                DispatchQueue.global().async { [path] in
                    close(Glibc.open(path, O_WRONLY | O_CLOEXEC))
                    continuation.resume()
                }
            }
        }
    }

    /// The streams of an attempt, as `job.output` gives them.
    private struct Output {
        var (out, err) = ("", "")
        var next = 0
        var omitted = 0
        var isOver = false

        /// Adds the pieces up to the end of what there is, waiting for more until `isEnough`.
        mutating func read(
            _ wire: Wire, _ job: Int, _ params: [String: JSON] = [:], until isEnough: (Output) -> Bool
        ) async throws {
            while !isEnough(self) {
                let answer = try await wire.call(
                    "job.output", JSON.job(job).with(params).with(["offset": JSON(next), "wait": 60]))
                for record in answer["records"]?.array ?? [] {
                    let text = record["text"]?.string ?? "(bytes)"
                    if record["stream"] == "err" { err += text } else { out += text }
                }
                next = try #require(answer["next"]?.int)
                omitted = try #require(answer["omitted"]?.int)
                isOver = answer["end"] == true
            }
        }
    }

    /// All output of an attempt.
    private static func output(
        _ wire: Wire, _ job: Int, _ params: [String: JSON] = [:]
    ) async throws -> Output {
        var output = Output()
        try await output.read(wire, job, params) { $0.isOver }
        return output
    }

    // MARK: - While it runs

    @Test func output_isReadAndFollowed_whileTheProgramRuns() async throws {
        try await Daemon.run(configuration: Self.configuration) { daemon, wire async throws in
            let gate = try Gate(in: daemon.directory)
            let id = try await wire.submit(Self.shell("echo one; echo two >&2; : <'\(gate.path)'; echo three"))
            var output = Output()
            try await output.read(wire, id) { $0.next >= 8 }
            #expect(output.out == "one\n" && output.err == "two\n" && output.next == 8 && !output.isOver)
            // A wait holds up no other call.
            let wait = wire.send("job.output", ["job": JSON(id), "offset": 8, "wait": 60])
            #expect(try await wire.call("job.get", .job(id))["state"] == "running")
            #expect(wire.waiting.isEmpty)
            await gate.open()
            let three = try await wire.result(wait)
            #expect(three["records"] == [["stream": "out", "text": "three\n"]] && three["next"] == 14)
            try await output.read(wire, id) { $0.isOver }
            #expect(output.out == "one\nthree\n" && output.next == 14)
            #expect(try await wire.wait(id)["result"] == ["exit": 0, "output": "one\nthree", "size": 10])
            let whole = try await Self.output(wire, id)
            #expect(whole.out == "one\nthree\n" && whole.err == "two\n" && whole.next == 14)
            // From the middle, and in pieces.
            let part = try await wire.call("job.output", ["job": JSON(id), "offset": 9, "length": 4])
            #expect(
                part == ["records": [["stream": "out", "text": "hree"]], "next": 13, "end": false, "omitted": 0])
            let none = try await wire.call("job.output", ["job": JSON(id), "offset": 14])
            #expect(none == ["records": [], "next": 14, "end": true, "omitted": 0])
        }
    }

    @Test func wait_endsEmpty_atItsTime() async throws {
        try await Daemon.run(configuration: Self.configuration) { _, wire async throws in
            let id = try await wire.submit(Self.shell("exec sleep 1000"))
            let later = try await wire.submit(Self.shell("true", [:], ["delay": 1000]))
            for job in [id, later] {
                #expect(
                    try await wire.call("job.output", ["job": JSON(job), "wait": 0.1])
                        == ["records": [], "next": 0, "end": false, "omitted": 0])
            }
            #expect(try await wire.refusal("job.output", ["job": JSON(id), "wait": 61]).pointer == "/wait")
            // The end of the program ends the wait.
            let wait = wire.send("job.output", ["job": JSON(id), "wait": 60])
            _ = try await wire.call("job.cancel", .job(id))
            #expect(try await wire.result(wait)["end"] == true)
            // So does the end of a job that never ran.
            let waiting = wire.send("job.output", ["job": JSON(later), "wait": 60])
            _ = try await wire.call("job.cancel", .job(later))
            #expect(try await wire.result(waiting)["end"] == true)
        }
    }

    @Test func watch_tellsThatOutputCame() async throws {
        try await Daemon.run(configuration: Self.configuration) { daemon, wire async throws in
            let gate = try Gate(in: daemon.directory)
            let script = "echo one; : <'\(gate.path)'; echo two"
            let id = try await wire.submit(Self.shell(script, [:], ["watch": true]))
            let told = try await wire.next("output") { $0.method == "job.output" }
            #expect(
                told.json["params"]
                    == ["watch": .string(told.watch ?? ""), "job": JSON(id), "link": 0, "attempt": 1, "size": 4])
            await gate.open()
            try await wire.state("succeeded", of: id)
            // All that follows the last state is the answer to this.
            wire.send("server.info")
            wire.finishWriting()
            let rest = try await wire.rest()
            #expect(rest.last?.id != nil && !rest.contains { $0.state == "succeeded" })
            let end = rest.firstIndex { $0.id != nil } ?? 0
            #expect(!rest[end...].contains { $0.method == "job.output" }, "\(rest)")
        }
    }

    // MARK: - After its end

    @Test func output_isKept_howeverTheProgramEnds() async throws {
        try await Daemon.run(configuration: Self.configuration) { daemon, wire async throws in
            let witness = try ProgramTests.Witness(in: daemon.directory)
            let script = "echo a; echo b >&2; echo >'\(witness.path)';"
            let failed = try await wire.submit(Self.shell(script + "exit 3"))
            let error = try #require(try await wire.wait(failed)["error"])
            #expect(error["kind"] == "program" && error["program"]?["exit"] == 3)
            #expect(["a\nb\n", "b\na\n"].contains(error["program"]?["output"]), "\(error)")
            var late: Int
            repeat {
                // On a stalled machine, the time is up before the program has written.
                late = try await wire.submit(Self.shell(script + "exec sleep 1000", [:], ["timeout": 1]))
                #expect(try await wire.wait(late)["error"]?["kind"] == "timeout")
            } while try await Self.output(wire, late).next < 4
            let cancelled = try await wire.submit(Self.shell(script + "exec sleep 1000"))
            var output = Output()
            try await output.read(wire, cancelled) { $0.next == 4 }
            _ = try await wire.call("job.cancel", .job(cancelled))
            #expect(try await wire.wait(cancelled)["state"] == "cancelled")
            for id in [failed, late, cancelled] {
                let output = try await Self.output(wire, id)
                #expect(output.out == "a\n" && output.err == "b\n" && output.next == 4, "\(output)")
            }
        }
    }

    @Test func output_ofEachAttempt_isKept() async throws {
        try await Daemon.run(configuration: Self.configuration) { _, wire async throws in
            let retry: JSON = ["max": 2, "initial": 0.01]
            let link: JSON = ["fail": ["source": ["type": "program", "command": ["/bin/echo", "caught"]]]]
            let id = try await wire.submit(
                Self.shell("echo attempt $DEFERD_ATTEMPT; exit 75", [:], ["retry": retry, "then": [link]]))
            #expect(try await wire.wait(id)["result"]?["output"] == "caught")
            #expect(try await Self.output(wire, id).out == "caught\n")
            for attempt in 1...3 {
                let output = try await Self.output(wire, id, ["link": 0, "attempt": JSON(attempt)])
                #expect(output.out == "attempt \(attempt)\n")
            }
            #expect(try await Self.output(wire, id, ["link": 0]).out == "attempt 3\n")
            for (member, value) in [("attempt", 2), ("link", 2)] as [(String, JSON)] {
                let refused = try await wire.refusal("job.output", JSON.job(id).with([member: value]))
                #expect(refused.code == -32602 && refused.pointer == "/\(member)", "\(refused)")
            }
            let value = try await wire.submit(.value(1))
            #expect(try await wire.refusal("job.output", .job(value)).pointer == "/link")
            #expect(try await wire.refusal("job.output", .job(900)).code == -32001)
            // A job that never runs its program.
            let skipped = try await wire.submit(.value(1, ["then": [link]]))
            _ = try await wire.wait(skipped)
            #expect(
                try await wire.call("job.output", .job(skipped))
                    == ["records": [], "next": 0, "end": true, "omitted": 0])
        }
    }

    @Test func outputOfAKilledDaemon_isThere_untilItsJobIsRemoved() async throws {
        try await Household.with { household async throws in
            var (daemon, wire) = try await household.serve(configuration: Self.configuration)
            let id = try await wire.submit(Self.shell("echo before; exec sleep 1000"))
            var output = Output()
            try await output.read(wire, id) { $0.next == 7 }
            try await daemon.crash()
            (daemon, wire) = try await household.serve(configuration: Self.configuration)
            #expect(try await wire.wait(id)["error"]?["kind"] == "interrupted")
            #expect(try await Self.output(wire, id).out == "before\n")
            #expect(Files.names(in: daemon.state + "/bodies").count == 1)
            _ = try await wire.call("job.remove", .job(id))
            try await daemon.stop()
            #expect(Files.names(in: daemon.state + "/bodies").isEmpty)
        }
    }

    // MARK: - Result

    @Test func bytes_thatAreNotUTF8_doNoHarm() async throws {
        try await Daemon.run(configuration: Self.configuration) { _, wire async throws in
            let bytes = Data([0x63, 0x61, 0x66, 0xe9, 0x0a])
            let base64 = JSON.string(bytes.base64EncodedString())
            let id = try await wire.submit(Self.shell("printf 'caf\\351\\n'"))
            #expect(
                try await wire.wait(id)["result"]
                    == ["exit": 0, "output": base64, "encoding": "base64", "size": 5])
            #expect(
                try await wire.call("job.output", .job(id)) == [
                    "records": [["stream": "out", "base64": base64]], "next": 5, "end": true, "omitted": 0,
                ])
            #expect(try await wire.call("job.result", .job(id))["data"] == base64)
        }
    }

    // MARK: - Bounds

    @Test func program_thatWritesALot_runsOn_andBothEndsAreKept() async throws {
        let configuration = """
            limits: {output: 1000}
            programs: {any: true, small: {command: [/bin/seq], output: 100}}

            """
        try await Daemon.run(configuration: configuration) { daemon, wire async throws in
            #expect(try await wire.call("server.info")["limits"]?["output"] == 1000)
            let numbers = (1...100_000).map { "\($0)\n" }.joined()
            let small: JSON = ["source": ["type": "program", "program": "small", "arguments": ["100000"]]]
            for (spec, half) in [(Self.shell("seq 100000"), 500), (small, 50)] {
                let kept = String(numbers.prefix(half) + numbers.suffix(half))
                let omitted = numbers.utf8.count - 2 * half
                let id = try await wire.submit(spec)
                let result = try await wire.wait(id)["result"]
                #expect(
                    result == [
                        "exit": 0, "output": .string(String(kept.dropLast())), "size": JSON(numbers.utf8.count),
                        "omitted": JSON(omitted),
                    ])
                let output = try await Self.output(wire, id)
                #expect(output.out == kept && output.omitted == omitted && output.next == numbers.utf8.count)
                let data = try await wire.call("job.result", .job(id))["data"]?.string
                #expect(Data(base64Encoded: data ?? "") == Data(kept.utf8))
            }
            #expect(Files.names(in: daemon.state + "/bodies").count == 2)
            for name in Files.names(in: daemon.state + "/bodies") {
                #expect(try Files.bytes(daemon.state + "/bodies/" + name).count < 3000)
            }
        }
    }
}
