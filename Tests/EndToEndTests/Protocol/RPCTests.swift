import JobModel
import Testing

/// JSON-RPC 2.0 according to its specification, with the existing methods.
@Suite struct RPCTests {
    private func expect(
        _ exchanges: [(String, String?)], sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await Daemon.run { _, wire in
            for (request, pattern) in exchanges {
                wire.sendLine(request)
                if let pattern {
                    let line = try #require(try await wire.next("answer to \(request)"))
                    let found = try Regex(pattern).wholeMatch(in: line.text) != nil
                    #expect(found, "\(request)\n\(line)", sourceLocation: sourceLocation)
                }
                // Nothing else came: the next answer is that of the next request.
                #expect(try await wire.call("server.info")["name"] == "deferd")
                #expect(wire.waiting.isEmpty, "\(request)", sourceLocation: sourceLocation)
            }
        }
    }

    private static func failure(_ code: Int, id: String = "null") -> String {
        #"\{"jsonrpc":"2.0","id":\#(id),"error":\{"code":\#(code),"message":".*"(,"data":\{.*\})?\}\}"#
    }

    private static func success(_ id: String) -> String {
        #"\{"jsonrpc":"2.0","id":\#(id),"result":.*\}"#
    }

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

    @Test func specificationsExamples_areAnsweredAsWritten() async throws {
        try await expect([
            (#"{"jsonrpc": "2.0", "method": "foobar", "id": "1"}"#, Self.failure(-32601, id: "\"1\"")),
            (#"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#, Self.failure(-32700)),
            (#"{"jsonrpc": "2.0", "method": 1, "params": "bar"}"#, Self.failure(-32600)),
            (
                #"[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},{"jsonrpc": "2.0", "method""#,
                Self.failure(-32700)
            ),
            ("[]", Self.failure(-32600)),
            ("[1]", "\\[" + Self.failure(-32600) + "\\]"),
            ("[1,2,3]", "\\[" + [String](repeating: Self.failure(-32600), count: 3).joined(separator: ",") + "\\]"),
            (#"{"jsonrpc": "2.0", "method": "server.info", "params": []}"#, nil),
            (#"{"jsonrpc": "2.0", "method": "server.info", "params": [], "id": 4}"#, Self.failure(-32602, id: "4")),
            (#"[{"jsonrpc":"2.0","method":"server.info"},{"jsonrpc":"2.0","method":"server.stats"}]"#, nil),
        ])
    }

    @Test func batch_isAnsweredInOneArray_whateverIsInIt() async throws {
        try await Daemon.run { _, wire in
            wire.sendLine(
                """
                [{"jsonrpc":"2.0","method":"server.info","id":"1"},{"jsonrpc":"2.0","method":"server.stats"},\
                {"foo":"boo"},{"jsonrpc":"2.0","method":"foo.get","params":{"name":"myself"},"id":"5"},\
                {"jsonrpc":"2.0","method":"job.submit","params":{"source":{"type":"value","value":1}},"id":"9"}]
                """)
            let line = try #require(try await wire.next())
            let answers = try #require(line.json.array)
            #expect(answers.count == 4)
            func answer(_ id: JSON) -> JSON? { answers.first { $0["id"] == id } }
            #expect(answer("1")?["result"]?["name"] == "deferd")
            #expect(answer(nil)?["error"]?["code"] == -32600)
            #expect(answer("5")?["error"]?["code"] == -32601)
            #expect(answer("9")?["result"]?["created"] == true)
            #expect(answers.allSatisfy { $0["jsonrpc"] == "2.0" })
            _ = try await wire.call("server.info")
            #expect(wire.waiting.isEmpty)
        }
    }

    // MARK: - Multiplexing

    @Test func waits_holdUpNobody_whereverTheyStand() async throws {
        try await GuidedOrigin.withDaemon { origin, _, wire in
            let first = try await wire.submit(.fetch(origin.url("/1")))
            let second = try await wire.submit(.fetch(origin.url("/2")))
            var waits: [Int] = []
            for _ in 0..<20 { waits.append(wire.send("job.wait", .job(first))) }
            let last = wire.send("job.wait", .job(second))
            #expect(try await wire.succeed(.value(5)) == 5)
            try await origin.exchange("/2").answer(.text("2"))
            #expect(try await wire.result(last)["result"]?["body"] == "2")
            #expect(wire.waiting.isEmpty)
            try await origin.exchange("/1").answer(.text("1"))
            for wait in waits { #expect(try await wire.result(wait)["result"]?["body"] == "1") }
        }
    }
}
