import JobClient
import JobModel
import Testing

@testable import DeferctlCommands

private let size = ScreenSize(columns: 61, rows: 10)

@Suite struct LogDisplayTests {
    private var log: JobsDisplay { JobsDisplay(format: TextFormat(), isLog: true, forgets: true) }

    @Test func render_writesALine_atEveryChangeOfStateAndLink() {
        var lines = log
        let running = job(1, "running", ["links": 2])
        let events: [JobEvent] = [
            .state(job(1, "queued")), .state(job(1, "queued")), .state(running), .state(running),
            .state(job(1, "running", ["link": 1, "links": 2])),
            .state(job(1, "failed", ["error": ["kind": "http", "message": "No.", "http": ["status": 503]]])),
        ]
        #expect(
            events.map { lines.render($0, now: noon) } == [
                "job 1 queued: https://example.org/a\n", "",
                "job 1 running (link 0 of 2): https://example.org/a\n", "",
                "job 1 running (link 1 of 2): https://example.org/a\n",
                "job 1 failed (http 503): https://example.org/a\n",
            ])
    }

    @Test func render_writesProgress_atEachTenth() {
        var lines = log
        _ = lines.render(.state(job(1, "running")), now: noon)
        let written = stride(from: 0, through: 1000, by: 7).map {
            lines.render(.progress(of: 1, progress($0, of: 1000, rate: 500, eta: 1)), now: noon)
        }.filter { !$0.isEmpty }
        #expect(written.count == 9)
        #expect(written.first == "job 1 10 %, 105 B of 1.0 kB, 500 B/s, 0:01 left\n")
    }

    @Test func render_writesProgress_everyTenSeconds_whenTheTotalIsUnknown() {
        var lines = log
        _ = lines.render(.state(job(1, "running")), now: noon)
        let written = (1...25).map { second in
            lines.render(.progress(of: 1, progress(second * 1000)), now: noon.adding(seconds: Double(second)))
        }.filter { !$0.isEmpty }
        #expect(written == ["job 1 10.0 kB\n", "job 1 20.0 kB\n"])
    }
}

@Suite struct LineDisplayTests {
    @Test(arguments: [true, false]) func line_stays_ifItKeepsTheOutcome(keeps: Bool) {
        var line = JobsDisplay(format: TextFormat(), job: 1, keepsLine: keeps)
        _ = line.render(.state(job(1, "succeeded", ["links": 2])), now: noon)
        #expect(line.stays == keeps)
        #expect(line.lines(now: noon, size: size) == (keeps ? ["https://example.org/a  succeeded"] : []))
    }
}

@Suite struct CountDisplayTests {
    @Test func files_areCounted_andToldAtEachTenth() {
        var log = JobsDisplay(format: TextFormat(isUnicode: false), isLog: true, total: 20)
        let written = (1...20).map { number in
            let state = number == 3 ? "failed" : "succeeded"
            return log.render(.state(job(Int64(number), state, ["result": ["size": 1000]])), now: noon)
        }.filter { !$0.isEmpty }
        #expect(written.count == 10 && written.first == "2 of 20 files, 2.0 kB\n")
        #expect(written.last == "20 of 20 files, 20.0 kB, 1 failed\n")
        #expect(log.lines(now: noon, size: size) == ["[==================]  20 of 20 files, 20.0 kB, 1 failed"])
        #expect(log.stays)
    }
}

