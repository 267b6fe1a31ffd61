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
    }
}
