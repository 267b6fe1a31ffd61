import Foundation
import Testing

/// Every example of the documentation is in a test, word for word, be it in an article or in the comments of the code.
@Suite struct DocCoverageTests {
    /// This very file, wherever a package has linked it from.
    private static let here = URL(filePath: #filePath).resolvingSymlinksInPath()
    private static let root = here.deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// A module, and where its examples are tested, in files whose names begin with `Doc`.
    struct Module: Sendable, CustomTestStringConvertible {
        let name: String
        let tests: [String]
        let least: Int
        var testDescription: String { name }
    }

    private static let modules = [
        Module(name: "DeferredKit", tests: ["DeferredKitTests", "DataSourcesTests"], least: 50),
        Module(name: "DataSources", tests: ["DataSourcesTests"], least: 9),
        Module(name: "JobClient", tests: ["EndToEndTests"], least: 6),
    ]

    /// The lines of a text without blank ones and common indentation.
    private static func lines(of text: String) -> [String] {
        text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    /// Every example in a text, be it an article or the comments of a source file.
    private static func examples(in text: String) -> [String] {
        var examples: [String] = []
        var current: [String]?
        for line in lines(of: text) {
            let line = line.hasPrefix("///") ? line.dropFirst(3).trimmingCharacters(in: .whitespaces) : line
            if current == nil, line == "```swift" {
                current = []
            } else if let finished = current, line == "```" {
                examples.append(finished.filter { !$0.isEmpty }.joined(separator: "\n"))
                current = nil
            } else {
                current?.append(line)
            }
        }
        return examples
    }

    @Test(arguments: modules) func everyExample_isInATest(of module: Module) throws {
        let sources = Self.root.appending(path: "Sources/\(module.name)").resolvingSymlinksInPath()
        let files = try #require(FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil))
            .compactMap { $0 as? URL }.filter { ["md", "swift"].contains($0.pathExtension) }
        let tested = try module.tests.flatMap { directory -> [URL] in
            let tests = Self.root.appending(path: "Tests/\(directory)").resolvingSymlinksInPath()
            return try #require(FileManager.default.enumerator(at: tests, includingPropertiesForKeys: nil))
                .compactMap { $0 as? URL }
        }
        .filter { $0.pathExtension == "swift" && $0.lastPathComponent.hasPrefix("Doc") }
        .filter { $0.lastPathComponent != Self.here.lastPathComponent }
        .map { try Self.lines(of: String(contentsOf: $0, encoding: .utf8)).joined(separator: "\n") }
        var count = 0
        for file in files {
            for example in try Self.examples(in: String(contentsOf: file, encoding: .utf8)) {
                count += 1
                let isTested = tested.contains { $0.contains(example) }
                #expect(isTested, "an example of \(file.lastPathComponent) is not tested:\n\(example)")
            }
        }
        #expect(count >= module.least)
    }
}