@Suite struct BarDisplayTests {
    @Test func lines_showStateThenProgress_inOneLine() {
        var display = JobsDisplay(format: TextFormat(isUnicode: false), job: 1)
        #expect(display.lines(now: noon, size: size) == [])
        _ = display.render(.state(job(1, "queued")), now: noon)
        #expect(display.lines(now: noon, size: size) == ["https://example.org/a  queued"])
        _ = display.render(.state(job(1, "running", ["links": 1])), now: noon)
        _ = display.render(.progress(of: 1, progress(500, of: 1000), link: 0, links: 1), now: noon)
        #expect(
            display.lines(now: noon, size: size)
                == ["https://example.o...  link 0/1  [=========>         ]   50 %"])
        _ = display.render(.state(job(1, "succeeded")), now: noon)
        #expect(display.lines(now: noon, size: size) == [])
    }

    @Test func lines_tellWhyAndWhenAJobGoesOn_whenItWaitsForARetry() {
        var display = JobsDisplay(format: TextFormat(isUnicode: true), job: 1)
        let next = noon.adding(seconds: 4).description
        let error: JSON = ["kind": "http", "message": "No.", "http": ["status": 503]]
        _ = display.render(.progress(of: 1, progress(500, of: 1000)), now: noon)
        _ = display.render(
            .state(job(1, "scheduled", ["notBefore": .string(next), "error": error, "label": "a\u{1B}b"])), now: noon)
        #expect(display.lines(now: noon, size: size) == ["a\\x1bb  scheduled  retry in 4s after http 503"])
    }

    @Test func render_forgetsProgress_whenTheNextLinkBegins() {
        var display = JobsDisplay(format: TextFormat(isUnicode: false), job: 1)
        _ = display.render(.state(job(1, "running", ["links": 1])), now: noon)
        _ = display.render(.progress(of: 1, progress(500, of: 1000), link: 0, links: 1), now: noon)
        _ = display.render(.state(job(1, "running", ["link": 1, "links": 1])), now: noon)
        #expect(display.lines(now: noon, size: size) == ["https://example.org/a  link 1/1  running"])
    }
}

@Suite struct TableDisplayTests {
    private func table(forgets: Bool = true, isColored: Bool = false) -> JobsDisplay {
        var table = JobsDisplay(format: TextFormat(isUnicode: false, isColored: isColored), forgets: forgets)
        _ = table.render(.state(job(3, "queued", ["label": "three"])), now: noon)
        _ = table.render(.state(job(2, "running", ["label": "two"])), now: noon)
        _ = table.render(.progress(of: 2, progress(1_000_000, of: 4_000_000, rate: 2_000_000, eta: 1.5)), now: noon)
        _ = table.render(.state(job(1, "succeeded", ["label": "one", "result": ["size": 5]])), now: noon)
        return table
    }

    @Test func lines_showRunningFirst_andCountsLast() {
        var table = table()
        #expect(
            table.lines(now: noon, size: size) == [
                "JOB  STATE      PROGRESS                RATE  LEFT  WHAT",
                "  2  running    [==>       ]  25 %  2.0 MB/s  0:02  two",
                "  1  succeeded  5 B                                 one",
                "  3  queued                                         three",
                "1 running, 1 queued, 1 succeeded",
            ])
    }

    @Test func lines_stayWithinTheScreen() {
        var table = table()
        for number in 10..<100 { _ = table.render(.state(job(Int64(number), "queued")), now: noon) }
        let lines = table.lines(now: noon, size: ScreenSize(columns: 31, rows: 7))
        #expect(lines.count == 6)
        #expect(lines.allSatisfy { $0.columns <= 30 })
        #expect(lines.last == "1 running, 91 queued, 1 suc...")
    }

    @Test func lines_forgetFinishedJobs_unlessTheyWereNamed() {
        var (all, named) = (table(), table(forgets: false))
        let later = all.lines(now: noon.adding(seconds: 6), size: size)
        #expect(!later.contains { $0.hasSuffix("one") })
        #expect(later.last?.contains("1 succeeded") == true)
        #expect(named.lines(now: noon.adding(seconds: 60), size: size).contains { $0.hasSuffix("one") })
        #expect(named.stays && !all.stays)
    }

    @Test func render_keepsABoundedNumberOfJobs() {
        var table = JobsDisplay(format: TextFormat(isUnicode: false), forgets: true)
        for number in 1...JobsDisplay.limit + 5 { _ = table.render(.state(job(Int64(number), "queued")), now: noon) }
        _ = table.render(.state(job(99_999, "running")), now: noon)
        #expect(table.lines(now: noon, size: size).last == "1 running, \(JobsDisplay.limit) queued")
    }
}

@Suite struct DrawingTests {
    @Test func replace_goesBackToTheFirstLine() {
        var drawing = Drawing()
        #expect(drawing.replace(by: []) == "")
        #expect(drawing.replace(by: ["a", "b", "c"]) == "\ra\u{1B}[K\nb\u{1B}[K\nc\u{1B}[K\u{1B}[J")
        #expect(drawing.replace(by: ["a", "b", "c"]) == "")
        #expect(drawing.replace(by: ["d"]) == "\r\u{1B}[2Ad\u{1B}[K\u{1B}[J")
        #expect(drawing.replace(by: []) == "\r\u{1B}[J")
    }
}
