import JobModel
import TestSupport
import Testing

@Suite struct JSONWriterTests {
    @Test func write_parsesAgain_toTheSameValueAndText() throws {
        var generator = SeededGenerator(seed: 2)
        for _ in 0..<3000 {
            let value = JSON.random(depth: 6, using: &generator)
            let text = value.utf8
            let again = try JSON(parsing: text)
            #expect(again == value)
            #expect(again.utf8 == text)
            #expect(!text.contains { $0 < 0x20 }, "one line, whatever is in the strings")
        }
    }

    @Test(arguments: [
        ("", #""""#), ("a/b", #""a/b""#), ("\"\\", #""\"\\""#), ("\n\r\t", #""\n\r\t""#),
        ("\u{0}\u{8}\u{C}\u{1F}\u{7F}", "\"\\u0000\\b\\f\\u001f\u{7F}\""),
        ("\u{E4}\u{1F600}", "\"\u{E4}\u{1F600}\""),
    ])
    func write_escapes_onlyWhatItMust(_ text: String, _ written: String) {
        #expect(JSON.string(text).description == written)
    }

    @Test func write_putsNoSpace_betweenValues() {
        let value: JSON = ["a": [1, nil, true, false, "x"], "b": [:], "c": []]
        #expect(value.description == #"{"a":[1,null,true,false,"x"],"b":{},"c":[]}"#)
    }

    @Test func raw_isTakenAsItIs() {
        var writer = JSONWriter()
        writer.raw("{\"a\":")
        writer.write(-5)
        writer.raw(",\"b\":")
        writer.write("x\"")
        writer.raw(Array(",\"c\":[]}".utf8))
        #expect(String(decoding: writer.bytes, as: UTF8.self) == #"{"a":-5,"b":"x\"","c":[]}"#)
    }

    @Test func character_isEscapedIfItHasTo_atEveryOffset() throws {
        // With what follows it, as eight bytes are looked at together.
        for code in 0..<UInt8(0x80) {
            for next in [0x20, 0x21, 0x22, 0x23, 0x5D] as [UInt8] {
                let escaped = [code, next].count { $0 < 0x20 || $0 == 0x22 || $0 == 0x5C }
                for offset in 0..<18 {
                    var bytes = Array("abcdefghijklmnopqrst".utf8)
                    bytes.replaceSubrange(offset...offset + 1, with: [code, next])
                    let text = String(decoding: bytes, as: UTF8.self)
                    let written = JSON.string(text).description
                    let backslashes = written.count { $0 == "\\" } - [code, next].count { $0 == 0x5C }
                    #expect(backslashes == escaped, "\(code) \(next) at \(offset)")
                    #expect(try JSON(parsing: written) == .string(text))
                }
            }
        }
    }

    @Test func size_isTheLengthOfTheText() {
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<500 {
            let value = JSON.random(depth: 5, using: &generator)
            #expect(value.size == value.utf8.count)
        }
    }
}
