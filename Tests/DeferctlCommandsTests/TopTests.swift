import FakeDaemon
import JobClient
import JobModel
import Testing

@testable import DeferctlCommands

private func sample(
    uptime: Double, running: Int = 2, finished: Int = 0, received: Int = 0, queues: [JSON] = [],
    jobs: [JobSnapshot] = [], others: [JobSnapshot] = [], isComplete: Bool = false
) -> TopSample {
    TopSample(
        stats: [
            "uptime": JSON(uptime), "connections": 1, "watches": 2,
            "jobs": ["running": JSON(running), "queued": 5, "scheduled": 0, "failed": 1],
            "totals": ["submitted": JSON(finished), "succeeded": JSON(finished), "failed": 0, "cancelled": 0],
            "bytes": ["received": JSON(received)],
        ], queues: queues, jobs: jobs, others: others, isComplete: isComplete)
}

private func queue(_ name: String, running: Int) -> JSON {
    [
        "queue": .string(name), "concurrency": 16, "perUser": 12, "running": JSON(running), "queued": 0, "scheduled": 0,
        "suspended": false,
    ]
}

@Suite struct TopPageTests {
    private func lines(_ view: TopView, columns: Int = 80, rows: Int = 24) -> [String] {
        TopPage(view, TextFormat(), now: noon, size: ScreenSize(columns: columns, rows: rows)).lines
    }

    private func view(_ samples: TopSample...) -> TopView {
        var view = TopView(info: ["name": "deferd", "version": "1.2", "you": ["admin": true]])
        for sample in samples { view.append(sample) }
        return view
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
            view(
                sample(uptime: 10, finished: 5, received: 1000),
                sample(uptime: 12, running: 1, finished: 9, received: 5000, queues: queues, jobs: [running])),
            columns: 110)
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
        for keys in ["", "\u{1B}[B", "?", "oo", "/x", "cc"] {
            var view = view(sample(uptime: 1, running: 5000, queues: queues, jobs: jobs))
            view.output = (1, "a\r\nb\u{1B}\r\n")
            view.press(keys)
            for (columns, rows) in [(20, 1), (20, 2), (40, 5), (79, 24), (200, 100)] {
                let screen = lines(view, columns: columns, rows: rows)
                #expect(screen.count == rows, "\(columns) by \(rows)")
                #expect(screen.allSatisfy { $0.columns <= columns }, "\(columns) by \(rows)")
                #expect(!screen.joined().contains("\u{1B}"))
            }
            if keys == "oo" { #expect(lines(view)[..<3] == ["output of job 1", "a", "b\\x1b"]) }
        }
    }

    @Test func lines_tellHowManyJobsAreNotShown_ifThatIsKnown() {
        let jobs = (1...50).map { job(Int64($0), "running") }
        let screen = lines(view(sample(uptime: 1, jobs: jobs, isComplete: true)))
        let shown = screen.count { $0.contains("http") }
        #expect(screen.contains("\(50 - shown) more; see deferctl list --all"))
        #expect(lines(view(sample(uptime: 1, jobs: jobs))).contains("more; see deferctl list --all"))
    }

    @Test func rates_areNone_whenTheDaemonStartedAnew() {
        var view = view(sample(uptime: 100, finished: 100), sample(uptime: 2, finished: 1))
        #expect(view.rate("totals", "succeeded") == nil)
        view.append(sample(uptime: 3, finished: 2))
        #expect(view.rate("totals", "succeeded") == 1)
    }
}

@Suite struct TopSampleTests {
    @Test func lines_areThoseOfPrograms_alsoWithoutTheirSource() async throws {
        let jobs = [
            job(1, "running", ["source": ["type": "program", "command": ["/x"]]]), job(2, "running"),
            job(3, "running", ["source": .null]),
        ]
        let sample = try await FakeDaemon.with { daemon in
            while let call = daemon.call() {
                let text = "line of \(call["params"]?["job"]?.int ?? 0)\n"
                let records: JSON = [["stream": "out", "text": .string(text)]]
                switch call["method"]?.string {
                case "queue.list": daemon.answer(call, ["queues": []])
                case "job.list": daemon.answer(call, ["jobs": .array(jobs.map(\.json))])
                case "job.output": daemon.answer(call, ["records": records, "next": 10, "end": false, "omitted": 0])
                default: daemon.answer(call, [:])
                }
            }
        } _: { path in
            try await JobClient.withConnection(path: path) { try await TopSample(from: $0, rows: 10) }
        }
        #expect(sample.lines == [1: "line of 1", 3: "line of 3"])
        // The arrays, not the results that they are in.
        #expect(sample.json == ["stats": [:], "queues": [], "jobs": .array(jobs.map(\.json))])
    }
}

extension TopView {
    /// Presses keys, and returns what they ask for.
    @discardableResult
    fileprivate mutating func press(_ text: String) -> [Action] {
        Key.all(in: Array(text.utf8)).compactMap { press($0) }
    }
}

@Suite struct KeyTests {
    @Test func keys_areRead() {
        #expect(
            Key.all(in: Array("\u{1B}[A\u{1B}OBq\u{1B}[3~é\r\u{7F}\u{1B}".utf8)) == [
                .up, .down, .character("q"), .character("é"), .enter, .backspace, .escape,
            ])
        #expect(Key.all(in: [0x1B, 0x5B, 0xFF, 0x01]) == [])
    }
}
