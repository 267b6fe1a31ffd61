import DataSources
import Testing

@Suite struct IPAddressTests {
    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1"), ("2130706433", "127.0.0.1"), ("0x7f000001", "127.0.0.1"),
        ("0X7F.1", "127.0.0.1"), ("0177.0.0.1", "127.0.0.1"), ("017700000001", "127.0.0.1"),
        ("169.254.43518", "169.254.169.254"), ("0251.0376.0251.0376", "169.254.169.254"), ("0", "0.0.0.0"),
        ("::", "::"), ("::1", "::1"), ("fe80::1", "fe80::1"), ("FE80:0:0:0:0:0:0:1", "fe80::1"),
        ("::ffff:169.254.169.254", "::ffff:169.254.169.254"), ("::ffff:a9fe:a9fe", "::ffff:169.254.169.254"),
        ("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"), ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
        ("64:ff9b::10.0.0.1", "64:ff9b::a00:1"), ("1::", "1::"),
    ])
    func text_isThatAddress_inEverySpelling(text: String, address: String) {
        #expect(IPAddress(text)?.description == address)
    }

    @Test(arguments: [
        "", ".", "1.2.3.4.5", "256.0.0.1", "1.2.3.256", "4294967296", "08", "0x1g", "1..2", "-1", "+1", "a", ":", ":::",
        "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "12345::", "::1.2.3", "::1.2.3.256", "1:2:3:4:5:6:7::8",
        "::01.2.3.04567",
    ])
    func text_isNoAddress_whenMalformed(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test(arguments: [
        ("::ffff:10.0.0.1", "10.0.0.1"), ("::10.0.0.1", "10.0.0.1"), ("64:ff9b::10.0.0.1", "10.0.0.1"),
        ("2002:a00:1::", "10.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("::ffff:0.0.0.0", "127.0.0.1"),
    ])
    func aliases_holdAddress_thatConnectionEndsAt(text: String, alias: String) {
        #expect(IPAddress(text)?.aliases.map(\.description).contains(alias) == true)
    }
}
