import JobModel
import JobProtocol
import Testing

/// Answers and errors, as they are written and read.
@Suite struct AnswerTests {
    private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test func success_holdsItsResult() {
        #expect(text(Answer.success(id: 1, result: JSON.null)) == #"{"jsonrpc":"2.0","id":1,"result":null}"#)
        #expect(text(Answer.success(id: "a\"", result: ["x": 1])) == #"{"jsonrpc":"2.0","id":"a\"","result":{"x":1}}"#)
        #expect(
            text(Answer.success(id: .null, result: bytes(#"{"x":[1]}"#)))
                == #"{"jsonrpc":"2.0","id":null,"result":{"x":[1]}}"#)
    }

    @Test func failure_holdsCodeMessageAndData() {
        let plain = ProtocolError(.methodNotFound, "No \"x\".")
        #expect(
            text(Answer.failure(id: 1.5, error: plain))
                == #"{"jsonrpc":"2.0","id":1.5,"error":{"code":-32601,"message":"No \"x\"."}}"#)
        let busy = ProtocolError(.busy, "Later.", ["retryAfter": 1])
        #expect(
            text(Answer.failure(id: .null, error: busy))
                == #"{"jsonrpc":"2.0","id":null,"error":{"code":-32003,"message":"Later.","data":{"kind":"busy","retryAfter":1}}}"#
        )
    }

    @Test(
        arguments: [
            (-32700, nil), (-32600, nil), (-32601, nil), (-32602, nil), (-32603, nil), (-32001, "not-found"),
            (-32002, "forbidden"), (-32003, "busy"), (-32004, "wrong-state"), (-32005, "shutting-down"),
            (-32006, "key-conflict"), (-32007, "timeout"), (-32008, "storage"),
        ] as [(Int, String?)])
    func code_hasTheKind_thatTheProtocolGivesIt(_ code: Int, _ kind: String?) throws {
        let known = try #require(ProtocolError.Code(rawValue: code))
        #expect(known.kind == kind)
        #expect(ProtocolError(known, "x").data["kind"] == kind.map(JSON.string))
        #expect(ProtocolError.Code.allCases.count == 13)
    }

    @Test func invalidParams_nameTheMember() {
        let error = ProtocolError(SpecError(JSONPointer(["source", "a/b"]), "It is wrong."))
        #expect(error.code == -32602)
        #expect(
            error.data
                == JSONObject([
                    .init(name: "pointer", value: "/source/a~1b"), .init(name: "reason", value: "It is wrong."),
                ]))
        #expect(error.message.contains("It is wrong."))
    }

    @Test func error_readsBack() throws {
        let error = ProtocolError(.wrongState, "No.", ["state": "failed"])
        #expect(ProtocolError(json: error.json) == error)
        let unknown = try JSON(parsing: #"{"code":-1,"message":"from a later version","data":null}"#)
        #expect(ProtocolError(json: unknown)?.code == -1)
        for text in ["{}", #"{"code":1}"#, #"{"message":"x"}"#, #"{"code":"x","message":"x"}"#, "null", "[]"] {
            #expect(try ProtocolError(json: JSON(parsing: text)) == nil)
        }
    }

    @Test func methods_areThoseOfTheProtocol() {
        #expect(
            MethodName.allCases.map(\.rawValue) == [
                "server.info", "server.stats", "server.usage", "server.nodes", "server.backup", "job.submit", "job.get",
                "job.list", "job.wait", "job.watch", "job.unwatch", "job.cancel", "job.retry", "job.remove", "job.hold",
                "job.release", "job.set", "job.result", "job.output", "job.explain", "queue.list", "queue.set",
                "schedule.set", "schedule.get", "schedule.list", "schedule.remove",
                "schedule.run", "schedule.suspend", "schedule.resume",
            ])
    }
}
