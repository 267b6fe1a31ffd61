import JobModel
import JobProtocol
import Testing

@Suite struct ServerMessageTests {
    private func read(_ text: String) throws -> ServerMessage { try ServerMessage(bytes(text)) }

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
