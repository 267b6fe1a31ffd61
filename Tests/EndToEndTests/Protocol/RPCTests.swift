import JobModel
import Testing

/// JSON-RPC 2.0 according to its specification, with the existing methods.
@Suite struct RPCTests {
    @Test func answers_comeInOrder_whereSomeAreRefusedOrInBatches() async throws {
        try await Daemon.run { _, wire in
            let good = #""method":"job.submit","params":{"source":{"type":"value","value":1}}"#
            let bad = #""method":"job.submit","params":{"source":{"type":"value"}}"#
            let lines = (0..<400).map { number in
                switch number % 5 {
                case 0, 2: #"{"jsonrpc":"2.0","id":\#(number),\#(good)}"#
                case 1: #"{"jsonrpc":"2.0","id":\#(number),\#(bad)}"#
                case 3: #"[{"jsonrpc":"2.0","id":\#(number),\#(good)}]"#
                default: #"{"jsonrpc":"2.0","id":\#(number),"method":"server.info"}"#
                }
            }
            wire.sendLine(lines.joined(separator: "\n"))
            for number in 0..<400 {
                let line = try #require(try await wire.next())
                let answer = line.json[0] ?? line.json
                #expect(answer["id"] == JSON(number))
                #expect((answer["error"] != nil) == (number % 5 == 1))
                #expect((line.json.array != nil) == (number % 5 == 3))
            }
        }
    }

    @Test func ids_comeBackAsTheyWereWritten() async throws {
        let ids = [
            "1", "0", "-0", "-0.0", "-7", "1.50", "1e2", "1E+2", "123456789012345678901234567890", "null", "\"\"",
            "\"a b\"", "\"\\u00fc\"", "\"\\\"\"",
        ]
        try await Daemon.run { _, wire in
            for id in ids {
                wire.sendLine(#"{"jsonrpc":"2.0","id":\#(id),"method":"server.info"}"#)
                let line = try #require(try await wire.next())
                #expect(line.json["result"] != nil, "\(id): \(line)")
                if id.hasPrefix("\"") {
                    // The same string; which escapes write it is all one.
                    #expect(line.json["id"] == (try JSON(parsing: Array(id.utf8))), "\(line)")
                } else {
                    #expect(line.text.hasPrefix(#"{"jsonrpc":"2.0","id":\#(id),"#), "\(line)")
                }
                wire.sendLine(#"{"jsonrpc":"2.0","id":\#(id),"method":"nothing"}"#)
                let refusal = try #require(try await wire.next()?.json)
                #expect(refusal["error"]?["code"] == -32601 && refusal["id"] == line.json["id"])
                // Written by a way of its own.
                wire.sendLine(
                    #"{"jsonrpc":"2.0","id":\#(id),"method":"job.submit","params":{"source":{"type":"value","value":1}}}"#
                )
                let submitted = try #require(try await wire.next()?.json)
                #expect(submitted["result"] != nil && submitted["id"] == line.json["id"])
            }
        }
    }

    @Test func notification_isCarriedOut_andNeverAnswered() async throws {
        try await Daemon.run { _, wire in
            wire.sendLine(
                #"{"jsonrpc":"2.0","method":"job.submit","params":{"source":{"type":"value","value":1},"tags":["n"]}}"#)
            wire.sendLine(#"{"jsonrpc":"2.0","method":"nothing"}"#)
            wire.sendLine(#"{"jsonrpc":"2.0","method":"job.submit","params":{}}"#)
            let jobs = try await wire.call("job.list", ["tag": "n"])["jobs"]?.array ?? []
            #expect(jobs.count == 1)
            #expect(wire.waiting.isEmpty)
        }
    }
}
