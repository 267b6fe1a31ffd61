import DataSources
import JobModel
import LoopTasks
import NIOCore
import NIOEmbedded
import Testing
import TestOrigin

/// Numbers that servers write, at the ends of their ranges and beyond: none of them may end the process.
@Suite struct HostileNumberTests {
    private static let types = ["url", "json", "download", "upload"]

    @Test(
        arguments: types,
        [
            "000 X", "001 X", "099 X", "99 X", "101 Switching Protocols", "999 X", "1000 X", "65536 X", "99999999999 X",
            "18446744073709551816 X", "-200 X", "+200 X", "0xC8 X", "2OO X",
        ])
    func status_isAFailure_whenItEndsNoExchange(type: String, status: String) async throws {
        try await Workbench.run(
            against: { _, _ in [.head(status, [("Content-Length", "2")]), .send("{}"), .close] }
        ) { origin, bench in
            let error = try await bench.failure(source(type, origin, bench))
            #expect(error.kind == (status == "999 X" ? .http : .network))
        }
    }

    @Test(
        arguments: types,
        [
            "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "-1", "+5",
            "",
            "99999999999999999999999999999999999999", "0x10", "5, 2", "2 2", "2;", "1e1",
            "-9223372036854775808",
        ])
    func length_isAFailure_whenNoBodyHasIt(type: String, length: String) async throws {
        let script: ScriptedOrigin.Script = { _, _ in
            [.head("200 OK", [("Content-Length", length)]), .send("{}"), .close]
        }
        try await Workbench.run(against: script) { origin, bench in
            // Which one it is depends on whether the number can be read, but there is one, and the next job runs.
            do {
                let result = try await bench.result(source(type, origin, bench))
                Issue.record("\(result)")
            } catch let error as JobError {
                #expect([.network, .tooLarge, .storage].contains(error.kind), "\(error.message)")
            }
        }
    }

    /// The text that says how long a chunk is, and what follows that on the wire.
    private static let chunks = [
        "7fffffffffffffff\r\n{}", "8000000000000000\r\n{}", "ffffffffffffffff\r\n{}", "10000000000000000\r\n{}",
        "ffffffffffffffffff\r\n{}", "-1\r\n{}\r\n", "+2\r\n{}\r\n", "0x2\r\n{}\r\n", " 2\r\n{}\r\n", "\r\n{}\r\n",
        "2{}\r\n",
        "2\r\n{}0\r\n\r\n", "2\r\n{}\n", "2\r\n{}2\r\n", "1\r\n{}\r\n", "3\r\n{}\r\n", ";x\r\n{}\r\n",
        "2\r\n{}\r\n00000000000000001\r\n", "2\r\n{}\r\n-0\r\n\r\n",
    ]

    @Test(arguments: ["url", "json", "download"], chunks)
    func chunk_isAFailure_whenItIsNotAsLongAsItSays(type: String, chunk: String) async throws {
        let script: ScriptedOrigin.Script = { _, _ in
            [.head("200 OK", [("Transfer-Encoding", "chunked")]), .send(chunk), .close]
        }
        try await Workbench.run(against: script) { origin, bench in
            let error = try await bench.failure(source(type, origin, bench))
            #expect(error.kind == .network && error.isRetryable, "\(error.message)")
            #expect(bench.names(below: bench.downloads) == [])
        }
    }

    /// The seconds that a value of `Retry-After` asks for; nil where it makes no sense.
    private static let pauses: [(String, Double?)] = [
        ("0", 0), ("7", 7), ("3155760000", 3600), ("9223372036854775807", 3600), ("18446744073709551616", 3600),
        (String(repeating: "9", count: 5000), 3600), ("00000000000000000000000000000007", 7),
        ("-1", nil), ("-9223372036854775808", nil), ("+7", nil), ("1e400", nil), ("7.5", nil), ("0x7", nil),
        ("7, 9", nil),
        ("nan", nil), ("inf", nil), ("", nil), ("soon", nil), ("Fri, 31 Dec 9999 23:59:59 GMT", 3600),
        ("Fri, 31 Dec 99999 23:59:59 GMT", nil), ("Fri, 31 Dec 9223372036854775807 23:59:59 GMT", nil),
        ("Sat, 01 Jan 0000 00:00:00 GMT", 0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Fri, 32 Dec 2099 23:59:59 GMT", nil), ("Fri, 31 Dec 2099 99:99:99 GMT", nil), ("Fri, 31 Dec 2099", nil),
        ("9999-12-31T23:59:59Z", nil),
    ]

    @Test(arguments: types) func retryAfter_isANumberOfSeconds_whateverTheServerWrites(type: String) async throws {
        try await Workbench.run(against: { _, count in
            let pause = Self.pauses[count % Self.pauses.count].0
            return [.head("503 Busy", [("Retry-After", pause), ("Content-Length", "0")])]
        }) { origin, bench in
            for (number, (value, seconds)) in Self.pauses.enumerated() {
                let error = try await bench.failure(source(type, origin, bench), job: JobID(number + 1))
                #expect(error.kind == .http && error.isRetryable, "\(value.prefix(40))")
                #expect(error.http?["status"]?.int == 503)
                #expect(error.retryAfter == seconds, "\(value.prefix(40))")
            }
        }
    }

    private func source(_ type: String, _ origin: ScriptedOrigin, _ bench: Workbench) throws -> JSON {
        if type == "upload" { try bench.write([1, 2, 3], to: bench.downloads + "/sent") }
        return .source(type, origin.url("/x"), ["download": ["path": "x"], "upload": ["path": "sent"]][type] ?? [:])
    }
}
