import JobClient
import JobModel
import Testing

@testable import DeferctlCommands

@Suite struct JobTreeTests {
    private func at(_ seconds: Double) -> JSON { .string(noon.adding(seconds: seconds).description) }

    private func outcome(_ link: Int, _ from: Double, _ to: Double, error: JSON? = nil, attempts: Int = 1) -> JSON {
        .object([
            "link": link.json, "ok": (error == nil).json, "error": error, "startedAt": at(from), "finishedAt": at(to),
            "attempts": attempts.json,
        ])
    }

    private var chain: JobSnapshot {
        job(
            12, "running",
            [
                "label": "the tool", "key": "tool-1.2", "tags": ["a", "b"], "priority": 5, "owner": 4_000_000_000,
                "restarts": 2,
                "startedAt": at(-9), "attempt": 2, "link": 3, "links": 4, "children": 60,
                "then": [
                    ["then": ["source": ["type": "download", "url": "https://example.org/t", "path": "t.tgz"]]],
                    ["fail": ["return": ["ok": false]], "on": ["http", "timeout"]],
                    ["then": ["source": ["type": "each", "in": "{{input/list}}", "job": [:]]]],
                    ["finally": ["source": ["type": "url", "url": "https://example.org/done", "method": "POST"]]],
                ],
                "outcomes": [
                    outcome(0, -9, -8.6),
                    outcome(1, -8.6, -4, error: ["kind": "checksum", "message": "Wrong\u{1B}."], attempts: 5),
                    outcome(2, -4, -4),
                ],
            ])
    }

    @Test func lines_drawLinksAndChildren() {
        let children = [
            JobFamily(job: job(13, "succeeded", ["createdAt": at(-3), "result": ["size": 2000]])),
            JobFamily(
                job: job(14, "failed", ["createdAt": at(-3), "error": ["kind": "dns", "message": "No such host."]]),
                children: [JobFamily(job: job(15, "queued", ["createdAt": at(-2)]))], count: 2),
        ]
        let tree = JobTree(now: noon, format: TextFormat())
        #expect(
            tree.lines(JobFamily(job: chain, children: children, count: 60)) == [
                "job 12  running  the tool",
                "  queue default, priority 5, owner 4000000000, key tool-1.2, tags a b, restarted 2 times",
                "  submitted \(Quantities.time(noon.adding(seconds: -10))), started "
                    + "\(Quantities.time(noon.adding(seconds: -9))) \(Quantities.zone(noon))",
                "  ✓ 0  url https://example.org/a  succeeded, 0.4 s",
                "  ✗ 1  then: download https://example.org/t to t.tgz  failed, 4.6 s, 5 attempts",
                "       checksum: Wrong\\x1b.",
                "  ✓ 2  fail on http, timeout: return {\"ok\":false}  succeeded, 0.0 s",
                "  ▸ 3  then: each of {{input/list}}  running, 4.0 s, 2 attempts",
                "       ├─ 13  succeeded (2.0 kB)  https://example.org/a",
                "       ├─ 14  failed (dns)  https://example.org/a: No such host.",
                "       │  ├─ 15  queued  https://example.org/a",
                "       │  └─ 1 more; see deferctl list --all --parent 14",
                "       └─ 58 more; see deferctl list --all --parent 12",
                "  ○ 4  finally: url POST https://example.org/done  waiting",
            ])
    }

    @Test func lines_stayWithinTheWidth_inASCII() {
        let tree = JobTree(now: noon, format: TextFormat(width: 40, isUnicode: false))
        let lines = tree.lines(JobFamily(job: chain))
        #expect(lines.allSatisfy { $0.columns <= 40 })
        #expect(lines.allSatisfy { $0.utf8.allSatisfy { $0 < 0x80 } })
        #expect(lines.contains("  + 0  url http...rg/a  succeeded, 0.4 s"))
    }

    @Test func lines_breakErrors_andCutNone() {
        let message = "The server said no, and then it said no again, and nothing was to be done."
        let failed = job(
            1, "failed", ["outcomes": [outcome(0, -9, -8, error: ["kind": "http", "message": .string(message)])]])
        let lines = JobTree(now: noon, format: TextFormat(width: 40)).lines(JobFamily(job: failed))
        let text = lines.map { $0.drop { $0 == " " } }.joined(separator: " ")
        #expect(text.contains(message))
    }

    @Test func lines_colourWhatHappened_withAPalette() {
        let lines = JobTree(now: noon, format: TextFormat(isColored: true)).lines(JobFamily(job: chain))
        #expect(lines[0] == "job 12  \u{1B}[36mrunning\u{1B}[m  the tool")
        #expect(lines.contains("       \u{1B}[31mchecksum: Wrong\\x1b.\u{1B}[m"))
    }

    @Test func links_thatDidNotRun_areSkipped_whenTheJobIsFinished() {
        let finished = job(
            1, "failed",
            [
                "then": [["then": ["return": 1]], ["both": ["throw": ["message": "x"]]]],
                "outcomes": [outcome(0, -9, -8, error: ["kind": "dns"]), outcome(2, -8, -8)],
            ])
        #expect(JobLink.all(of: finished).map(\.state) == [.failed, .skipped, .succeeded])
    }

    @Test func link_thatWaitsForARetry_tellsItsLastError() {
        let waiting = job(1, "scheduled", ["attempt": 2, "error": ["kind": "http", "http": ["status": 503]]])
        let link = JobLink.all(of: waiting)[0]
        #expect(link.state == .waiting)
        #expect(link.attempts == 2)
        #expect(link.error?["kind"] == "http")
    }

    @Test func owners_areTheListsThatRanWhenTheChildrenWereMade() {
        let parent = job(
            1, "succeeded",
            [
                "source": ["type": "list", "jobs": []],
                "then": [["then": ["return": 1]], ["then": ["source": ["type": "each", "in": [], "job": [:]]]]],
                "outcomes": [outcome(0, -9, -8), outcome(1, -8, -8), outcome(2, -8, -7)],
            ])
        let children = [-8.9, -8.5, -7.5].map { job(2, "queued", ["createdAt": at($0)]) }
        #expect(JobLink.owners(of: children, in: JobLink.all(of: parent)) == [0, 0, 2])
    }
}
