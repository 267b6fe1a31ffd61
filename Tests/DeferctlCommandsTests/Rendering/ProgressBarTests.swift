import JobClient
import Testing

@testable import DeferctlCommands

@Suite struct ProgressBarTests {
    private let whole = progress(12_345_678, of: 27_000_000, rate: 3_100_000, eta: 4.7)

    @Test func line_showsEverything_whenThereIsRoom() {
        let format = TextFormat(width: 90, isUnicode: false)
        #expect(
            format.line(whole, title: "tool.tgz")
                == "tool.tgz  [=============>                ]   45 %  12.3 MB of 27.0 MB  3.1 MB/s  0:05 left")
    }

    @Test func line_dropsWhatMattersLeast_whenItGetsNarrow() {
        let lines = [70, 60, 50, 35, 25].map { width in
            TextFormat(width: width).line(whole, title: "tool.tgz")
        }
        #expect(
            lines == [
                "tool.tgz  ━━━━━───────   45 %  12.3 MB of 27.0 MB  3.1 MB/s  0:05 left",
                "tool.tgz  ━━━━━────────   45 %  12.3 MB of 27.0 MB  3.1 MB/s",
                "tool.tgz  ━━━━━────────   45 %  12.3 MB of 27.0 MB",
                "tool.tgz  ━━━━━━━━──────────   45 %",
                "tool.tgz  ━━━─────   45 %",
            ])
    }

    @Test(arguments: 1...120, [true, false])
    func line_neverExceedsTheWidth(width: Int, isUnicode: Bool) {
        let format = TextFormat(width: width, isUnicode: isUnicode)
        for title in ["x", "a title that is rather long and 日本語 too"] {
            for progress in [whole, progress(5), progress(3, of: 7, unit: "jobs", rate: 0.5)] {
                #expect(format.line(progress, title: title, step: "link 2/3").columns <= width)
            }
        }
    }

    @Test func bar_isFull_onlyAtTheEnd() {
        let format = TextFormat(isUnicode: false)
        #expect(format.bar(0, width: 12) == "[>         ]")
        #expect(format.bar(0.999, width: 12) == "[=========>]")
        #expect(format.bar(1, width: 12) == "[==========]")
        #expect(format.bar(7, width: 12) == "[==========]")
        #expect(format.bar(-1, width: 12) == "[>         ]")
    }

    @Test func bar_goesToAndFro_whenTheTotalIsUnknown() {
        let ticks = (0...5).map { TextFormat().bar(nil, width: 5, tick: $0) }
        #expect(ticks == ["━━━──", "─━━━─", "──━━━", "─━━━─", "━━━──", "─━━━─"])
    }

    @Test func amount_countsJobs() {
        #expect(progress(3, of: 7, unit: "jobs").amount == "3 of 7 jobs")
        #expect(progress(3, unit: "jobs").amount == "3 jobs")
        #expect(progress(3000).amount == "3.0 kB")
    }
}
