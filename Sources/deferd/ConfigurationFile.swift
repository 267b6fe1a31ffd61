import Foundation
import JobEngine
import Yams

enum ConfigurationFile {
    /// The maximum size in bytes; parsing takes many times as much memory while the daemon serves.
    private static let longest = 1 << 20

    /// The sections of the file at `path`; an empty file is an empty map.
    static func contents(of path: String) throws(ConfigurationErrors) -> ConfigurationValue {
        let text = try text(of: path)
        do {
            return try Yams.compose(yaml: text) ?? Node([(Node, Node)]())
        } catch let error as YamlError {
            throw ConfigurationErrors(errors: [fault(error, path, text)])
        } catch {
            throw ConfigurationErrors("is not YAML: \(error)", in: path)
        }
    }

    private static func text(of path: String) throws(ConfigurationErrors) -> String {
        var reason = "cannot be read; check its path, its mode and that it is a file in UTF-8"
        do {
            let bytes = try RegularFile.contents(of: path, atMost: longest)
            if let text = String(bytes: bytes, encoding: .utf8) { return text }
        } catch .missing {
            reason = "there is no such file; check its path"
        } catch .tooLong {
            reason = "is longer than \(longest) bytes, and no more are read; take out what is not a setting"
        } catch {}
        throw ConfigurationErrors(reason, in: path)
    }

    private static func fault(_ error: YamlError, _ path: String, _ text: String) -> ConfigurationError {
        switch error {
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
            .composer(_, let problem, let mark, _):
            ConfigurationError(location: path, line: mark.line, reason: problem)
        case .duplicatedKeysInMapping(let names, let context):
            duplicate(names.sorted().first ?? "", from: context.mark.line, path, text)
        default:
            ConfigurationError(
                location: path, reason: "is not YAML: \("\(error)".split(separator: "\n").first ?? "")")
        }
    }

    /// The error for a key that is repeated in one section; the parser names only the section's line.
    private static func duplicate(
        _ name: String, from first: Int, _ path: String, _ text: String
    ) -> ConfigurationError {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        func indent(_ line: Substring) -> Int { line.prefix { $0 == " " }.count }
        let places = lines.indices.filter { $0 + 1 >= first && lines[$0].drop { $0 == " " }.hasPrefix("\(name):") }
        let place = places.dropFirst().first ?? places.first ?? max(0, first - 1)
        let section = lines[..<place].last {
            !$0.isEmpty && !$0.hasPrefix("#") && indent($0) < indent(lines[place])
        }
        let prefix = section.map { $0.drop { $0 == " " }.prefix { $0 != ":" } + "." } ?? ""
        return ConfigurationError(
            location: path, line: place + 1, key: "\(prefix)\(name)", reason: "is there twice; keep one of them")
    }
}
