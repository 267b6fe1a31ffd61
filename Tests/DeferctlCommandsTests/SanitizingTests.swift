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
        var filter = TerminalFilter()
        var shown = filter.filter(Array("a\tb\r\n\u{1B}]0;title\u{7}\u{85}é\u{A0}\u{7F}".utf8))
        #expect(String(decoding: shown, as: UTF8.self) == "a\tb\n\\x1b]0;title\\x07\\x85é\u{A0}\\x7f")
        shown = filter.filter([0x61, 0xC2]) + filter.filter([0x9B, 0x62, 0xC2]) + filter.filter([0xA9])
        #expect(String(decoding: shown, as: UTF8.self) == "a\\x9bb©")
    }

    @Test func filter_spellsOutBytesOfNoCharacter_andControlsOfDirection() {
        var filter = TerminalFilter()
        let bytes: [UInt8] = [0x9B, 0x41, 0xE9, 0x42] + Array("\u{202E}日\u{61C}".utf8) + [0xE2, 0x9D, 0x0A]
        #expect(
            filter.filter(bytes) == Array("\\x9bA".utf8) + [0xE9] + Array("B\\u{202e}日\\u{061c}".utf8) + [0xE2]
                + Array("\\x9d\n".utf8))
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
