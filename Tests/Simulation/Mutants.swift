import Foundation

/// A small defect to plant in the core: a text in a file and its replacement.
///
/// A file in `Mutants` has four parts: comment lines, `file: PATH`, the original text after `---`, and the replacement
/// after `+++`. There `isMutant` tells whether the defect is active, so one build contains all mutants.
struct Mutant {
    let name: String
    let file: String
    let old: String
    let new: String

    struct Malformed: Error, CustomStringConvertible {
        let description: String
    }

    init(name: String, text: String) throws {
        var (file, old, new): (String?, [String], [String]) = (nil, [], [])
        var part = 0
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
            switch (part, line) {
            case (0, "---"), (1, "+++"): part += 1
            case (0, _) where line.hasPrefix("file: "): file = String(line.dropFirst(6))
            case (0, _): break
            case (1, _): old.append(line)
            default: new.append(line)
            }
        }
        while new.last?.isEmpty == true { new.removeLast() }
        guard let file, !old.isEmpty, part == 2 else {
            throw Malformed(description: "The mutant \(name) has no file, no text or no other text.")
        }
        self.name = name
        self.file = file
        self.old = old.joined(separator: "\n")
        self.new = new.joined(separator: "\n").replacing("isMutant", with: "Mutant.\(Self.member(name))")
    }

    /// Returns the name as an enum member.
    private static func member(_ name: String) -> String {
        name.split(separator: "-").reduce("") { $0 + ($0.isEmpty ? String($1) : $1.capitalized) }
    }

    /// Returns every mutant of a directory, by name.
    static func all(in directory: String) throws -> [Mutant] {
        try FileManager.default.contentsOfDirectory(atPath: directory).sorted().filter { $0.hasSuffix(".mutant") }.map {
            try Mutant(
                name: String($0.dropLast(7)), text: String(contentsOfFile: "\(directory)/\($0)", encoding: .utf8))
        }
    }

    /// Plants all mutants in a copy of the modules below `sources`. The environment selects the active one.
    static func plant(_ mutants: [Mutant], in sources: String) throws {
        for mutant in mutants {
            let path = "\(sources)/\(mutant.file)"
            let text = try String(contentsOfFile: path, encoding: .utf8)
            let parts = text.split(separator: mutant.old, omittingEmptySubsequences: false)
            guard parts.count == 2 else {
                throw Malformed(
                    description: "What the mutant \(mutant.name) replaces stands \(parts.count - 1) times in "
                        + "\(mutant.file); write it anew for the core as it is.")
            }
            try parts.joined(separator: mutant.new).write(toFile: path, atomically: true, encoding: .utf8)
        }
        // Each is looked up once, because some are on hot paths of the core.
        let members = mutants.map { "    static let \(member($0.name)) = living == \"\($0.name)\"\n" }
        let source = """
            import Foundation

            private let living = ProcessInfo.processInfo.environment["DEFERD_MUTANT"] ?? ""

            enum Mutant {
            \(members.joined())}

            """
        for module in Set(mutants.map { $0.file.split(separator: "/")[0] }) {
            try source.write(toFile: "\(sources)/\(module)/Mutant.swift", atomically: true, encoding: .utf8)
        }
    }
}
