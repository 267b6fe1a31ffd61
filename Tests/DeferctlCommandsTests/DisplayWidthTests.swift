import Testing

@testable import DeferctlCommands

@Suite struct DisplayWidthTests {
    @Test(arguments: [("abc", 3), ("grüße", 5), ("e\u{301}", 1), ("日本", 4), ("👍🏽", 2), ("한글", 4), ("", 0)])
    func columns_countWhatTheTerminalTakes(text: String, columns: Int) {
        #expect(text.columns == columns)
    }

    @Test(arguments: [
        ("abcdef", 6, "abcdef"), ("abcdef", 5, "abcd…"), ("日本語", 5, "日本…"), ("日本語", 4, "日…"), ("abc", 1, "…"),
        ("abc", 0, ""),
    ])
    func cut_staysWithinTheWidth(text: String, width: Int, shown: String) {
        #expect(text.cut(to: width) == shown)
    }

    @Test func table_alignsWideCharacters() {
        var table = Table([Table.Column("ID", isNumber: true), Table.Column("NAME"), Table.Column("LAST")])
        table.append(["1", "日本", "x"])
        table.append(["100", "abc", "yy"])
        #expect(table.lines() == [" ID  NAME  LAST", "  1  日本  x", "100  abc   yy"])
        #expect(table.lines(width: 8) == [" ID  NA…", "  1  日…", "100  ab…"])
    }
}
