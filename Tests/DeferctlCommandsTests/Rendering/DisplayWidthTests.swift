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
        let table = Table<[String]>([
            .number("ID") { $0[0] }, .init("NAME", text: { $0[1] }), .init("LAST", text: { $0[2] }),
        ])
        let rows = [["1", "日本", "x"], ["100", "abc", "yy"]]
        #expect(table.lines(rows) == [" ID  NAME  LAST", "  1  日本  x", "100  abc   yy"])
        #expect(table.lines(rows, TextFormat(width: 8)) == [" ID  NA…", "  1  日…", "100  ab…"])
    }

    @Test(arguments: [
        ("https://example.org/file.tar.gz", 20, "https://exam….tar.gz"), ("日本語日本語", 9, "日本…語"), ("abcdef", 6, "abcdef"),
        ("abcdef", 3, "ab…"), ("", 0, ""),
    ])
    func cutInside_keepsBeginningAndEnd(text: String, width: Int, shown: String) {
        #expect(text.cutInside(to: width) == shown)
        #expect(text.cutInside(to: width).columns <= width)
    }

    @Test(arguments: [
        ("one two three", 8, ["one two", "three"]), ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("a bcdefghij k", 4, ["a", "bcde", "fghi", "j k"]), ("日本語", 1, ["日", "本", "語"]), ("", 5, [""]),
        ("      ", 5, [""]),
        ("a.json:1:2: no\n    x  y\none two three", 14, ["a.json:1:2: no", "    x  y", "one two three"]),
        ("a\r\n\nb c", 2, ["a", "", "b", "c"]),
    ])
    func wrapped_losesNothing(text: String, width: Int, lines: [String]) {
        #expect(text.wrapped(to: width) == lines)
    }

    private func jobs(_ format: TextFormat = TextFormat(), showsHead: Bool = false) -> [String] {
        Table<Int>([
            .number("ID") { "\($0)" }, .init("NOTE", cut: .end, rank: 1, text: { _ in "longer than most" }),
            .init("NONE", rank: 2, text: { _ in "" }),
            .init("URL", cut: .middle, least: 9, text: { _ in "https://example.org/abcdefghijklm" }),
        ]).lines([1], format, showsHead: showsHead)
    }

    @Test func table_cutsWhatMayBeCut_thenLeavesColumnsOut() {
        #expect(jobs() == ["1  longer than most    https://example.org/abcdefghijklm"])
        #expect(jobs(TextFormat(width: 50)) == ["1  longer than most    https://example.…defghijklm"])
        #expect(jobs(TextFormat(width: 30)) == ["1  longer than…    https:…jklm"])
        #expect(jobs(TextFormat(width: 14)) == ["1  https:…jklm"])
        for width in 0..<60 {
            let lines = jobs(TextFormat(width: width), showsHead: true)
            #expect(lines.allSatisfy { $0.columns <= width }, "\(width)")
        }
    }

    @Test func color_followsTerminalAndEnvironment_unlessToldOtherwise() {
        let terminal = ["TERM": "xterm"]
        #expect(ColorChoice.auto.isColored(isTerminal: true, terminal))
        #expect(!ColorChoice.auto.isColored(isTerminal: false, terminal))
        #expect(!ColorChoice.auto.isColored(isTerminal: true, ["TERM": "dumb"]))
        #expect(!ColorChoice.auto.isColored(isTerminal: true, [:]))
        #expect(!ColorChoice.auto.isColored(isTerminal: true, ["TERM": "xterm", "NO_COLOR": "1"]))
        #expect(ColorChoice.auto.isColored(isTerminal: true, ["TERM": "xterm", "NO_COLOR": ""]))
        #expect(ColorChoice.always.isColored(isTerminal: false, ["NO_COLOR": "1"]))
        #expect(!ColorChoice.never.isColored(isTerminal: true, terminal))
    }
}
