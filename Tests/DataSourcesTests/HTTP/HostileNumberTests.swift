import DataSources
import JobModel
import LoopTasks
import NIOCore
import NIOEmbedded
import Testing
import TestOrigin

/// Numbers that servers write, at the ends of their ranges and beyond: none of them may end the process.
@Suite struct HostileNumberTests {
    @Test(
        arguments: ["url", "json", "download"],
        ["000 X", "001 X", "099 X", "101 Switching Protocols", "999 X", "65536 X"])
    func status_isAFailure_whenItEndsNoExchange(type: String, status: String) async throws {
        try await ScriptedOrigin.run({ _, _ in [.head(status, [("Content-Length", "2")]), .send("{}"), .close] }) {
            origin in
            try await Workbench.run { bench in
                let error = try await bench.failure(source(type, origin))
                #expect(error.kind == (status == "999 X" ? .http : .network))
            }
        }
    }

    @Test(
        arguments: ["url", "json", "download"],
        [
            "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "-1", "+5",
            "",
            "99999999999999999999999999999999999999", "0x10", "5, 5", "-9223372036854775808",
        ])
    func length_isAFailure_whenNoBodyHasIt(type: String, length: String) async throws {
        let script: ScriptedOrigin.Script = { _, _ in
            [.head("200 OK", [("Content-Length", length)]), .send("{}"), .close]
        }
        try await ScriptedOrigin.run(script) { origin in
            try await Workbench.run { bench in
                // Which one it is depends on whether the number can be read, but there is one, and the next job runs.
                let error = try await bench.failure(source(type, origin))
                #expect([.network, .tooLarge].contains(error.kind))
            }
        }
    }

    @Test(arguments: [
        "bytes 3-9223372036854775807/*", "bytes 3-9223372036854775806/*",
        "bytes 3-9223372036854775806/9223372036854775807",
        "bytes 3-9223372036854775807/9223372036854775807", "bytes 9223372036854775807-9223372036854775807/*",
        "bytes 3--1/*", "bytes 3-5/-1", "bytes 3-99999999999999999999/*", "bytes 3-5/99999999999999999999",
    ])
    func resume_doesNotTrust_rangesAtTheEnd(range: String) async throws {
        let script: ScriptedOrigin.Script = { request, count in
            if count == 0 {
                return [.head("200 OK", [("Content-Length", "6"), ("ETag", "\"a\"")]), .send("abc"), .close]
            }
            guard request.headers["range"] != nil else {
                return [.head("200 OK", [("Content-Length", "6"), ("ETag", "\"a\"")]), .send("abcdef")]
            }
            return [
                .head("206 Partial Content", [("Content-Range", range), ("ETag", "\"a\"")]), .send("def"), .close,
            ]
        }
        try await ScriptedOrigin.run(script) { origin in
            try await Workbench.run { bench in
                let source = source("download", origin)
                #expect(try await bench.failure(source).kind == .network)
                // Where the range can be meant, the transfer ends too early; else it begins again.
                do {
                    _ = try await bench.result(source, attempt: 2)
                    #expect(bench.bytes(of: bench.downloads + "/x") == Array("abcdef".utf8))
                } catch let error as JobError {
                    #expect(error.kind == .network)
                }
            }
        }
    }

    @Test(arguments: [
        "9223372036854775807", "18446744073709551616", "-9223372036854775808", "1e400", "Fri, 31 Dec 9999 23:59:59 GMT",
    ])
    func retryAfter_isANumberOfSeconds_whateverTheServerWrites(value: String) async throws {
        try await ScriptedOrigin.run(Misbehaviour.busy("503 Busy", retryAfter: value)) { origin in
            try await Workbench.run { bench in
                let error = try await bench.failure(source("url", origin))
                #expect(error.kind == .http)
                #expect(error.json["http"]?["status"] == 503)
                #expect(Timestamp(milliseconds: 0).adding(seconds: error.retryAfter ?? 0) > Timestamp(milliseconds: -1))
            }
        }
    }

    @Test(arguments: [0, 1e-9, 1, 3e9, 9.3e18, 1e300, .infinity, -.infinity, -1, .nan])
    func pause_fitsALoopsClock_whateverTheSeconds(seconds: Double) async throws {
        let pause = TimeAmount.seconds(saturating: seconds)
        #expect(pause >= .zero)
        #expect(NIODeadline.now() + pause >= NIODeadline.now() - .seconds(60))
        let loop = EmbeddedEventLoop()
        loop.scheduleTask(in: pause) {}.cancel()
    }

    private func source(_ type: String, _ origin: ScriptedOrigin) -> JSON {
        var source = JSONObject()
        source["type"] = .string(type)
        source["url"] = .string(origin.url("/x"))
        if type == "download" { source["path"] = "x" }
        return .object(source)
    }
}
