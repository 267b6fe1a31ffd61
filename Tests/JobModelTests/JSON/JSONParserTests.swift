import JobModel
import TestSupport
import Testing

@Suite struct JSONParserTests {
    // MARK: - What RFC 8259 allows

    @Test(
        arguments: [
            ("null", JSON.null), ("true", true), ("false", false), (" \t\r\n1 \t\r\n", 1), (#""""#, ""), ("[]", []),
            ("[ ]", []), ("{}", [:]), ("{ }", [:]), ("[1,2]", [1, 2]), ("[ 1 , [ ] , { } ]", [1, [], [:]]),
            (#"{"a":1,"b":{"c":[null]}}"#, ["a": 1, "b": ["c": [nil]]]), (#"{ "" : "" }"#, ["": ""]),
            (#"{"a" : 1 , "b" : 2}"#, ["a": 1, "b": 2]),
        ] as [(String, JSON)])
    func parse_givesTheValue_ofWellFormedText(_ text: String, _ value: JSON) throws {
        #expect(try JSON(parsing: Array(text.utf8)) == value)
    }

    @Test(arguments: [
        (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t"), (#""\u0041\u00e4\u20AC""#, "A\u{E4}\u{20AC}"),
        (#""\u0000""#, "\u{0}"), (#""\ud83d\ude00""#, "\u{1F600}"), (#""\uDBFF\uDFFF""#, "\u{10FFFF}"),
        (#""a\u0301""#, "a\u{301}"), (#""\uffff""#, "\u{FFFF}"), ("\"\u{7F}\u{80}\u{2028}\"", "\u{7F}\u{80}\u{2028}"),
        (#""x\ny\\n""#, "x\ny\\n"), (#""\ud800\udc00tail""#, "\u{10000}tail"),
    ])
    func parse_givesTheText_ofStringsWithEscapes(_ text: String, _ value: String) throws {
        let parsed = try JSON(parsing: Array(text.utf8)).string
        #expect(parsed.map { Array($0.unicodeScalars) } == Array(value.unicodeScalars))
    }

    @Test(arguments: [
        "0", "-0", "1", "-1", "10", "1.0", "1.10", "0.5", "-0.0", "1e2", "1E2", "1e+2", "1e-2", "1.5e300", "0e0",
        "9007199254740993", "123456789012345678901234567890", "1e400", "-1e-400",
        "0.1000000000000000055511151231257827",
    ])
    func parse_keepsTheDigits_ofNumbers(_ text: String) throws {
        let parsed = try JSON(parsing: Array(text.utf8))
        #expect(parsed == .number(JSONNumber(unchecked: text)))
        #expect(parsed.description == text)
    }

    @Test func parse_keepsMembersInOrder_andDoubledNames() throws {
        let parsed = try JSON(parsing: Array(#"{"b":1,"a":2,"b":3}"#.utf8))
        #expect(parsed.object?.names == ["b", "a", "b"])
        #expect(parsed["b"] == 3)
        #expect(parsed.description == #"{"b":1,"a":2,"b":3}"#)
    }

    // MARK: - What it does not allow

    @Test(arguments: [
        // Nothing, or too much.
        "", " ", "\n", "1 2", "{}{}", "null,", "nullx", "tru", "True", "NULL", "nan", "NaN", "Infinity", "undefined",
        // Arrays and objects.
        "[", "]", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1}", "{", "}", #"{"a""#, #"{"a":"#, #"{"a":1"#, #"{"a":1,"#,
        #"{"a":1,}"#, #"{"a" 1}"#, #"{a:1}"#, #"{'a':1}"#, #"{1:1}"#, #"{"a":1 "b":2}"#, #"{"a":1]"#, #"{,"a":1}"#,
        #"{"a"::1}"#, #"{null:1}"#,
        // Numbers.
        "+1", "01", "-01", "00", "1.", ".5", "-.5", "1.e5", "-", "--1", "1e", "1e+", "1E-", "0x10", "1_000", "1,5",
        "0.", "-a", "1a", "1.2.3",
        // Strings.
        #"""#, #""a"#, #"'a'"#, #""\x""#, #""\'""#, #""\u""#, #""\u12""#, #""\u12G4""#, #""\U0041""#, #""\"#, #""\""#,
        "\"\n\"", "\"\t\"", "\"\u{0}\"", "\"\u{1F}\"", "\"a\\n\u{1}\"",
        // Halves of surrogate pairs.
        #""\ud800""#, #""\udc00""#, #""\ud800\ud800""#, #""\ud800x""#, #""\ud800\n""#, #""\ud800\u0041""#,
        #""\udfff\ud800""#, #""\ud83d\ude0""#, #""\ud83d\"#, #""\ud83d\u"#,
        // What others allow.
        "// x\n1", "/* x */ 1", "1 // x", "\u{FEFF}1", "\u{A0}1", "\u{C}1", "\u{2028}1",
    ])
    func parse_fails_whereTheTextIsNotJSON(_ text: String) {
        #expect(throws: JSONSyntaxError.self) { try JSON(parsing: Array(text.utf8)) }
    }

    @Test(
        arguments: [
            [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xC3], [0xC3, 0x28], [0xE0, 0x80, 0x80], [0xE2, 0x82],
            [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x80, 0x80, 0x80], [0xF0, 0x9F, 0x98],
            [0xF4, 0x90, 0x80, 0x80],
            [0xF5, 0x80, 0x80, 0x80], [0xFE], [0xFF],
        ] as [[UInt8]])
    func parse_fails_whereAStringIsNotUTF8(_ bytes: [UInt8]) {
        let quote = UInt8(ascii: "\"")
        #expect(throws: JSONSyntaxError.self) { try JSON(parsing: [quote] + bytes + [quote]) }
        // Before and behind an escape another branch reads the string.
        #expect(throws: JSONSyntaxError.self) { try JSON(parsing: [quote] + bytes + Array(#"\n""#.utf8)) }
        #expect(throws: JSONSyntaxError.self) { try JSON(parsing: Array(#""\n"#.utf8) + bytes + [quote]) }
        #expect(throws: JSONSyntaxError.self) {
            try JSON(parsing: Array(#"{""#.utf8) + bytes + Array(#"":1}"#.utf8))
        }
        #expect(throws: JSONSyntaxError.self) { try JSON(parsing: bytes) }
    }

    @Test(arguments: [
        ("[1,x]", 3), ("  ", 2), (#"{"a" 1}"#, 5), (#"["a\q"]"#, 4), ("[1]]", 3), ("01", 1), ("1.x", 2),
    ])
    func error_namesTheByte_whereItWentWrong(_ text: String, _ offset: Int) {
        let error = #expect(throws: JSONSyntaxError.self) { try JSON(parsing: Array(text.utf8)) }
        #expect(error?.offset == offset)
        #expect(error.map { "\($0)" }?.hasSuffix(" at byte \(offset)") == true)
    }

    // MARK: - Bounds

    private func nested(_ depth: Int, _ open: String, _ inner: String, _ close: String) -> [UInt8] {
        Array((String(repeating: open, count: depth) + inner + String(repeating: close, count: depth)).utf8)
    }

    @Test(arguments: [("[", "]"), (#"{"a":"#, "}"), (#"[{"a":"#, "}]")])
    func parse_takes64Levels_andNoMore(_ open: String, _ close: String) throws {
        let perPair = open.hasPrefix("[{") ? 2 : 1
        #expect(throws: Never.self) { try JSON(parsing: nested(64 / perPair, open, "1", close)) }
        #expect(throws: JSONSyntaxError.self) { try JSON(parsing: nested(64 / perPair, open, "[]", close)) }
        #expect(throws: JSONSyntaxError.self) { try JSON(parsing: nested(64 / perPair, open, "{}", close)) }
    }

    @Test func parse_countsLevels_notBrackets() throws {
        let wide = "[" + Array(repeating: "[[]]", count: 1000).joined(separator: ",") + "]"
        #expect(try JSON(parsing: Array(wide.utf8), maximumDepth: 3).array?.count == 1000)
        #expect(throws: JSONSyntaxError.self) { try JSON(parsing: Array(wide.utf8), maximumDepth: 2) }
    }

    @Test func parse_failsAtOnce_whereOnlyBracketsOpen() {
        let error = #expect(throws: JSONSyntaxError.self) {
            try JSON(parsing: [UInt8](repeating: UInt8(ascii: "["), count: 1 << 20))
        }
        #expect(error?.offset == 64)
    }

    @Test func parse_takesHugeStrings_plainAndEscaped() throws {
        let plain = String(repeating: "x\u{E4}", count: 1 << 20)
        #expect(try JSON(parsing: Array("\"\(plain)\"".utf8)).string == plain)
        let escaped = String(repeating: #"\n\u0041\ud83d\ude00y"#, count: 1 << 16)
        #expect(
            try JSON(parsing: Array("\"\(escaped)\"".utf8)).string
                == String(repeating: "\nA\u{1F600}y", count: 1 << 16))
    }

    @Test func parse_neverCrashes_onDamagedText() throws {
        var generator = SeededGenerator(seed: 1)
        for _ in 0..<2000 {
            var bytes = JSON.random(depth: 4, using: &generator).utf8
            for _ in 0..<Int.random(in: 1...3, using: &generator) where !bytes.isEmpty {
                let pointer = Int.random(in: bytes.indices, using: &generator)
                switch Int.random(in: 0..<3, using: &generator) {
                case 0: bytes[pointer] = UInt8.random(in: 0...255, using: &generator)
                case 1: bytes.remove(at: pointer)
                default: bytes = Array(bytes[..<pointer])
                }
            }
            // Whatever is taken is written the same way again.
            guard let parsed = try? JSON(parsing: bytes) else { continue }
            #expect(try JSON(parsing: parsed.utf8) == parsed)
        }
    }

    // MARK: - What it takes

    private func cost(_ text: String, _ pointer: String = "") throws -> Int {
        let pointer = try #require(JSONPointer(text: pointer))
        let cost = try Array(text.utf8).withUnsafeBytes { try JSONParser.parse($0, at: pointer, budget: .max).cost }
        let parsed = try Array(text.utf8).withUnsafeBytes { try JSONParser.parse($0, at: pointer, budget: cost) }
        #expect(parsed.value?.parsedCost == (parsed.value == nil ? nil : cost))
        #expect(parsed.cost == cost)
        return cost
    }

    @Test func cost_isWhatValuesTake_notTheirText() throws {
        for (text, least) in [(#"{"":0},"#, 150), ("0,", 16), ("[0],", 60), ("\"0123456789abcdef\",", 60)] {
            let count = 1000
            let all = "[" + String(repeating: text, count: count) + "0]"
            #expect(try cost(all) > least * count)
            let error = #expect(throws: JSONSyntaxError.self) {
                try Array(all.utf8).withUnsafeBytes { _ = try JSONParser.parse($0, budget: least * count) }
            }
            #expect(error?.isTooLarge == true)
        }
        let long = String(repeating: "x", count: 100_000)
        #expect(try cost("[\"\(long)\"]") < 110_000)
        // What is not selected takes nothing.
        #expect(try cost("[\"\(long)\", {\"a\": [1, 2]}, [[1]]]", "/1/a/1") < 100)
    }

    @Test func selected_isWhatThePointerFinds_inAnyValue() throws {
        var generator = SeededGenerator(seed: 7)
        func pointers(_ value: JSON) -> [[String]] {
            switch value {
            case .array(let elements):
                [[]] + elements.enumerated().flatMap { (index, value) in pointers(value).map { ["\(index)"] + $0 } }
            case .object(let object): [[]] + object.members.flatMap { m in pointers(m.value).map { [m.name] + $0 } }
            default: [[]]
            }
        }
        for _ in 0..<300 {
            let value = JSON.random(depth: 4, using: &generator)
            let bytes = value.utf8
            for tokens in pointers(value) + [["0"], ["01"], ["-"], ["a", "b"], [""]] {
                let pointer = JSONPointer(tokens)
                let found = try bytes.withUnsafeBytes { try JSONParser.parse($0, at: pointer, budget: .max) }
                #expect(found.value == value[pointer], "\(pointer) in \(value)")
            }
        }
        // Of two members with one name the later counts.
        let doubled = Array(#"{"a": {"b": 1}, "a": {"c": 2}}"#.utf8)
        for (tokens, found) in [(["a", "b"], JSON?.none), (["a", "c"], 2)] {
            let parsed = try doubled.withUnsafeBytes {
                try JSONParser.parse($0, at: JSONPointer(tokens), budget: .max)
            }
            #expect(parsed.value == found)
        }
    }

    @Test func selecting_refusesWhatParsingDoes_alsoWhereNothingIsSelected() throws {
        for text in [#"{"a": 1, "b": tru}"#, #"[1, "\u12"]"#, "[1,]", #"{"a" 1}"#, "[1] 2", "", "[1", #"["\#u{1}"]"#] {
            #expect(throws: JSONSyntaxError.self) { _ = try cost(text, "/a") }
            #expect(throws: JSONSyntaxError.self) { _ = try cost(text, "/0") }
        }
        let deep = String(repeating: "[", count: 65) + String(repeating: "]", count: 65)
        #expect(throws: JSONSyntaxError.self) { _ = try cost(deep, "/1") }
    }
}
