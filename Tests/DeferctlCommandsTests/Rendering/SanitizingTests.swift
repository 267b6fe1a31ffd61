import JobModel
import Testing

@testable import DeferctlCommands

@Suite struct SanitizingTests {
    @Test(arguments: [
        ("plain text: grüße 日本 👍", "plain text: grüße 日本 👍"),
        ("\u{1B}[31mred\u{1B}[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("\u{0}\u{7}\u{8}\u{7F}", "\\x00\\x07\\x08\\x7f"),
        ("\u{9B}2J", "\\x9b2J"),
        ("\u{202E}gnp.exe", "\\u{202e}gnp.exe"),
        ("one\u{2028}two", "one\\u{2028}two"),
        ("\r\n", "\\r\\n"), ("a\u{61C}b\u{200F}", "a\\u{061c}b\\u{200f}"),
    ])
    func sanitized_spellsOutWhatSteersATerminal(text: String, shown: String) {
        #expect(text.sanitized == shown)
    }

    @Test func filter_spellsOutControls_evenSplitOnes_andKeepsText() {
        let text = "a\tb\r\n\u{1B}]0;title\u{7}\u{85}é\u{A0}\u{7F}\u{9B}日\u{202E}\u{61C}👍\n"
        let shown = "a\tb\n\\x1b]0;title\\x07\\x85é\u{A0}\\x7f\\x9b日\\u{202e}\\u{061c}👍\n"
        for size in 1...text.utf8.count {
            var (filter, filtered) = (TerminalFilter(), [UInt8]())
            for start in stride(from: 0, to: text.utf8.count, by: size) {
                filtered += filter.filter(Array(Array(text.utf8)[start...].prefix(size)))
            }
            #expect(String(decoding: filtered, as: UTF8.self) == shown, "in pieces of \(size)")
        }
        // 0x9B alone begins a control sequence for some terminals.
        var filter = TerminalFilter()
        let odd = filter.filter([0x9B, 0x41, 0xE9, 0x42, 0xE2]) + filter.filter([0x9D, 0x0A])
        #expect(!odd.contains(0x9B) && odd.contains(0x41) && odd.contains(0x42) && odd.last == 0x0A)
    }

    @Test func prettyJSON_breaksLines_andEscapesControls() {
        let text = PrettyJSON.text([
            "a": [1, 2.50, [:], []], "b\u{1B}": "\u{9B}\u{202E}\u{7F}x", "c": ["d": nil],
        ])
        let shown = """
            {
              "a": [
                1,
                2.5,
                {},
                []
              ],
              "b\\u001b": "\\u009b\\u202e\\u007fx",
              "c": {
                "d": null
              }
            }
            """
        #expect(text == shown)
    }
}
