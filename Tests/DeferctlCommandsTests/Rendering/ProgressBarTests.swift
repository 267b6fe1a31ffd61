import JobClient
import Testing

@testable import DeferctlCommands

@Suite struct ProgressBarTests {
    private let whole = progress(12_345_678, of: 27_000_000, rate: 3_100_000, eta: 4.7)

    @Test func line_showsEverything_whenThereIsRoom() {
        let bar = ProgressBar(width: 90, isUnicode: false)
        #expect(
            bar.line(title: "tool.tgz", progress: whole)
                == "tool.tgz  [=============>                ]   45 %  12.3 MB of 27.0 MB  3.1 MB/s  0:05 left")
    }

    @Test func line_dropsWhatMattersLeast_whenItGetsNarrow() {
        let lines = [70, 60, 50, 35, 25].map { width in
            ProgressBar(width: width, isUnicode: true).line(title: "tool.tgz", progress: whole)
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
        let bar = ProgressBar(width: width, isUnicode: isUnicode)
        for title in ["x", "a title that is rather long and 日本語 too"] {
            for progress in [whole, progress(5), progress(3, of: 7, unit: "jobs", rate: 0.5)] {
                #expect(bar.line(title: title, progress: progress, step: "link 2/3").columns <= width)
            }
        }
    }

    @Test func bar_isFull_onlyAtTheEnd() {
        let bar = ProgressBar(width: 80, isUnicode: false)
        #expect(bar.bar(0, width: 12) == "[>         ]")
        #expect(bar.bar(0.999, width: 12) == "[=========>]")
        #expect(bar.bar(1, width: 12) == "[==========]")
        #expect(bar.bar(7, width: 12) == "[==========]")
        #expect(bar.bar(-1, width: 12) == "[>         ]")
    }

    @Test func bar_goesToAndFro_whenTheTotalIsUnknown() {
        let bar = ProgressBar(width: 80, isUnicode: true)
        let ticks = (0...5).map { bar.bar(nil, width: 5, tick: $0) }
        #expect(ticks == ["━━━──", "─━━━─", "──━━━", "─━━━─", "━━━──", "─━━━─"])
    }

    @Test func amount_countsJobs() {
        #expect(ProgressBar.amount(progress(3, of: 7, unit: "jobs")) == "3 of 7 jobs")
        #expect(ProgressBar.amount(progress(3, unit: "jobs")) == "3 jobs")
        #expect(ProgressBar.amount(progress(3000)) == "3.0 kB")
    }
}
