import Foundation
import Testing

/// The papers for contributors name files, directories, commands and symbols that exist.
@Suite struct PapersTests {
    static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()

    /// A paper, and the directories in which its names are looked up.
    struct Paper: Sendable, CustomTestStringConvertible {
        let path: String
        let directories: [String]
        var testDescription: String { path }
    }

    private static let papers = [
        Paper(path: "Sources/README.md", directories: ["Sources", "Tests", ""]),
        Paper(path: "Tests/README.md", directories: ["Tests", "Sources", ""]),
        Paper(path: ".github/CONTRIBUTING.md", directories: ["", "Sources", "Tests"]),
        Paper(path: ".github/SECURITY.md", directories: ["", "Sources", "Tests"]),
    ]

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    /// The text between backticks, outside of blocks.
    private static func terms(_ text: String) -> [String] {
        let outside = text.components(separatedBy: "```").enumerated().filter { $0.offset.isMultiple(of: 2) }
            .map(\.element).joined()
        return outside.split(separator: "`", omittingEmptySubsequences: false).enumerated()
            .filter { !$0.offset.isMultiple(of: 2) }.map { String($0.element) }
    }

    /// All code, in which symbols are looked for.
    private static let code: String = {
        var code = ""
        for directory in ["Sources", "Tests"] {
            let files = FileManager.default.enumerator(atPath: root.appending(path: directory).path)
            while let path = files?.nextObject() as? String {
                guard path.hasSuffix(".swift"), !path.hasSuffix("PapersTests.swift") else { continue }
                code += (try? text("\(directory)/\(path)")) ?? ""
            }
        }
        return code
    }()

    /// The names in the code: looking through all of it for each takes a processor for seconds, which other tests wait
    /// for.
    private static let words: Set<Substring> = {
        let isLetter: (Character) -> Bool = { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
        return Set(code.split { !isLetter($0) })
    }()

    /// The functions in the code, each with its labels, such as `round(_:)`.
    private static let functions = Set(
        code.components(separatedBy: "func ").map { declaration in
            var name = String(declaration.prefix(while: \.isLetter)) + "("
            var (depth, isLabel, last) = (0, false, Character(" "))
            for character in declaration.drop(while: { $0 != "(" }) {
                switch character {
                case "(", "[", "{", "<":
                    depth += 1
                    isLabel = depth == 1
                case ">" where last == "-": break
                case ")", "]", "}", ">": depth -= 1
                case ",": isLabel = depth == 1
                case _ where isLabel && (character.isLetter || character == "_"): name.append(character)
                case _ where isLabel && name.last != "(" && name.last != ":":
                    name += ":"
                    isLabel = false
                default: break
                }
                if depth == 0 { break }
                last = character
            }
            return name + ")"
        })

    @Test(arguments: papers) func names_exist(_ paper: Paper) throws {
        let terms = Self.terms(try Self.text(paper.path))
        #expect(terms.count > 10)
        let makefile = try Self.text("Makefile")
        let package = try Self.text("Package.swift")
        for term in Set(terms).sorted() {
            if let function = term.firstMatch(of: /(?:^|\.)([a-z][A-Za-z]*\([A-Za-z_:]+:\))$/) {
                let isKnown = Self.functions.contains(String(function.1))
                #expect(isKnown, "\(paper.path): \(term)")
            }
            if term.hasPrefix("make ") {
                let target = term.dropFirst(5).prefix { $0 != " " }
                #expect(makefile.contains("\n\(target):"), "\(paper.path): \(term)")
            } else if term.contains("/") || term.hasSuffix(".swift") || term.hasSuffix(".txt") {
                // Results of a build exist only after it.
                guard !term.contains(" "), !term.hasPrefix(".build/") else { continue }
                let isThere = paper.directories.contains {
                    FileManager.default.fileExists(atPath: Self.root.appending(path: $0).appending(path: term).path)
                }
                let isNamed = !term.contains("/") && Self.fileNames.contains(term)
                #expect(isThere || isNamed, "\(paper.path): \(term)")
            } else if let name = term.firstMatch(of: /^[A-Z][A-Za-z]+(\.[a-z][A-Za-z]*)?/),
                name.0 == term.prefix(name.0.count)
            {
                // A type, with a member perhaps; a module; a file without its ending.
                for part in name.0.split(separator: ".") {
                    let isKnown =
                        Self.words.contains(part) || package.contains(part) || Self.isFile(String(part))
                        || makefile.contains(part) || Self.code.contains(part)
                    #expect(isKnown, "\(paper.path): \(term)")
                }
            }
        }
    }

    private static let fileNames: Set<String> = {
        var names: Set<String> = []
        for directory in ["Sources", "Tests", ".ci"] {
            let files = FileManager.default.enumerator(atPath: root.appending(path: directory).path)
            while let path = files?.nextObject() as? String { names.insert(URL(filePath: path).lastPathComponent) }
        }
        return names
    }()

    private static func isFile(_ name: String) -> Bool {
        fileNames.contains(name) || FileManager.default.fileExists(atPath: root.appending(path: name).path)
    }
}
