@testable import DataSources
import JobModel
import Testing

/// Lines that tell progress, and what is left of the others, wherever the pieces of the output are cut.
@Suite struct ProgressLinesTests {
    /// What is made of `text` where it comes in pieces of `size` bytes.
    private func sorted(_ text: String, by size: Int) -> (result: String, progress: [ProgressLines.Progress]) {
        var output = ProgressLines()
        var progress: [ProgressLines.Progress] = []
        let bytes = Array(text.utf8)
        for start in stride(from: 0, to: bytes.count, by: size) {
            let piece = Array(bytes[start..<min(start + size, bytes.count)])
            if let told = piece.withUnsafeBytes({ output.append($0) }) { progress.append(told) }
        }
        if let told = output.end() { progress.append(told) }
        return (String(decoding: output.drain(), as: UTF8.self), progress)
    }

    @Test(arguments: [1, 2, 3, 7, 1000]) func progressLines_areTakenOut(size: Int) {
        let (result, progress) = sorted(
            """
            one
             {"progress": {"completed": 1}}
            {"two": 2}
            {"progress":{"completed":2.9,"total":4,"unit":"frames"}}\r

            {"progress":{"completed":3,"total":null,"unit":null}}
            """, by: size)
        #expect(result == "one\n{\"two\": 2}\n\n")
        let told = [
            ProgressLines.Progress(completed: 1, unit: .items),
            ProgressLines.Progress(completed: 2, total: 4, unit: Progress.Unit(rawValue: "frames")),
            ProgressLines.Progress(completed: 3, unit: .items),
        ]
        // Of those that come together the last counts.
        #expect(size > 100 ? progress == [told[1], told[2]] : progress == told)
    }

    @Test(arguments: [
        #"{"progress": 1}"#, #"{"progress": {}}"#, #"{"progress": {"completed": "1"}}"#,
        #"{"progress": {"completed": -1}}"#, #"{"progress": {"completed": 1e30}}"#,
        #"{"progress": {"completed": 1}, "more": 1}"#, #"{"progress": {"completed": 1, "more": 1}}"#,
        #"{"progress": {"completed": 1, "total": "2"}}"#, #"{"progress": {"completed": 1, "unit": ""}}"#,
        #"{"progress": {"completed": 1, "unit": "two words"}}"#, #"{"progress": {"completed": 1, "unit": "a\"b"}}"#,
        #"{"progress": {"completed": 1}} x"#, #"{"progress": {"completed": 1}"#, #"[{"progress": {"completed": 1}}]"#,
    ]) func aMalformedLine_isOutput(line: String) {
        let (result, progress) = sorted(line + "\n", by: 5)
        #expect(result == line + "\n")
        #expect(progress.isEmpty)
    }

    @Test func aLineThatIsTooLong_isOutput() {
        let line =
            #"{"progress": {"completed": 1}"# + String(repeating: " ", count: ProgressLines.longestProgress) + "}\n"
        let (result, progress) = sorted(line + #"{"progress": {"completed": 2}}"#, by: 100)
        #expect(result == line)
        #expect(progress == [ProgressLines.Progress(completed: 2, unit: .items)])
    }
}
