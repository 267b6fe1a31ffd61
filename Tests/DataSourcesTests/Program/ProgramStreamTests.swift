import DataSources
import DeferredKit
import Foundation
import Glibc
import JobModel
import NIOCore
import NIOEmbedded
import NIOPosix
import Synchronization
import SystemPackage
import Testing

/// The input of programs, and what becomes of their output.
@Suite struct ProgramStreamTests {
    @Test func output_isText_lessOneFinalNewline() async throws {
        try await ProgramSourceTests.run { bench async throws in
            let results: [(script: String, output: JSON, size: Int)] = [
                ("echo '{\"a\": [1, 2]}'", "{\"a\": [1, 2]}", 14), ("echo 007", "007", 4), ("true", "", 0),
                ("printf 'a\\n\\n'", "a\n", 3), ("echo", "", 1), ("printf 'x'", "x", 1),
                ("echo no >&2; echo x", "x", 2),
                // A command does not report progress unless it is asked to.
                ("echo '{\"progress\":{\"completed\":1}}'", "{\"progress\":{\"completed\":1}}", 29),
            ]
            for (script, output, size) in results {
                let result = try await bench.result(ProgramSourceTests.shell(script))
                #expect(result == ["exit": 0, "output": output, "size": JSON(size)], "\(script)")
            }
            let lines = "echo '{\"progress\":{\"completed\":1}}'; echo x; echo '{\"progress\":{\"completed\":2}}'"
            #expect(
                try await bench.result(ProgramSourceTests.configured(lines)) == ["exit": 0, "output": "x", "size": 2])
        }
    }

    @Test func output_isParsed_orLeftOut_whereTheSpecSaysSo() async throws {
        try await ProgramSourceTests.run { bench async throws in
            let results: [(script: String, value: JSON)] = [
                ("echo '{\"a\": [1, 2]}'", ["a": [1, 2]]), ("echo 42", 42), ("echo '\"a\"'; echo", "a"),
            ]
            for (script, value) in results {
                #expect(
                    try await bench.result(ProgramSourceTests.shell(script, ["output": "json"]))["output"] == value,
                    "\(script)")
            }
            for script in ["true", "echo 1 2", "printf '\\377'"] {
                let error = try await bench.failure(ProgramSourceTests.shell(script, ["output": "json"]))
                #expect(error.kind == .parse && !error.isRetryable, "\(script)")
            }
            #expect(
                try await bench.result(ProgramSourceTests.shell("echo x", ["output": "none"])) == [
                    "exit": 0, "size": 2,
                ])
        }
    }

    @Test func input_isALineOfJSON_orBytes_thenEnds() async throws {
        try await ProgramSourceTests.run { bench async throws in
            let input: JSON = ["text": "a\nb", "list": [1, nil]]
            let json: [String: JSON] = ["input": input, "output": "json"]
            #expect(
                try await bench.result(ProgramSourceTests.shell("read -r line; printf %s \"$line\"; cat", json))[
                    "output"] == input)
            #expect(try await bench.result(ProgramSourceTests.shell("cat; wc -c"))["output"] == "0")
            #expect(
                try await bench.result(ProgramSourceTests.shell("od -An -tx1", ["input": "\"a\""]))["output"]
                    == " 22 61 22")
            #expect(
                try await bench.result(ProgramSourceTests.shell("od -An -tx1", ["inputBase64": "/wAK"]))["output"]
                    == " ff 00 0a")
            // One that is never read, in memory and in a file.
            for size in [10, 1 << 20] {
                let text = String(repeating: "x", count: size)
                #expect(
                    try await bench.result(ProgramSourceTests.shell("echo 1", ["input": .string(text)]))["output"]
                        == "1")
                #expect(
                    try await bench.result(ProgramSourceTests.shell("wc -c", ["input": .string(text)]))["output"]
                        == .string("\(size)"))
            }
            #expect(try await bench.result(ProgramSourceTests.shell("cat", ["input": nil]))["output"] == "null")
        }
    }

    @Test func largeOutput_isWhole() async throws {
        try await ProgramSourceTests.run { bench async throws in
            let result = try await bench.result(ProgramSourceTests.shell("head -c 3000000 /dev/zero | tr '\\0' x"))
            #expect(result == ["exit": 0, "spilled": true, "size": 3_000_000])
            #expect(bench.bytes(of: bench.bodyPath) == [UInt8](repeating: UInt8(ascii: "x"), count: 3_000_000))
            let numbers = try await bench.result(
                ProgramSourceTests.shell("echo '['; seq -s, 100000; echo ']'", ["output": "json"]))
            #expect(numbers["output"]?.array?.count == 100_000)
            // With lines of progress, which the log has too.
            let told = "for i in $(seq 20000); do echo \"{\\\"progress\\\":{\\\"completed\\\":$i}}\"; echo $i; done"
            let size = (1...20_000).reduce(0) { $0 + "\($1)\n".utf8.count }
            #expect(
                try await bench.result(ProgramSourceTests.configured(told)) == [
                    "exit": 0, "spilled": true, "size": JSON(size),
                ])
            #expect(
                bench.bytes(of: bench.bodyPath) == Array((1...20_000).map { "\($0)\n" }.joined().utf8))
        }
    }

    @Test func output_withoutRoomInTheQuota_isDropped_andCounted() async throws {
        try await ProgramSourceTests.run { bench async throws in
            // The log has room for one block of 64 KiB, the result for what is left.
            bench.roomForBody.withLock { $0 = 100_000 }
            let script = "head -c 3000000 /dev/zero | tr '\\0' x"
            #expect(
                try await bench.result(ProgramSourceTests.shell(script))
                    == ["exit": 0, "size": 3_000_000, "omitted": 3_000_000])
            #expect(bench.bytes(of: bench.bodyPath) == nil)
            bench.roomForBody.withLock { $0 = 1000 }
            // A short result needs no log.
            #expect(
                try await bench.result(ProgramSourceTests.shell("echo x")) == ["exit": 0, "output": "x", "size": 2])
            bench.roomForBody.withLock { $0 = 1 }
            #expect(try await bench.result(ProgramSourceTests.shell("echo x")) == ["exit": 0, "size": 2, "omitted": 2])
        }
    }

    @Test func output_withoutRoomOnTheDisk_isLeftOut_andCounted() async throws {
        var files = FileOperations.real
        files.openBeneath = { directory, path, flags, mode throws(Errno) in
            // The log has taken the rest.
            if path == "body" { throw Errno.noSpace }
            return try FileOperations.real.openBeneath(directory, path, flags, mode)
        }
        try await ProgramSourceTests.run(files: files) { bench async throws in
            let script = "head -c 300000 /dev/zero | tr '\\0' x"
            #expect(
                try await bench.result(ProgramSourceTests.shell(script))
                    == ["exit": 0, "size": 300_000, "omitted": 300_000])
        }
    }

    @Test func output_beyondItsBound_losesItsMiddle() async throws {
        var entry = ProgramSettings.Entry(command: ["/bin/sh", "-c"])
        entry.output = 1000
        try await ProgramSourceTests.run(["small": entry]) { bench async throws in
            func source(_ script: String, _ output: JSON = "text") -> JSON {
                ["type": "program", "program": "small", "arguments": [.string(script)], "output": output]
            }
            let whole = try await bench.result(source("head -c 1000 /dev/zero | tr '\\0' x"))
            #expect(whole["output"]?.string?.utf8.count == 1000 && whole["omitted"] == nil)
            let numbers = (1...10_000).map { "\($0)\n" }.joined().utf8
            let result = try await bench.result(source("seq 10000"))
            let text = String(decoding: Array(numbers.prefix(500) + numbers.suffix(500).dropLast()), as: UTF8.self)
            #expect(result["output"] == .string(text))
            #expect(result["size"] == JSON(numbers.count) && result["omitted"] == JSON(numbers.count - 1000))
            let error = try await bench.failure(source("seq 10000; echo 1", "json"))
            #expect(error.kind == .parse && error.message.contains("limits.output"), "\(error.message)")
            // Lines of progress and standard error take nothing from a short result.
            let told =
                "for i in $(seq 100); do echo \"{\\\"progress\\\":{\\\"completed\\\":$i}}\"; echo no >&2; done; echo 1"
            #expect(try await bench.result(source(told)) == ["exit": 0, "output": "1", "size": 2])
        }
    }

    @Test func progress_isReportedInTheProgramsUnit() async throws {
        try await ProgramSourceTests.run { bench async throws in
            let seen = Mutex<[ProgressUpdate]>([])
            let running = try bench.start(
                ProgramSourceTests.configured("echo '{\"progress\":{\"completed\":1,\"total\":3,\"unit\":\"frames\"}}'")
            )
            running.onProgress { update in seen.withLock { $0.append(update) } }
            #expect(try await running.get()["output"] == "")
            #expect(seen.withLock(\.self).last == ProgressUpdate(completed: 1, total: 3))
        }
    }

    @Test func endlessProgress_isRead_untilItIsCancelled() async throws {
        try await ProgramSourceTests.run { bench async throws in
            let lines = "yes '{\"progress\":{\"completed\":1}}'"
            #expect(
                try await bench.result(ProgramSourceTests.configured(lines + " | head -c 290000; echo 1"))
                    == ["exit": 0, "output": "1", "size": 2])

            let endless = try bench.start(ProgramSourceTests.configured("exec " + lines))
            #expect(try await ProgramSourceTests.progress(of: endless) == 1)
            endless.cancel()
            #expect(try await bench.failure(of: endless).kind == .cancelled)
        }
    }
}
