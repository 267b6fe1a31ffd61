import JobModel
import YAML

/// A value of the configuration as it was written in a file, or a text of a variable or a flag.
typealias ConfigurationValue = YAMLNode

extension ConfigurationValue {
    /// An entry of a map, with its line.
    struct Member {
        let name: String
        let value: ConfigurationValue
        var line: Int?
    }

    init(_ text: String) { self.init(.scalar(text, isText: true)) }

    /// The entries of a map, in order; nil for any other value.
    var members: [Member]? {
        guard case .map(let entries) = content else { return nil }
        return entries.map { Member(name: $0.name, value: $0.value, line: $0.place.line) }
    }

    /// A single value, empty for null; nil for a list or a map.
    var single: String? {
        guard case .scalar(let text, _) = content else { return nil }
        return ["null", "~"].contains(text) ? "" : text
    }

    func text() throws -> String {
        guard let text = single else { throw ConfigurationErrors("must be a single value") }
        guard !text.isEmpty else { throw ConfigurationErrors("must not be empty") }
        return text
    }

    /// A text, or nil if it is empty.
    func optionalText() throws -> String? { try single == "" ? nil : text() }

    func integer(_ range: ClosedRange<Int>) throws -> Int {
        guard let value = Int(try text()), range.contains(value) else {
            throw ConfigurationErrors("must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    func seconds(_ range: ClosedRange<Double>) throws -> Double { try number(range, "number of seconds") }

    func number(_ range: ClosedRange<Double>, _ kind: String = "number") throws -> Double {
        guard let value = Double(try text()), range.contains(value) else {
            throw ConfigurationErrors("must be a \(kind) from \(range.lowerBound) to \(range.upperBound)")
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
        if let single { return single.split(separator: ",").map(\.trimmed) }
        guard case .list(let values) = content else { throw ConfigurationErrors("must be a list") }
        return try values.map { value in
            guard case .scalar(let text, _) = value.content else {
                throw ConfigurationErrors("must be a list of single values", line: place?.line)
            }
            return text
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
        let pairs = try single?.split(separator: ",").map { part in
            let halves = part.split(separator: "=", maxSplits: 1).map(\.trimmed)
            guard halves.count == 2 else { throw ConfigurationErrors("must be name=value, separated by commas") }
            return Member(name: halves[0], value: ConfigurationValue(halves[1]))
        }
        guard let members = members ?? pairs else { throw ConfigurationErrors(hint) }
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
        guard let members = value.members else {
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
