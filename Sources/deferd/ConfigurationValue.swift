import JobModel

/// A value of the configuration as it was written, in a file, a variable or a flag.
enum ConfigurationValue {
    case scalar(String)
    case list([String])
    case map([Member])

    /// One pair of a map, and its line.
    struct Member {
        let name: String
        let value: ConfigurationValue
        var line: Int?

        /// Its value as `read` makes it; says in which line of what it does not fit.
        func read<Value>(
            of owner: String? = nil, _ read: (ConfigurationValue) -> () throws(Misfit) -> Value
        ) throws(Misfit) -> Value {
            do throws(Misfit) { return try read(value)() } catch {
                throw error.line == nil ? misfit(error.reason, of: owner) : error
            }
        }

        func misfit(_ reason: String, of owner: String? = nil) -> Misfit {
            Misfit(reason: "\(owner.map { "\($0)." } ?? "")\(name): \(reason)", line: line)
        }
    }

    /// Why a value does not fit its key, as a clause.
    struct Misfit: Error, Hashable {
        let reason: String
        /// The line, where it is another than the key's.
        var line: Int?
    }

    func text() throws(Misfit) -> String {
        guard case .scalar(let text) = self else { throw Misfit(reason: "must be a single value") }
        guard !text.isEmpty else { throw Misfit(reason: "must not be empty") }
        return text
    }

    /// A text, or nil where it is empty.
    func optionalText() throws(Misfit) -> String? {
        if case .scalar("") = self { return nil }
        return try text()
    }

    func integer(_ range: ClosedRange<Int>) throws(Misfit) -> Int {
        guard let value = Int(try text()), range.contains(value) else {
            throw Misfit(reason: "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    func seconds(_ range: ClosedRange<Double>) throws(Misfit) -> Double {
        guard let value = Double(try text()), range.contains(value) else {
            throw Misfit(reason: "must be a number of seconds from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    func flag() throws(Misfit) -> Bool {
        guard let value = Bool(try text()) else { throw Misfit(reason: "must be true or false") }
        return value
    }

    func octal() throws(Misfit) -> UInt32 {
        let digits = try text()
        guard (3...4).contains(digits.utf8.count), let mode = UInt32(digits, radix: 8) else {
            throw Misfit(reason: "must be a mode in octal digits, such as \"0660\"")
        }
        return mode
    }

    func path() throws(Misfit) -> String {
        let path = try text()
        guard path.hasPrefix("/") else { throw Misfit(reason: "must be an absolute path") }
        return path
    }

    /// A list; in a variable its elements are separated by commas.
    func strings() throws(Misfit) -> [String] {
        switch self {
        case .list(let elements): return elements
        case .scalar(let text): return text.split(separator: ",").map { $0.trimmed }
        case .map: throw Misfit(reason: "must be a list")
        }
    }

    func paths() throws(Misfit) -> [String] {
        let paths = try strings()
        if let path = paths.first(where: { !$0.hasPrefix("/") }) {
            throw Misfit(reason: "holds \"\(path)\", which is no absolute path")
        }
        return paths
    }

    /// The pairs of a map; in a variable `name=value` separated by commas.
    func pairs(_ reason: String) throws(Misfit) -> [Member] {
        switch self {
        case .map(let members): return members
        case .list: throw Misfit(reason: reason)
        case .scalar(let text):
            var pairs: [Member] = []
            for part in text.split(separator: ",") {
                let halves = part.split(separator: "=", maxSplits: 1)
                guard halves.count == 2 else { throw Misfit(reason: "must be name=value, separated by commas") }
                pairs.append(Member(name: halves[0].trimmed, value: .scalar(halves[1].trimmed)))
            }
            return pairs
        }
    }

    /// The pairs of a map; nil for anything else.
    var members: [Member]? { if case .map(let members) = self { members } else { nil } }

    /// Queues by name, each with its concurrency or with a map of `concurrency` and `perUser`; in a variable
    /// `name=concurrency` separated by commas.
    func queues() throws(Misfit) -> [String: QueueSettings] {
        let slots = { (value: ConfigurationValue) in { () throws(Misfit) in try value.integer(1...100_000) } }
        var queues: [String: QueueSettings] = [:]
        for pair in try pairs("must be names with numbers, such as \"default: 16\"") {
            guard (1...64).contains(pair.name.utf8.count) else {
                throw Misfit(reason: "holds a name that is not 1 to 64 bytes long", line: pair.line)
            }
            var queue = QueueSettings(name: pair.name, concurrency: 16)
            if pair.value.members == nil { queue.concurrency = try pair.read(slots) }
            for member in pair.value.members ?? [] {
                switch member.name {
                case "concurrency": queue.concurrency = try member.read(of: pair.name, slots)
                case "perUser": queue.perUser = try member.read(of: pair.name, slots)
                default: throw member.misfit("is not known; known are concurrency and perUser", of: pair.name)
                }
            }
            queues[pair.name] = queue
        }
        return queues
    }
}

extension Substring {
    fileprivate var trimmed: String {
        String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
    }
}
