import JobClient
import JobModel
import Testing

@testable import DeferctlCommands

private func sample(
    uptime: Double, running: Int = 2, finished: Int = 0, received: Int = 0, queues: [JSON] = [],
    jobs: [JobSnapshot] = [], isComplete: Bool = false
) -> TopSample {
    TopSample(
        stats: [
            "uptime": JSON(uptime), "connections": 1, "watches": 2,
            "jobs": ["running": JSON(running), "queued": 5, "scheduled": 0, "failed": 1],
            "totals": ["submitted": JSON(finished), "succeeded": JSON(finished), "failed": 0, "cancelled": 0],
            "bytes": ["received": JSON(received)],
        ], queues: queues, jobs: jobs, isComplete: isComplete)
}

private func queue(_ name: String, running: Int) -> JSON {
    [
        "queue": .string(name), "concurrency": 16, "perUser": 12, "running": JSON(running), "queued": 0, "scheduled": 0,
        "suspended": false,
    ]
}

@Suite struct TopTests {
    private let info: JSON = ["name": "deferd", "version": "1.2", "you": ["admin": true]]

    private func lines(_ samples: [TopSample], columns: Int = 80, rows: Int = 24, info: JSON? = nil) -> [String] {
        var view = TopView(info: info ?? self.info)
        for sample in samples { view.append(sample) }
        return TopPage(format: TextFormat()).lines(
            view, TopControl(), now: noon, size: ScreenSize(columns: columns, rows: rows))
    }

    @Test func lines_showCountsRatesQueuesAndJobs() {
        let running = job(
            7, "running",
            [
                "owner": 4_000_000_000, "startedAt": .string(noon.adding(seconds: -5).description),
                "progress": progress(50, of: 100, rate: 2000, eta: 3).json,
            ])
        let queues = [queue("default", running: 0), queue("night", running: 1)]
        let screen = lines(
            [
                sample(uptime: 10, finished: 5, received: 1000),
                sample(uptime: 12, running: 1, finished: 9, received: 5000, queues: queues, jobs: [running]),
            ], columns: 110)
        #expect(screen.count == 24)
        #expect(screen[0] == "deferd 1.2  up 12 s  1 connection  2 watches")
        #expect(screen[1] == "1 running  5 queued  0 scheduled  0 succeeded  1 failed  0 cancelled")
        #expect(screen[2] == "2.0 kB/s received  2.0 finished/s  2.0 submitted/s  0.0 failed/s")
        #expect(screen[5].hasPrefix("night "))
        #expect(screen[6].hasPrefix("default "))
        #expect(screen[8].hasPrefix("JOB  OWNER       STATE    PROGRESS"))
        #expect(
            screen[9].hasPrefix(
                "  7  4000000000  running  ━━━━━━━━━━━───────────  50 %  2.0 kB/s  0:03    5s  default  http"))
        #expect(screen.last == "q quits, ? helps")
    }

    @Test func lines_fitEveryScreen() {
        let jobs = (1...50).map { job(Int64($0), "running", ["label": "日本語 \u{1B}[31m and more of it, much more"]) }
        let queues = (1...30).map { queue("queue-\($0)", running: $0) }
        for columns in [1, 10, 20, 40, 79, 200] {
            for rows in [1, 2, 5, 12, 24, 100] {
                let screen = lines(
                    [sample(uptime: 1, running: 5000, queues: queues, jobs: jobs)], columns: columns, rows: rows)
                #expect(screen.count <= rows, "\(columns) by \(rows)")
                #expect(screen.allSatisfy { $0.columns <= max(10, columns) }, "\(columns) by \(rows)")
                #expect(!screen.joined().contains("\u{1B}"))
            }
        }
    }

    @Test func lines_countNoChildrenAmongWhatIsNotShown_whenAllOthersAreKnown() {
        let jobs = (1...50).map { job(Int64($0), "running") }
        let screen = lines([sample(uptime: 1, running: 60, jobs: jobs, isComplete: true)])
        let shown = screen.filter { $0.contains("http") }.count
        #expect(screen.contains("\(50 - shown) more; see deferctl list --all"))
        let part = lines([sample(uptime: 1, running: 60, jobs: jobs)])
        #expect(part.contains("up to \(60 - shown) more; see deferctl list --all"))
    }

    @Test func rates_areNone_whenTheDaemonStartedAnew() {
        var view = TopView()
        view.append(sample(uptime: 100, finished: 100))
        view.append(sample(uptime: 2, finished: 1))
        #expect(view.rate("totals", "succeeded") == nil)
        view.append(sample(uptime: 3, finished: 2))
        #expect(view.rate("totals", "succeeded") == 1)
    }
}
