import DataSources
import JobModel
import JobServer
import Logging

/// A key of the configuration: its name, what its value changes, and whether a reload takes it over.
struct ConfigurationKey: Sendable {
    typealias Apply = @Sendable (inout Configuration, ConfigurationValue) throws(ConfigurationValue.Misfit) -> Void

    /// What a daemon that runs makes of a new value.
    enum Change: Sendable {
        /// A reload takes it over.
        case reload
        /// It is told that a restart is needed, and keeps the old one.
        case restart
    }

    let name: String
    let change: Change
    let apply: Apply
    private let isSame: @Sendable (Configuration, Configuration) -> Bool
    private let copy: @Sendable (_ from: Configuration, _ to: inout Configuration) -> Void

    /// `merge` says what becomes of the value that is there and the one that was read.
    private init<Value: Equatable & Sendable>(
        _ name: String, _ path: any WritableKeyPath<Configuration, Value> & Sendable, _ change: Change = .reload,
        merge: @escaping @Sendable (Value, Value) throws(ConfigurationValue.Misfit) -> Value = { $1 },
        _ read: @escaping @Sendable (ConfigurationValue) throws(ConfigurationValue.Misfit) -> Value
    ) {
        self.name = name
        self.change = change
        apply = { (configuration, value) throws(ConfigurationValue.Misfit) in
            configuration[keyPath: path] = try merge(configuration[keyPath: path], try read(value))
        }
        isSame = { $0[keyPath: path] == $1[keyPath: path] }
        copy = { $1[keyPath: path] = $0[keyPath: path] }
    }

    /// Gives `configuration` the value of `present` where a reload cannot change it; true where it said another one.
    func keep(_ present: Configuration, in configuration: inout Configuration) -> Bool {
        guard change == .restart, !isSame(present, configuration) else { return false }
        copy(present, &configuration)
        return true
    }

    private static func count(
        _ name: String, _ path: any WritableKeyPath<Configuration, Int> & Sendable, _ range: ClosedRange<Int>
    ) -> ConfigurationKey {
        ConfigurationKey(name, path) { (value) throws(ConfigurationValue.Misfit) in try value.integer(range) }
    }

    private static func seconds(
        _ name: String, _ path: any WritableKeyPath<Configuration, Double> & Sendable, _ range: ClosedRange<Double>
    ) -> ConfigurationKey {
        ConfigurationKey(name, path) { (value) throws(ConfigurationValue.Misfit) in try value.seconds(range) }
    }

    private static func strings(
        _ name: String, _ path: any WritableKeyPath<Configuration, [String]> & Sendable
    ) -> ConfigurationKey {
        ConfigurationKey(name, path) { (value) throws(ConfigurationValue.Misfit) in try value.strings() }
    }

    private static func text(
        _ name: String, _ path: any WritableKeyPath<Configuration, String?> & Sendable, _ change: Change = .reload
    ) -> ConfigurationKey {
        ConfigurationKey(name, path, change) { (value) throws(ConfigurationValue.Misfit) in try value.optionalText() }
    }

    private static func path(
        _ name: String, _ path: any WritableKeyPath<Configuration, String> & Sendable
    ) -> ConfigurationKey {
        ConfigurationKey(name, path, .restart) { (value) throws(ConfigurationValue.Misfit) in try value.path() }
    }

    /// The largest size or count that a limit takes.
    private static let most = 1 << 40

    /// The queues with those that `later` adds or changes. A reload opens all of them while calls wait.
    private static func merged(
        _ queues: [String: QueueSettings], _ later: [String: QueueSettings]
    ) throws(ConfigurationValue.Misfit) -> [String: QueueSettings] {
        let merged = queues.merging(later) { $1 }
        guard merged.count <= QueueSettings.most else {
            let others = queues.keys.contains { later[$0] == nil } ? ", with those that are there without it" : ""
            throw ConfigurationValue.Misfit(
                reason: "makes \(merged.count) queues\(others), and there can be \(QueueSettings.most); take some out")
        }
        return merged
    }

