import Foundation
import JobModel
import JobProtocol
import Testing

/// The examples of the manual pages are what they say they are.
@Suite struct ManualTests {
    struct Example: Sendable, CustomStringConvertible {
        let kind: String
        let line: String
        let description: String
    }

    /// The lines of the blocks that are marked as examples, in all pages.
    static let examples: [Example] = {
        let directory = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "config/man")
        let pages = (try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []
        return pages.sorted().flatMap { page -> [Example] in
            let text = (try? String(contentsOf: directory.appending(path: page), encoding: .utf8)) ?? ""
            var kind: String?
            var examples: [Example] = []
            for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
                if line.hasPrefix(".\\\" example: ") {
                    kind = String(line.dropFirst(13))
                } else if line == ".Ed" {
                    kind = nil
                } else if let kind, !line.hasPrefix(".") {
                    let plain = String(line).replacing("\\e", with: "\\")
                    examples.append(Example(kind: kind, line: String(plain), description: "\(page):\(number + 1)"))
                }
            }
            return examples
        }
    }()

    @Test func pages_haveExamplesOfEveryKind() {
        #expect(Set(Self.examples.map(\.kind)) == ["request", "spec", "answer", "notification", "value"])
        #expect(Self.examples.count > 50)
    }

    @Test(arguments: examples)
    func example_isWhatItSaysItIs(_ example: Example) throws {
        let json = try JSON(parsing: example.line)
        switch example.kind {
        case "spec": _ = try JobSpecReader.spec(json, limits: JobLimits())
        case "request":
            let line = IncomingLine(Array(example.line.utf8))
            let request = try #require(line.requests.first)
            if line.isBatch { return }
            let method = try #require(MethodName(rawValue: request.method))
            if method == .jobSubmit || method == .jobExplain {
                var spec = request.params
                spec["watch"] = nil
                _ = try JobSpecReader.spec(.object(spec), limits: JobLimits())
            }
        case "answer", "notification": _ = try ServerMessage(Array(example.line.utf8))
        default: break
        }
    }
}
