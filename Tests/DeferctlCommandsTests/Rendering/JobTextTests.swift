import JobClient
import JobModel
import Testing

@testable import DeferctlCommands

@Suite struct JobTextTests {
    @Test(
        arguments: [
            ("", []), ("a", ["a"]), ("a\nb\n", ["a", "b"]), ("a\r\nb\r\n", ["a", "b"]), ("a\n\n", ["a", ""]),
            ("1 %\r2 %\n", ["1 %\r2 %"]),
        ] as [(String, [String])])
    func lastLines_endWithLineFeeds(text: String, lines: [String]) {
        #expect(JobText.lastLines(text) == lines)
    }

    @Test(
        arguments: [
            (["type": "url", "url": "https://a/"], "https://a/"),
            (["type": "url", "url": "https://a/", "method": "POST"], "POST https://a/"),
            (["type": "url", "url": "https://a/", "method": "GET"], "https://a/"),
            (["type": "download", "url": "https://a/b", "path": "c"], "https://a/b to c"),
            (["type": "json", "url": "https://a/", "select": "/x"], "https://a/ /x"),
            (["type": "list", "jobs": [[:], [:]]], "list of 2 jobs"),
            (["type": "list", "jobs": [[:]]], "list of 1 job"), (["type": "each", "in": [1]], "each of 1 value"),
            (["type": "each", "in": [1, 2, 3]], "each of 3 values"),
            (["type": "value", "value": ["a": 1]], "value {\"a\":1}"),
            (["type": "error", "kind": "invalid"], "error invalid"),
            (["type": "timer", "seconds": 2.5], "timer 2.5 s"), (["type": "job", "job": 3], "job 3"),
            (["type": "new\u{7}"], "new\\x07"),
            ([:], "?"),
        ] as [(JSON, String)])
    func source_isDescribedInAFewWords(source: JSON, text: String) {
        #expect(JobText.describe(source: source) == text)
    }

    @Test(arguments: [
        (nil, ""), ("{\"error\": \"name\ttaken\"}", " It said: {\"error\": \"name\\ttaken\"}"), ("\n<html>", ""),
    ])
    func errorSentence_namesJobKindMessageAndAnswer(body: String?, answer: String) {
        let http: JSON = ["status": 404, "body": body.map(JSON.string) ?? .null]
        let failed = job(5, "failed", ["error": ["kind": "http", "message": "It\nbroke.", "http": http]])
        #expect(JobText(failed, now: noon).errorSentence == "Job 5 failed (http 404): It\\nbroke." + answer)
    }

    @Test func table_showsWhatMattersInEachState() {
        let jobs = [
            job(5, "running", ["progress": progress(1, of: 2).json]),
            job(4, "scheduled", ["notBefore": .string(noon.adding(seconds: 30).description)]),
            job(3, "failed", ["error": ["kind": "dns"]]),
            job(2, "cancelled", ["queue": "slow", "label": "the\ttool"]),
        ]
        #expect(
            JobTable.lines(jobs, now: noon) == [
                "JOB  STATE      DETAIL  AGE  QUEUE    WHAT",
                "  5  running    50 %    10s  default  https://example.org/a",
                "  4  scheduled  in 30s  10s  default  https://example.org/a",
                "  3  failed     dns     10s  default  https://example.org/a",
                "  2  cancelled          10s  slow     the\\ttool",
            ])
    }

    @Test func sheet_namesInnerMembersByTheirPath() {
        let lines = Sheet.lines([
            "uptime": 3700, "you": ["uid": 5, "admin": false], "sources": ["url", "json"], "bytes": ["received": 1500],
            "x": nil,
        ])
        #expect(
            lines == [
                "uptime          1 h 01 min", "you.uid         5", "you.admin       no", "sources         url json",
                "bytes.received  1500 (1.5 kB)", "x               none",
            ])
    }

    @Test(
        arguments: [
            ("queued", ["waitingFor": "slot"], "for a slot of queue default"),
            ("queued", ["waitingFor": "host"], "for example.org"),
            ("running", ["waitingFor": "job", "link": 0, "source": ["type": "job", "job": 7]], "for job 7"),
            ("held", ["waitingFor": "release"], "until it is released"),
            ("queued", ["waitingFor": "new\u{1B}"], "for new\\x1b"), ("queued", [:], ""),
            (
                "succeeded",
                [
                    "then": [["finally": ["source": ["type": "timer"]]]],
                    "outcomes": [["link": 1, "ok": false, "error": ["kind": "http", "message": "No."]]],
                ], "its finally failed"
            ),
        ] as [(String, JSON, String)])
    func detail_tellsWhatAJobWaitsFor(state: String, members: JSON, detail: String) {
        #expect(JobText(job(1, state, members), now: noon).detail == detail)
    }

    @Test func list_namesOwners_whenThereAreOthers() {
        let jobs = [job(1, "queued", ["owner": 0]), job(2, "queued", ["owner": 4_000_000_000])]
        #expect(jobs[1].isOfOther)
        let lines = JobTable.lines(jobs, now: noon, showsOwners: true)
        #expect(lines.map { $0.split(separator: " ")[1] } == ["OWNER", "root", "4000000000"])
    }

    @Test func queueTable_tellsWhatIsSuspended_andRates() {
        let queues: [JSON] = [
            [
                "queue": "default", "concurrency": 16, "perUser": 12, "suspended": false, "scheduled": 1, "queued": 200,
                "running": 16, "held": 3,
            ],
            [
                "queue": "slow", "concurrency": 1, "perUser": 1, "suspended": true, "scheduled": 0, "queued": 0,
                "running": 0, "held": 0, "startRate": .null, "byteRate": .null,
            ],
        ]
        #expect(
            QueueTable.lines(queues) == [
                "QUEUE    LIMIT  USER  RUNNING  QUEUED  SCHEDULED  HELD  STATE",
                "default     16    12       16     200          1     3  open",
                "slow         1     1        0       0          0     0  suspended",
            ])
        let limited: [JSON] = [["queue": "q", "startRate": ["count": 10, "seconds": 60], "byteRate": 2_000_000]]
        #expect(QueueTable.lines(limited)[1].split(separator: " ") == ["q", "2.0", "MB/s", "10/60s", "open"])
    }
}
