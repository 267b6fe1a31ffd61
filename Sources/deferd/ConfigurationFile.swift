import Foundation
import JobEngine
import Yams

/// A configuration file in YAML: its keys in order, each with its line, and what is wrong with its form.
struct ConfigurationFile {
    private let path: String
    private(set) var entries: [(key: ConfigurationKey, value: ConfigurationValue, line: Int)] = []
    private(set) var faults: [ConfigurationError] = []

    /// The maximum size in bytes; parsing takes many times as much memory while the daemon serves.
    private static let longest = 1 << 20

    /// Throws if the file cannot be read at all.
    init(path: String) throws(ConfigurationError) {
        self.path = path
        let text = try Self.text(of: path)
        let root: Node?
        do {
            root = try Yams.compose(yaml: text)
        } catch let error as YamlError {
            throw Self.fault(error, path, text)
        } catch {
            throw ConfigurationError(location: path, key: nil, reason: "is not YAML: \(error)")
        }
        if let root { read(root, prefix: "") }
    }

    private static func text(of path: String) throws(ConfigurationError) -> String {
        var reason = "cannot be read; check its path, its mode and that it is a file in UTF-8"
        do {
            let bytes = try RegularFile.contents(of: path, atMost: longest)
            if let text = String(bytes: bytes, encoding: .utf8) { return text }
        } catch .missing {
            reason = "there is no such file; check its path"
        } catch .tooLong {
            reason = "is longer than \(longest) bytes, and no more are read; take out what is not a setting"
        } catch {}
        throw ConfigurationError(location: path, key: nil, reason: reason)
    }

    private static func fault(_ error: YamlError, _ path: String, _ text: String) -> ConfigurationError {
        switch error {
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
            .composer(_, let problem, let mark, _):
            ConfigurationError(location: path, line: mark.line, key: nil, reason: problem)
        case .duplicatedKeysInMapping(let names, let context):
            duplicate(names.sorted().first ?? "", from: context.mark.line, path, text)
        default:
            ConfigurationError(
                location: path, key: nil, reason: "is not YAML: \("\(error)".split(separator: "\n").first ?? "")")
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

    /// Reads the keys of a section; an invalid key does not affect the others.
    private mutating func read(_ node: Node, prefix: String) {
        guard case .mapping(let mapping) = node else {
            // All keys of the section may be commented out.
            if case .scalar(let scalar) = node, scalar.string.isEmpty || scalar.string == "null" { return }
            faults.append(fault(node, prefix.isEmpty ? nil : prefix, "must be keys with values"))
            return
        }
        for (name, value) in mapping {
            guard let text = name.scalar?.string else {
                faults.append(fault(name, nil, "a key must be a word"))
                continue
            }
            let path = prefix.isEmpty ? text : "\(prefix).\(text)"
            if let key = ConfigurationKey.named(path) {
                do throws(ConfigurationError) {
                    entries.append((key, try self.value(value, path), name.mark?.line ?? 1))
                } catch {
                    faults.append(error)
                }
            } else if ConfigurationKey.all.contains(where: { $0.name.hasPrefix("\(path).") }) {
                read(value, prefix: path)
            } else {
                faults.append(fault(name, path, "there is no such key; \(Self.hint(prefix))"))
            }
        }
    }

    private static func hint(_ prefix: String) -> String {
        let depth = prefix.split(separator: ".").count
        let names = ConfigurationKey.all.map(\.name)
            .filter { prefix.isEmpty || $0.hasPrefix("\(prefix).") }
            .map { String($0.split(separator: ".")[depth]) }
        let known = names.reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
        return "known are \(known.joined(separator: ", "))"
    }

    private func value(_ node: Node, _ key: String) throws(ConfigurationError) -> ConfigurationValue {
        switch node {
        case .scalar(let scalar): return .scalar(scalar.string == "null" || scalar.string == "~" ? "" : scalar.string)
        case .sequence(let sequence):
            var elements: [String] = []
            for element in sequence {
                guard let text = element.scalar?.string else {
                    throw fault(element, key, "must be a list of single values")
                }
                elements.append(text)
            }
            return .list(elements)
        case .mapping(let mapping):
            var members: [ConfigurationValue.Member] = []
            for (name, value) in mapping {
                guard let text = name.scalar?.string else { throw fault(name, key, "must be names with values") }
                members.append(.init(name: text, value: try self.value(value, key), line: name.mark?.line))
            }
            return .map(members)
        case .alias: throw fault(node, key, "aliases are not supported")
        }
    }

    private func fault(_ node: Node, _ key: String?, _ reason: String) -> ConfigurationError {
        ConfigurationError(location: path, line: node.mark?.line ?? 1, key: key, reason: reason)
    }
}
