import JobModel
import JobProtocol
import Testing

@Suite struct ServerMessageTests {
    private func read(_ text: String) throws -> ServerMessage { try ServerMessage(bytes(text)) }

    @Test func answer_isRead_withItsID() throws {
        #expect(try read(#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"#) == .answer(id: 1, .success(["a": 1])))
        #expect(try read(#"{"jsonrpc":"2.0","id":"x","result":null}"#) == .answer(id: "x", .success(nil)))
        #expect(
            try read(#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#)
                == .answer(id: nil, .failure(ProtocolError(.parse, "m"))))
    }

    @Test func notification_isRead() throws {
        guard
            case .notification(let method, let params) = try read(
                #"{"jsonrpc":"2.0","method":"job.state","params":{"job":1}}"#)
        else {
            Issue.record("no notification")
            return
        }
        #expect(method == "job.state" && params["job"] == 1)
    }

    @Test func batch_isRead_inOrder() throws {
        #expect(
            try read(
                #"[{"jsonrpc":"2.0","id":2,"result":1},{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"m","data":{"kind":"not-found"}}}]"#
            )
                == .batch([.answer(id: 2, .success(1)), .answer(id: 1, .failure(ProtocolError(.notFound, "m")))]))
    }

    @Test(arguments: [
        "", "x", "1", "null", "{}", #"{"jsonrpc":"2.0"}"#, #"{"jsonrpc":"2.0","id":1}"#,
        #"{"jsonrpc":"2.0","result":1}"#,
        #"{"jsonrpc":"2.0","id":1,"error":{}}"#, #"{"jsonrpc":"2.0","id":1,"error":"x"}"#,
        #"{"jsonrpc":"2.0","method":"m"}"#, #"{"jsonrpc":"2.0","method":"m","params":[]}"#, "[1]",
        #"[{"jsonrpc":"2.0","id":1,"result":1},{}]"#,
    ])
    func line_isRefused_whereItIsNoMessage(_ text: String) {
        let error = #expect(throws: ServerMessageError.self) { try read(text) }
        #expect(error?.reason.isEmpty == false)
    }

    @Test func result_canNestDeeper_thanARequest() throws {
        // A result as deep as a line, in lists in lists, in a snapshot in a notification.
        let depth = 240
        let deep = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        guard
            case .answer(_, .success(let result)) = try read(
                #"{"jsonrpc":"2.0","id":1,"result":{"jobs":[{"result":\#(deep)}]}}"#)
        else {
            Issue.record("no answer")
            return
        }
        #expect(result["jobs"]?[0]?["result"] != nil)
        let tooDeep = String(repeating: "[", count: 300) + String(repeating: "]", count: 300)
        #expect(throws: ServerMessageError.self) { try read(#"{"jsonrpc":"2.0","id":1,"result":\#(tooDeep)}"#) }
    }
}
