import JobModel
import JobProtocol
import Testing

/// JSON-RPC 2.0 as its specification has it, but for params by position.
@Suite struct IncomingLineTests {
    private func read(_ text: String) -> IncomingLine { IncomingLine(bytes(text)) }

    private func isBatch(_ line: IncomingLine) -> Bool {
        if case .batch = line { true } else { false }
    }

    // MARK: - The examples of section 7

    @Test func positionalParams_areInvalid() {
        for (params, id) in [("[42,23]", 1), ("[23,42]", 2)] {
            let line = read(#"{"jsonrpc":"2.0","method":"subtract","params":\#(params),"id":\#(id)}"#)
            #expect(line.requests.isEmpty)
            #expect(line.rejections.map(\.id) == [JSON(id)] && line.rejections.map(\.code) == [-32602])
            guard case .single(.rejected(_, let error)) = line else { continue }
            #expect(error.data["pointer"] == "" && error.data["reason"]?.string?.isEmpty == false)
        }
    }

    @Test func namedParams_areTaken_inWhateverOrder() {
        for params in [#"{"subtrahend":23,"minuend":42}"#, #"{"minuend":42,"subtrahend":23}"#] {
            let line = read(#"{"jsonrpc":"2.0","method":"subtract","params":\#(params),"id":3}"#)
            #expect(
                line
                    == .single(
                        .request(
                            Request(id: 3, method: "subtract", params: members(["minuend": 42, "subtrahend": 23])))))
        }
    }

    @Test func notification_hasNoID() {
        #expect(
            read(#"{"jsonrpc":"2.0","method":"foobar"}"#)
                == .single(.request(Request(id: nil, method: "foobar", params: members([:])))))
        // One that cannot be carried out is not answered either.
        let line = read(#"{"jsonrpc":"2.0","method":"update","params":[1,2,3,4,5]}"#)
        #expect(line.rejections.count == 1 && line.rejections[0].id == nil)
    }

    @Test func invalidJSON_isAParseError() {
        let line = read(#"{"jsonrpc":"2.0","method":"foobar,"params":"bar","baz]"#)
        #expect(line.rejections.map(\.id) == [.null] && line.rejections.map(\.code) == [-32700])
    }

    @Test func invalidRequest_isOne() {
        let line = read(#"{"jsonrpc":"2.0","method":1,"params":"bar"}"#)
        #expect(line.rejections.map(\.id) == [.null] && line.rejections.map(\.code) == [-32600])
    }

    @Test func invalidJSONInABatch_isOneParseError() {
        let line = read(
            #"[{"jsonrpc":"2.0","method":"sum","params":{},"id":"1"},{"jsonrpc":"2.0","method""#)
        #expect(!isBatch(line) && line.rejections.map(\.id) == [.null] && line.rejections.map(\.code) == [-32700])
    }

    @Test func emptyBatch_isOneInvalidRequest() {
        let line = read("[]")
        #expect(!isBatch(line) && line.rejections.map(\.id) == [.null] && line.rejections.map(\.code) == [-32600])
    }

    @Test(arguments: [("[1]", 1), ("[1,2,3]", 3), ("[[]]", 1), (#"[null,"x",true]"#, 3)])
    func batchOfOtherValues_isAnInvalidRequestForEach(_ text: String, _ count: Int) {
        let line = read(text)
        #expect(isBatch(line))
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
        #expect(isBatch(line))
        #expect(line.requests.map(\.method) == ["sum", "notify_hello", "foo.get", "get_data"])
        #expect(line.requests.map(\.id) == ["1", nil, "5", "9"])
        #expect(line.rejections.map(\.id) == ["2", .null] && line.rejections.map(\.code) == [-32602, -32600])
    }

    @Test func batchOfNotifications_hasNothingToAnswer() {
        let line = read(#"[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b","params":{}}]"#)
        #expect(line.requests.count == 2 && line.requests.allSatisfy { $0.id == nil } && line.rejections.isEmpty)
    }

    // MARK: - Ids

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
                String(decoding: Answer.success(id: echoed, result: JSON.null), as: UTF8.self)
                    == #"{"jsonrpc":"2.0","id":\#(id),"result":null}"#)
        }
        // An error about the rest of the call names it, too.
        let broken = read(#"{"id":\#(id),"method":"m"}"#)
        #expect(try broken.rejections.map(\.id) == [JSON(parsing: id)])
        #expect(broken.rejections.map(\.code) == [-32600])
    }

    @Test(arguments: ["true", "[]", "[1]", "{}"])
    func id_ofAnotherType_isInvalid(_ id: String) {
        let line = read(#"{"jsonrpc":"2.0","id":\#(id),"method":"m"}"#)
        #expect(line.rejections.map(\.id) == [.null] && line.rejections.map(\.code) == [-32600])
    }

    // MARK: - What is no call

    @Test(arguments: [
        "1", "null", #""x""#, "true", "{}", #"{"jsonrpc":"2.0"}"#, #"{"jsonrpc":"2.0","method":null}"#,
        #"{"jsonrpc":"2.0","method":{}}"#, #"{"jsonrpc":2.0,"method":"m"}"#, #"{"jsonrpc":"1.0","method":"m"}"#,
        #"{"jsonrpc":"2.0","method":"m","params":null}"#, #"{"jsonrpc":"2.0","method":"m","params":"x"}"#,
        #"{"jsonrpc":"2.0","method":"m","params":1}"#, #"{"method":"m"}"#, #"{"jsonrpc":"2.0","method":"m","extra":1}"#,
    ])
    func value_isAnInvalidRequest_whereItIsNoCall(_ text: String) {
        let line = read(text)
        #expect(!isBatch(line) && line.requests.isEmpty)
        #expect(line.rejections.map(\.id) == [.null] && line.rejections.map(\.code) == [-32600])
    }

    @Test(arguments: ["", " ", "{", "x", "{} {}", "\u{FEFF}{}", "\"\u{1}\""])
    func line_isAParseError_whereItIsNoJSON(_ text: String) {
        #expect(read(text).rejections.map(\.code) == [-32700])
    }

    @Test func line_isAParseError_whereItIsNoUTF8() {
        #expect(
            IncomingLine(bytes(#"{"jsonrpc":"2.0","method":""#) + [0xFF] + bytes("\"}")).rejections.map(\.code)
                == [-32700])
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

    @Test func laterMember_counts_whereANameIsDoubled() {
        #expect(
            read(#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b","id":2}"#)
                == .single(.request(Request(id: 2, method: "b", params: members([:])))))
    }

    @Test func members_canStandInAnyOrder() {
        #expect(
            read(#" { "params" : { } , "method" : "m" , "id" : 1 , "jsonrpc" : "2.0" } "#)
                == .single(.request(Request(id: 1, method: "m", params: members([:])))))
    }

    // MARK: - Writing calls

    @Test(arguments: [JSON?.none, .some(.null), 1, "a\n\u{E4}"])
    func request_readsBack_fromItsLine(_ id: JSON?) {
        let request = Request(id: id, method: "job.get", params: members(["job": 7, "x": "\n"]))
        let line = request.line
        #expect(line.last == UInt8(ascii: "\n") && line.filter { $0 == UInt8(ascii: "\n") }.count == 1)
        #expect(IncomingLine(line) == .single(.request(request)))
    }
}
