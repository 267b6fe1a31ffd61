import DataSources
import JobModel
import JobServer
import Logging

/// A key of the configuration: its name, what its value changes, and whether a reload takes it over.
struct ConfigurationKey: Sendable {
    typealias Apply = @Sendable (inout Configuration, ConfigurationValue) throws(ConfigurationValue.Misfit) -> Void

    let name: String
    let apply: Apply
    /// Gives the second configuration the value of the first where a reload cannot change it; true where it was another one.
    let keep: @Sendable (_ present: Configuration, _ read: inout Configuration) -> Bool

    /// `merge` says what becomes of the value that is there and the one that was read.
    private init<Value: Equatable & Sendable>(
        _ name: String, _ path: any WritableKeyPath<Configuration, Value> & Sendable, needsRestart: Bool = false,
        merge: @escaping @Sendable (Value, Value) throws(ConfigurationValue.Misfit) -> Value = { $1 },
        _ read: @escaping @Sendable (ConfigurationValue) -> () throws(ConfigurationValue.Misfit) -> Value
    ) {
        self.name = name
        apply = { (configuration, value) throws(ConfigurationValue.Misfit) in
            configuration[keyPath: path] = try merge(configuration[keyPath: path], try read(value)())
        }
        keep = { present, read in
            guard needsRestart, present[keyPath: path] != read[keyPath: path] else { return false }
            read[keyPath: path] = present[keyPath: path]
            return true
        }
    }

    private static func count(
        _ name: String, _ path: any WritableKeyPath<Configuration, Int> & Sendable, _ range: ClosedRange<Int>
    ) -> ConfigurationKey {
        ConfigurationKey(name, path) { value in { () throws(ConfigurationValue.Misfit) in try value.integer(range) } }
    }

    private static func seconds(
        _ name: String, _ path: any WritableKeyPath<Configuration, Double> & Sendable, _ range: ClosedRange<Double>
    ) -> ConfigurationKey {
        ConfigurationKey(name, path) { value in { () throws(ConfigurationValue.Misfit) in try value.seconds(range) } }
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
        ConfigurationKey("socket.path", \.socketPath, needsRestart: true, ConfigurationValue.path),
        ConfigurationKey("socket.mode", \.socketMode, needsRestart: true, ConfigurationValue.octal),
        ConfigurationKey("socket.group", \.socketGroup, needsRestart: true, ConfigurationValue.optionalText),
        ConfigurationKey("state.directory", \.stateDirectory, needsRestart: true, ConfigurationValue.path),
        ConfigurationKey("downloads.directory", \.downloads.directory, needsRestart: true, ConfigurationValue.path),
        ConfigurationKey("downloads.roots", \.downloads.roots, needsRestart: true, ConfigurationValue.paths),
        count("downloads.minimumFree", \.downloads.minimumFree, 0...most),
        ConfigurationKey("queues", \.queues, merge: merged, ConfigurationValue.queues),
        ConfigurationKey("programs", \.programs, merge: { $0.overridden(by: $1) }, ConfigurationValue.programs),
        // In a file it stands among the programs.
        ConfigurationKey("programs.any", \.programs.allowsAny, ConfigurationValue.flag),
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
        ConfigurationKey("http.proxy", \.http.proxy, ConfigurationValue.optionalText),
        ConfigurationKey("http.credentials", \.credentials, ConfigurationValue.credentials),
        ConfigurationKey("http.userAgent", \.http.userAgent, ConfigurationValue.text),
        ConfigurationKey("policy.schemes", \.policy.schemes, ConfigurationValue.strings),
        ConfigurationKey("policy.allowHosts", \.policy.allowHosts, ConfigurationValue.strings),
        ConfigurationKey("policy.denyHosts", \.policy.denyHosts, ConfigurationValue.strings),
        ConfigurationKey("policy.denyAddresses", \.policy.denyAddresses, ConfigurationValue.strings),
        ConfigurationKey("policy.allowAddresses", \.policy.allowAddresses, ConfigurationValue.strings),
        seconds("retention.age", \.retentionAge, 0...3_153_600_000),
        count("retention.count", \.retentionCount, 0...most),
        count("retention.bytes", \.retentionBytes, 0...most),
        ConfigurationKey("access.adminGroup", \.adminGroup, ConfigurationValue.adminGroup),
        ConfigurationKey("log.level", \.logLevel, ConfigurationValue.logLevel),
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

extension ConfigurationValue {
    fileprivate func adminGroup() throws(Misfit) -> AdminGroup? {
        guard let name = try optionalText() else { return nil }
        do throws(ListenerError) {
            return AdminGroup(name: name, id: try Listener.group(name))
        } catch {
            throw Misfit(reason: error.message)
        }
    }

    fileprivate func logLevel() throws(Misfit) -> Logger.Level {
        guard let level = Logger.Level(rawValue: try text()) else {
            let known = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
            throw Misfit(reason: "must be one of \(known)")
        }
        return level
    }
}
