import JobModel
import TestSupport
import Testing

@Suite struct Base64Tests {
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func text_isThatOfSection10_ofRFC4648(_ plain: String, _ encoded: String) {
        #expect(Base64.encode(Array(plain.utf8)) == encoded)
        #expect(Base64.decode(encoded) == Array(plain.utf8))
    }

    @Test func bytes_comeBack_whateverTheyAre() {
        var generator = SeededGenerator(seed: 6)
        for length in 0..<200 {
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
            #expect(Base64.encode(bytes).utf8.count == (length + 2) / 3 * 4)
        }
    }

    @Test(arguments: [
        "Z", "Zg", "Zg=", "Zg===", "=", "==", "====", "Z===", "Zm=v", "Zg==Zg==", "Zm9v\n", "Zm 9", "Zm9-", "Zm9_",
        "Zm9\u{E4}", "Z\u{301}m9", " Zm9v",
    ])
    func text_isRefused_whereItIsNoBase64(_ text: String) {
        #expect(Base64.decode(text) == nil)
    }
}