    static let all: [ConfigurationKey] = [
        path("socket.path", \.socketPath),
        ConfigurationKey("socket.mode", \.socketMode, .restart) { (value) throws(ConfigurationValue.Misfit) in
            try value.octal()
        },
        text("socket.group", \.socketGroup, .restart),
        path("state.directory", \.stateDirectory),
        path("downloads.directory", \.downloads.directory),
        ConfigurationKey("downloads.roots", \.downloads.roots, .restart) { (value) throws(ConfigurationValue.Misfit) in
            try value.paths()
        },
        count("downloads.minimumFree", \.downloads.minimumFree, 0...most),
        ConfigurationKey("queues", \.queues, merge: merged) { (value) throws(ConfigurationValue.Misfit) in
            try value.queues()
        },
        ConfigurationKey("programs", \.programs, merge: { $0.overridden(by: $1) }) {
            (value) throws(ConfigurationValue.Misfit) in try value.programs()
        },
        // In a file it stands among the programs.
        ConfigurationKey("programs.any", \.programs.allowsAny) { (value) throws(ConfigurationValue.Misfit) in
            try value.flag()
        },
        count("limits.line", \.limits.line, 64...1 << 30),
        count("limits.outbound", \.limits.outbound, 1024...1 << 32),
        count("limits.connections", \.limits.connections, 1...1_000_000),
        count("limits.connectionsPerUser", \.limits.connectionsPerUser, 1...1_000_000),
        count("limits.inFlight", \.limits.inFlight, 1...1_000_000),
        count("limits.queuedJobs", \.limits.queuedJobs, 1...most),
        count("limits.queuedJobsPerUser", \.limits.queuedJobsPerUser, 1...most),
        count("limits.schedulesPerUser", \.limits.schedulesPerUser, 0...100_000),
        count("limits.storedPerUser", \.storedPerUser, 1...most),
        count("limits.inlineResult", \.limits.inlineResult, 0...JobPage.mostResults),
        count("limits.body", \.limits.body, 1...1 << 32),
        count("limits.documents", \.limits.documents, 1 << 20...most),
        count("limits.memoryPerUser", \.limits.memoryPerUser, 1 << 20...most),
        count("limits.header", \.limits.header, 1024...1 << 20),
        count("limits.children", \.limits.children, 1...1_000_000),
        count("limits.links", \.limits.links, 0...10_000),
        count("limits.depth", \.limits.depth, 0...32),
        count("http.perHost", \.http.perHost, 1...10_000),
        seconds("http.connectTimeout", \.http.connectTimeout, 0.01...3600),
        seconds("http.idleTimeout", \.http.idleTimeout, 0.01...86_400),
        count("http.lowSpeed.bytes", \.http.lowSpeed.bytes, 1...1 << 40),
        seconds("http.lowSpeed.seconds", \.http.lowSpeed.seconds, 0...86_400),
        seconds("http.retryAfter", \.http.retryAfter, 0...31_622_400),
        count("http.redirects", \.http.redirects, 0...100),
        text("http.proxy", \.http.proxy),
        ConfigurationKey("http.credentials", \.credentials) { (value) throws(ConfigurationValue.Misfit) in
            try value.credentials()
        },
        ConfigurationKey("http.userAgent", \.http.userAgent) { (value) throws(ConfigurationValue.Misfit) in
            try value.text()
        },
        strings("policy.schemes", \.policy.schemes),
        strings("policy.allowHosts", \.policy.allowHosts),
        strings("policy.denyHosts", \.policy.denyHosts),
        strings("policy.denyAddresses", \.policy.denyAddresses),
        strings("policy.allowAddresses", \.policy.allowAddresses),
        seconds("retention.age", \.retentionAge, 0...3_153_600_000),
        count("retention.count", \.retentionCount, 0...most),
        count("retention.bytes", \.retentionBytes, 0...most),
        ConfigurationKey("access.adminGroup", \.adminGroup) { (value) throws(ConfigurationValue.Misfit) in
            guard let name = try value.optionalText() else { return nil }
            do throws(ListenerError) {
                return AdminGroup(name: name, id: try Listener.group(name))
            } catch {
                throw ConfigurationValue.Misfit(reason: error.message)
            }
        },
        ConfigurationKey("log.level", \.logLevel) { (value) throws(ConfigurationValue.Misfit) in
            let text = try value.text()
            guard let level = Logger.Level(rawValue: text) else {
                let known = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
                throw ConfigurationValue.Misfit(reason: "must be one of \(known)")
            }
            return level
        },
    ]

    static func named(_ name: String) -> ConfigurationKey? { all.first { $0.name == name } }

    /// The names of the variables that set it: `DEFERD_LIMITS_CONNECTIONSPERUSER`, and for reading
    /// `DEFERD_LIMITS_CONNECTIONS_PER_USER`.
    var variables: [String] {
        let spaced = name.reduce(into: "") { text, character in
            if character.isUppercase { text.append("_") }
            text.append(character == "." ? "_" : character)
        }
        let plain = name.replacing(".", with: "_")
        return [plain, spaced].map { "DEFERD_" + $0.uppercased() }
    }
}
