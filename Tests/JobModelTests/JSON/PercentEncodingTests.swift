import JobModel
import Testing

@Suite struct PercentEncodingTests {
    @Test(arguments: [
        ("", ""), ("AZaz09-._~", "AZaz09-._~"), ("a b", "a%20b"), ("a/b?c=d&e#f", "a%2Fb%3Fc%3Dd%26e%23f"),
        ("100%", "100%25"), ("\u{E4}", "%C3%A4"), ("\u{1F600}", "%F0%9F%98%80"), ("\u{0}\n", "%00%0A"),
        (":@[]!$'()*+,;", "%3A%40%5B%5D%21%24%27%28%29%2A%2B%2C%3B"), ("{{}}", "%7B%7B%7D%7D"), ("../x", "..%2Fx"),
    ])
    func text_keepsOnlyUnreservedCharacters(_ text: String, _ encoded: String) {
        #expect(PercentEncoding.encoded(text) == encoded)
        #expect(PercentEncoding.decoded(encoded) == text)
    }

    @Test(arguments: [("%e4%BD%a0", "\u{4F60}"), ("a/b?c", "a/b?c"), ("+", "+"), ("%2525", "%25")])
    func text_isDecodedOnce_inEitherCase(_ encoded: String, _ text: String) {
        #expect(PercentEncoding.decoded(encoded) == text)
    }

    @Test(arguments: ["%", "%2", "a%", "%%20", "%+1", "%g0", "%0g", "%FF", "%C3", "%ED%A0%80"])
    func text_isNotDecoded_whereItIsNoneOrNotUTF8(_ text: String) {
        #expect(PercentEncoding.decoded(text) == nil)
    }
}
