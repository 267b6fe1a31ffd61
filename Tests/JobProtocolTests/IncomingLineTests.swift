import JobModel
import JobProtocol
import Testing

/// JSON-RPC 2.0 as its specification has it, but for params by position.
@Suite struct IncomingLineTests {
    private func read(_ text: String) -> IncomingLine { IncomingLine(bytes(text)) }

    @Test func members_areTaken_inWhateverOrder() {
        let call = IncomingCall(Request(id: 3, method: "m", params: members(["a": 42, "b": 23])))
        for text in [
            #"{"jsonrpc":"2.0","method":"m","params":{"a":42,"b":23},"id":3}"#,
            #" { "params" : { "a" : 42 , "b" : 23 } , "id" : 3 , "method" : "m" , "jsonrpc" : "2.0" } "#,
            // Of two members with one name, the later counts.
            #"{"jsonrpc":"2.0","id":1,"method":"x","method":"m","params":{"a":42,"b":23},"id":3}"#,
        ] { #expect(read(text).calls == [call] && !read(text).isBatch) }
    }

    @Test func notification_hasNoID() {
        #expect(
            read(#"{"jsonrpc":"2.0","method":"foobar"}"#).calls
                == [IncomingCall(Request(id: nil, method: "foobar", params: members([:])))])
        #expect(read(#"{"jsonrpc":"2.0","method":"m","params":null}"#).requests.map(\.params) == [JSONObject()])
        // One that cannot be carried out is not answered either.
        let line = read(#"{"jsonrpc":"2.0","method":"update","params":[1,2,3,4,5]}"#)
        #expect(line.rejections.count == 1 && line.rejections[0].id == nil)
    }

    @Test func positionalParams_areInvalid() {
        let line = read(#"{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1}"#)
        #expect(line.rejections.map(\.id) == [1] && line.rejections.map(\.code) == [-32602])
        let error = line.calls.first?.rejection
        #expect(error?.data["pointer"] == "" && error?.data["reason"]?.string?.isEmpty == false)
    }

    @Test(arguments: [
        "", " ", "{", "x", "{} {}", "\u{FEFF}{}", "\"\u{1}\"",
        #"{"jsonrpc":"2.0","method":"foobar,"params":"bar","baz]"#,
        #"[{"jsonrpc":"2.0","method":"sum","params":{},"id":"1"},{"jsonrpc":"2.0","method""#,
    ])
    func line_isAParseError_whereItIsNoJSON(_ text: String) {
        let line = read(text)
        #expect(!line.isBatch && line.rejections.map(\.id) == [.null] && line.rejections.map(\.code) == [-32700])
    }

    @Test func line_isAParseError_whereItIsNoUTF8() {
        let line = IncomingLine(bytes(#"{"jsonrpc":"2.0","method":""#) + [0xFF] + bytes("\"}"))
        #expect(line.rejections.map(\.code) == [-32700])
    }

    @Test(arguments: [
        "1", "null", #""x""#, "true", "{}", "[]", #"{"jsonrpc":"2.0"}"#,
        #"{"jsonrpc":"2.0","method":1,"params":"bar"}"#,
        #"{"jsonrpc":"2.0","method":{}}"#, #"{"jsonrpc":2.0,"method":"m"}"#, #"{"jsonrpc":"1.0","method":"m"}"#,
        #"{"jsonrpc":"2.0","method":"m","params":true}"#, #"{"jsonrpc":"2.0","method":"m","params":"x"}"#,
        #"{"method":"m"}"#, #"{"jsonrpc":"2.0","method":"m","extra":1}"#, #"{"jsonrpc":"2.0","id":true,"method":"m"}"#,
        #"{"jsonrpc":"2.0","id":[1],"method":"m"}"#, #"{"jsonrpc":"2.0","id":{},"method":"m"}"#,
    ])
    func value_isAnInvalidRequest_whereItIsNoCall(_ text: String) {
        let line = read(text)
        #expect(!line.isBatch && line.requests.isEmpty)
        #expect(line.rejections.map(\.id) == [.null] && line.rejections.map(\.code) == [-32600])
    }

    @Test(arguments: [("[1]", 1), ("[1,2,3]", 3), ("[[]]", 1), (#"[null,"x",true]"#, 3)])
    func batchOfOtherValues_isAnInvalidRequestForEach(_ text: String, _ count: Int) {
        let line = read(text)
        #expect(line.isBatch)
        #expect(line.rejections.map(\.id) == Array(repeating: .null, count: count))
        #expect(line.rejections.allSatisfy { $0.code == -32600 })
    }

    @Test func batch_keepsItsOrder_goodAndBad() {
        let line = read(
            #"""
            [{"jsonrpc":"2.0","method":"sum","params":{"a":1},"id":"1"},{"jsonrpc":"2.0","method":"notify_hello","params":{}},
             {"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":"2"},{"foo":"boo"},
             {"jsonrpc":"2.0","method":"foo.get","params":{"name":"myself"},"id":"5"},
             {"jsonrpc":"2.0","method":"get_data","id":"9"}]
            """#)
        #expect(line.isBatch)
        #expect(line.requests.map(\.method) == ["sum", "notify_hello", "foo.get", "get_data"])
        #expect(line.requests.map(\.id) == ["1", nil, "5", "9"])
        #expect(line.rejections.map(\.id) == ["2", .null] && line.rejections.map(\.code) == [-32602, -32600])
    }

    @Test(arguments: [
        "1", "0", "-1", "1.0", "1.50", "1e2", "1E+2", "12345678901234567890123", "-0", "0.10", "1e999", #""""#, #""a""#,
        #""1""#, #""\u00e4\"\\\/\n""#, #""\ud83d\ude00""#, "null",
    ])
    func id_isEchoed_asItWasWritten(_ id: String) throws {
        let line = read(#"{"jsonrpc":"2.0","id":\#(id),"method":"m"}"#)
        let request = try #require(line.requests.first)
        let echoed = try #require(request.id)
        #expect(try echoed == JSON(parsing: id))
        if !id.hasPrefix("\"") {
            #expect(
                String(decoding: Answer.success(id: echoed, result: JSON.null.utf8), as: UTF8.self)
                    == #"{"jsonrpc":"2.0","id":\#(id),"result":null}"#)
        }
        // An error about the rest of the call names it, too.
        let broken = read(#"{"id":\#(id),"method":"m"}"#)
        #expect(try broken.rejections.map(\.id) == [JSON(parsing: id)])
        #expect(broken.rejections.map(\.code) == [-32600])
    }

    @Test func line_isAParseError_whereItNestsDeeperThan64() {
        func call(_ depth: Int) -> String {
            #"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"#
                + String(repeating: "[", count: depth) + String(repeating: "]", count: depth) + "}}"
        }
        #expect(read(call(62)).requests.count == 1)
        let line = read(call(63))
        #expect(line.rejections.map(\.id) == [.null] && line.rejections.map(\.code) == [-32700])
    }

    /// Comparing or hashing such names takes minutes.
    @Test(arguments: [true, false]) func line_isAParseError_whereManyCharactersCombineInARow(isEscaped: Bool) {
        func call(_ count: Int) -> String {
            // Each pair is out of order, so that the normal form sorts them.
            let pair = isEscaped ? #"\u0301\u0323"# : "\u{301}\u{323}"
            return #"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a"#
                + String(repeating: pair, count: count / 2) + #"":1}}"#
        }
        #expect(read(call(256)).requests.count == 1)
        let line = read(call(258))
        #expect(line.rejections.map(\.id) == [.null] && line.rejections.map(\.code) == [-32700])
    }
}
