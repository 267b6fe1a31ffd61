import JobModel
import YAML

/// A value of the configuration as it was written in a file, or a text of a variable or a flag.
typealias ConfigurationValue = YAMLNode

extension ConfigurationValue {
    init(_ text: String) { self.init(.scalar(text, isText: true)) }

    /// The entries of a map, in order; nil for any other value.
    var members: [Entry]? {
        guard case .map(let entries) = content else { return nil }
        return entries
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

    func path(atMost most: Int = .max) throws -> String {
        let path = try text()
        guard path.hasPrefix("/") else { throw ConfigurationErrors("must be an absolute path") }
        let count = path.utf8.count
        guard count <= most else {
            throw ConfigurationErrors("must have at most \(most) bytes, and \(path) has \(count)")
        }
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
    func forEach(_ hint: String, _ body: (Entry) throws -> Void) throws {
        let pairs = try single?.split(separator: ",").map { part in
            let halves = part.split(separator: "=", maxSplits: 1).map(\.trimmed)
            guard halves.count == 2 else { throw ConfigurationErrors("must be name=value, separated by commas") }
            return Entry(name: halves[0], value: ConfigurationValue(halves[1]))
        }
        guard let members = members ?? pairs else { throw ConfigurationErrors(hint) }
        var errors: [ConfigurationError] = []
        for member in members {
            do { try member.located { try body(member) } } catch let error as ConfigurationErrors {
                errors += error.errors
            }
        }
        if !errors.isEmpty { throw ConfigurationErrors(errors: errors) }
    }

    /// Reads the settings of a map into `root`; any other value is that of the first setting.
    func read<Root>(into root: inout Root, _ settings: [ConfigurationSetting<Root>]) throws {
        guard let members else { return try settings[0].apply(&root, self) }
        for member in members {
            try member.located {
                guard let setting = settings.first(where: { $0.name == member.name }) else {
                    let known = settings.map(\.name).joined(separator: ", ")
                    throw ConfigurationErrors("there is no such key; known are \(known)")
                }
                try setting.apply(&root, member.value)
            }
        }
    }
}

extension ConfigurationValue.Entry {
    var line: Int? { place?.line }

    /// Runs `body`, and adds the name and the line of this entry to its errors.
    func located(_ body: () throws -> Void) throws {
        do { try body() } catch let error as ConfigurationErrors { throw error.located(line: line, of: name) }
    }

    /// Throws unless a program or a queue can have this name.
    func checkName() throws {
        guard (1...64).contains(name.utf8.count) else { throw ConfigurationErrors("a name must have 1 to 64 bytes") }
    }
}
