import JobModel
import Testing

@testable import DeferctlCommands

@Suite struct OpenMetricsTests {
    @Test func text_isAsTheFormatAsks() throws {
        let families: [JSON] = [
            [
                "name": "d_jobs", "type": "counter", "help": "Jobs \\ of\nall \"kinds\".",
                "samples": [["labels": ["state": "failed"], "value": 3], ["labels": ["state": "ok"], "value": 4]],
            ],
            ["name": "d_free_bytes", "type": "gauge", "unit": "bytes", "samples": [["value": 1.5e12]]],
            [
                "name": "d_run_seconds", "type": "summary", "unit": "seconds",
                "samples": [["labels": ["source": "url"], "count": 2, "sum": 0.25]],
            ],
        ]
        let text = OpenMetricsText.text(families)
        #expect(
            text == """
                # TYPE d_jobs counter
                # HELP d_jobs Jobs \\\\ of\\nall \\"kinds\\".
                d_jobs_total{state="failed"} 3
                d_jobs_total{state="ok"} 4
                # TYPE d_free_bytes gauge
                # UNIT d_free_bytes bytes
                d_free_bytes 1500000000000
                # TYPE d_run_seconds summary
                # UNIT d_run_seconds seconds
                d_run_seconds_count{source="url"} 2
                d_run_seconds_sum{source="url"} 0.25
                # EOF

                """)
    }

    @Test(arguments: [
        ("a\"b", #"a\"b"#), ("a\\b", #"a\\b"#), ("a\nb", #"a\nb"#), ("a\\n\"", #"a\\n\""#), ("\r\n", "\r\\n"),
        ("{},", "{},"),
        ("日本", "日本"), ("", ""),
    ])
    func labels_mayHoldAnything(value: String, written: String) {
        let sample: JSON = ["labels": ["q": .string(value), "r": "s"], "value": -1]
        let text = OpenMetricsText.text([["name": "g", "type": "gauge", "samples": [sample]]])
        #expect(text == "# TYPE g gauge\ng{q=\"\(written)\",r=\"s\"} -1\n# EOF\n")
    }
}
