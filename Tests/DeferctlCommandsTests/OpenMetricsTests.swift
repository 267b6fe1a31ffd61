import Foundation
import JobModel
import Testing

@testable import DeferctlCommands

/// Reads text as strictly as the format's grammar does, OpenMetrics 1.0, of the types that deferctl writes.
struct OpenMetricsReader {
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    /// By the name with its labels, as they were written.
    private(set) var samples: [String: Double] = [:]
    private(set) var types: [String: String] = [:]
    private(set) var helps: [String: String] = [:]

    private var family: String?
    private var metadata: Set<String> = []
    private var hasSamples = false

    init(_ text: String) throws {
        guard text.hasSuffix("\n# EOF\n") || text == "# EOF\n" else { throw Fault(description: "It has no end.") }
        let lines = text.dropLast("# EOF\n".count).split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        for line in lines { try read(String(line)) }
    }

    private mutating func read(_ line: String) throws {
        func fault(_ why: String) -> Fault { Fault(description: "\(why): \(line)") }
        if line.hasPrefix("#") {
            let match = line.wholeMatch(of: /# (TYPE|UNIT|HELP) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)/)
            guard let (_, word, name, rest) = match?.output else { throw fault("no metadata") }
            if family != String(name) {
                guard types[String(name)] == nil else { throw fault("the family comes a second time") }
                (family, metadata, hasSamples) = (String(name), [], false)
                guard word == "TYPE" else { throw fault("the type does not come first") }
            }
            guard !hasSamples, metadata.insert(String(word)).inserted else { throw fault("out of place") }
            switch word {
            case "TYPE":
                guard ["counter", "gauge", "summary"].contains(rest) else { throw fault("unknown type") }
                types[String(name)] = String(rest)
            case "UNIT":
                guard name.hasSuffix("_\(rest)"), !rest.isEmpty else { throw fault("the name lacks the unit") }
            default: helps[String(name)] = try Self.unescaped(rest)
            }
            return
        }
        let pattern =
            /([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\n"])*",?)*\})? ([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)/
        guard let (_, name, labels, value) = line.wholeMatch(of: pattern)?.output, let number = Double(value),
            labels?.contains(",}") != true, labels.map({ !$0.isEmpty && $0 != "{}" }) ?? true
        else { throw fault("no sample") }
        guard let family, let type = types[family] else { throw fault("a sample without a family") }
        let suffixes = ["counter": ["_total"], "gauge": [""], "summary": ["_count", "_sum"]][type] ?? []
        guard suffixes.contains(where: { family + $0 == String(name) }) else { throw fault("not of its family") }
        guard type == "gauge" || name.hasSuffix("_sum") || number >= 0 else { throw fault("below zero") }
        hasSamples = true
        guard samples.updateValue(number, forKey: String(name) + String(labels ?? "")) == nil else {
            throw fault("twice")
        }
    }

    private static func unescaped(_ text: Substring) throws -> String {
        let rest = text.replacing(/\\[\\n"]/, with: "")
        guard !rest.contains("\\") else { throw Fault(description: "an unknown escape: \(text)") }
        return String(text)
    }
}

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
        #expect(try OpenMetricsReader(text).samples.count == 5)
    }

    @Test func labels_mayHoldAnything() throws {
        for value in ["a\"b", "a\\b", "a\nb", "a\\n\"", "{}", ",", "日本", "\u{1B}[31m", ""] {
            let text = OpenMetricsText.text([
                ["name": "g", "type": "gauge", "samples": [["labels": ["q": .string(value), "r": "s"], "value": -1]]]
            ])
            let reader = try OpenMetricsReader(text)
            #expect(reader.samples.count == 1, "\(value)")
            #expect(text.hasSuffix(",r=\"s\"} -1\n# EOF\n"))
        }
    }

    @Test(arguments: [
        "", "# EOF", "a 1\n# EOF\n", "# TYPE a gauge\na 1\n", "# TYPE a gauge\na{} 1\n# EOF\n",
        "# TYPE a counter\na 1\n# EOF\n", "# TYPE a gauge\na 1\na 1\n# EOF\n", "# TYPE a gauge\n\na 1\n# EOF\n",
        "# TYPE a gauge\na{b=\"c\nd\"} 1\n# EOF\n", "# TYPE a gauge\n# UNIT a bytes\n# EOF\n",
    ])
    func reader_findsFaults(text: String) {
        #expect(throws: OpenMetricsReader.Fault.self) { try OpenMetricsReader(text) }
    }

    @Test func file_isReplacedAsAWhole() throws {
        let file = try TemporaryFile(Array("before".utf8))
        try ReplacedFile.write("after\n", to: file.path)
        #expect(try String(contentsOfFile: file.path, encoding: .utf8) == "after\n")
        let failure = #expect(throws: CommandFailure.self) { try ReplacedFile.write("x", to: "/nowhere/file") }
        #expect(failure?.status == .output)
    }
}
