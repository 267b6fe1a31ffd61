import Foundation

/// A value of the configuration as it was written in a file, a variable or a flag.
enum ConfigurationValue {
    case scalar(String)
    case list([String])
    case map([Member])
    /// A value that YAML allows, but no key.
    case invalid(ConfigurationErrors)

    /// An entry of a map, with its line.
    struct Member {
        let name: String
        let value: ConfigurationValue
        var line: Int?
    }

    func text() throws -> String {
        switch self {
        case .scalar(let text) where !text.isEmpty: text
        case .scalar: throw ConfigurationErrors("must not be empty")
        case .list, .map: throw ConfigurationErrors("must be a single value")
        case .invalid(let errors): throw errors
        }
    }

    /// A text, or nil if it is empty.
    func optionalText() throws -> String? {
        if case .scalar("") = self { nil } else { try text() }
    }

    func integer(_ range: ClosedRange<Int>) throws -> Int {
        guard let value = Int(try text()), range.contains(value) else {
            throw ConfigurationErrors("must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    func seconds(_ range: ClosedRange<Double>) throws -> Double {
        guard let value = Double(try text()), range.contains(value) else {
            throw ConfigurationErrors("must be a number of seconds from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    func flag() throws -> Bool {
        guard let value = Bool(try text()) else { throw ConfigurationErrors("must be true or false") }
        return value
    }

    func octal() throws -> UInt32 {
        let digits = try text()
        guard (3...4).contains(digits.utf8.count), let mode = UInt32(digits, radix: 8) else {
            throw ConfigurationErrors("must be a mode in octal digits, such as \"0660\"")
        }
        return mode
    }

    func path() throws -> String {
        let path = try text()
        guard path.hasPrefix("/") else { throw ConfigurationErrors("must be an absolute path") }
        return path
    }

    /// A list; in a variable, its elements are separated by commas.
    func strings() throws -> [String] {
        switch self {
        case .list(let elements): elements
        case .scalar(let text): text.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        case .map: throw ConfigurationErrors("must be a list")
        case .invalid(let errors): throw errors
        }
    }

    func paths() throws -> [String] {
        let paths = try strings()
        if let path = paths.first(where: { !$0.hasPrefix("/") }) {
            throw ConfigurationErrors("contains \"\(path)\", which is not an absolute path")
        }
        return paths
    }

    /// Calls `body` with each entry of a map, and throws the errors of all entries together.
    ///
    /// In a variable, the entries are `name=value`, separated by commas.
    func forEach(_ hint: String, _ body: (Member) throws -> Void) throws {
        var members: [Member] = []
        switch self {
        case .map(let all): members = all
        case .list: throw ConfigurationErrors(hint)
        case .invalid(let errors): throw errors
        case .scalar(let text):
            for part in text.split(separator: ",") {
                let halves = part.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
                guard halves.count == 2 else { throw ConfigurationErrors("must be name=value, separated by commas") }
                members.append(Member(name: halves[0], value: .scalar(halves[1])))
            }
        }
        var errors: [ConfigurationError] = []
        for member in members {
            do { try body(member) } catch let error as ConfigurationErrors { errors += error.errors }
        }
        if !errors.isEmpty { throw ConfigurationErrors(errors: errors) }
    }
}

extension ConfigurationValue.Member {
    /// Reads the settings of a map into `entry`; any other value is that of the first setting.
    func read<Entry>(into entry: inout Entry, _ settings: [ConfigurationSetting<Entry>]) throws {
        guard case .map(let members) = value else {
            return try located(in: name) { try settings[0].apply(&entry, value) }
        }
        for member in members {
            let path = "\(name).\(member.name)"
            guard let setting = settings.first(where: { $0.name == member.name }) else {
                let known = settings.map(\.name).joined(separator: ", ")
                throw ConfigurationErrors("\(path): there is no such key; known are \(known)", line: member.line)
            }
            try member.located(in: path) { try setting.apply(&entry, member.value) }
        }
    }

    /// Runs `body`, and adds the path and the line of this member to errors without a line.
    func located<Value>(in path: String, _ body: () throws -> Value) throws -> Value {
        do { return try body() } catch let error as ConfigurationErrors {
            throw ConfigurationErrors(
                errors: error.errors.map {
                    $0.line == nil ? ConfigurationError(line: line, reason: "\(path): \($0.reason)") : $0
                })
        }
    }

    /// Throws unless a program or a queue can have this name.
    func checkName() throws {
        guard (1...64).contains(name.utf8.count) else {
            throw ConfigurationErrors("contains a name that is not 1 to 64 bytes long", line: line)
        }
    }
}
