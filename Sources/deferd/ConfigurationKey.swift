import DataSources
import JobCore
import JobModel
import JobServer
import Logging
import YAML

/// A named setting of `Root`: how its value is read, and whether a reload can change it.
struct ConfigurationSetting<Root>: Sendable {
    let name: String
    let apply: @Sendable (inout Root, ConfigurationValue) throws -> Void
    /// Gives `read` the present value if a reload cannot change it; returns whether it was another one.
    let keep: @Sendable (_ present: Root, _ read: inout Root) -> Bool
    /// The value as text, to compare nodes.
    let text: @Sendable (Root) -> String

    /// `merge` combines the present value with the one that was read.
    init<Value: Equatable & Sendable>(
        _ name: String, _ path: any WritableKeyPath<Root, Value> & Sendable, needsRestart: Bool = false,
        merge: @escaping @Sendable (Value, Value) throws -> Value = { $1 },
        _ read: @escaping @Sendable (ConfigurationValue) throws -> Value
    ) {
        self.name = name
        apply = { root, value in root[keyPath: path] = try merge(root[keyPath: path], try read(value)) }
        keep = { present, read in
            guard needsRestart, present[keyPath: path] != read[keyPath: path] else { return false }
            read[keyPath: path] = present[keyPath: path]
            return true
        }
        text = { root in Self.text(of: root[keyPath: path]) }
    }
}

typealias ConfigurationKey = ConfigurationSetting<Configuration>

extension ConfigurationKey {
    /// The largest size or count.
    private static let most = 1 << 40

    static let all: [ConfigurationKey] = [
        .init("socket.path", \.socketPath, needsRestart: true) { try $0.path(atMost: Listener.longestPath) },
        .init("socket.mode", \.socketMode, needsRestart: true) { try $0.octal() },
        .init("socket.group", \.socketGroup, needsRestart: true) { try $0.optionalText() },
        .init("state.directory", \.stateDirectory, needsRestart: true) { try $0.path() },
        .init("state.store", \.store, needsRestart: true) { try $0.storeAddress() },
        .init("node.name", \.nodeName, needsRestart: true) { try $0.nodeName() },
        .init("node.lease", \.lease, needsRestart: true) { try $0.seconds(3...300) },
        .init("node.statementTimeout", \.statementTimeout, needsRestart: true) { try $0.seconds(0.1...600) },
        .init("downloads.directory", \.downloads.directory, needsRestart: true) { try $0.path() },
        .init("downloads.roots", \.downloads.roots, needsRestart: true) { try $0.paths() },
        .init("downloads.minimumFree", \.downloads.minimumFree) { try $0.integer(0...most) },
        .init("queues", \.queues, merge: merged) { try $0.queues() },
        .init("programs", \.programs, merge: { $0.overridden(by: $1) }) { try $0.programs() },
        // In a file, it is a member of programs.
        .init("programs.any", \.programs.allowsAny) { try $0.flag() },
        .init("hooks.finished", \.finishedHook) { try $0.hook() },
        .init("limits.line", \.limits.line) { try $0.integer(64...1 << 30) },
        .init("limits.outbound", \.limits.outbound) { try $0.integer(65536...1 << 31) },
        .init("limits.connections", \.limits.connections) { try $0.integer(1...1_000_000) },
        .init("limits.connectionsPerUser", \.limits.connectionsPerUser) { try $0.integer(1...1_000_000) },
        .init("limits.inFlight", \.limits.inFlight) { try $0.integer(1...1_000_000) },
        .init("limits.queuedJobs", \.limits.queuedJobs) { try $0.integer(1...most) },
        .init("limits.queuedJobsPerUser", \.limits.queuedJobsPerUser) { try $0.integer(1...most) },
        .init("limits.schedulesPerUser", \.limits.schedulesPerUser) { try $0.integer(0...100_000) },
        .init("limits.storedPerUser", \.core.storedPerUser) { try Int64($0.integer(1...most)) },
        .init("limits.inlineResult", \.limits.inlineResult) { try $0.integer(0...JobPage.mostResults) },
        .init("limits.body", \.limits.body) { try $0.integer(1...1 << 32) },
        .init("limits.output", \.limits.output) { try $0.integer(2...1 << 32) },
        .init("limits.documents", \.limits.documents) { try $0.integer(1 << 20...most) },
        .init("limits.memoryPerUser", \.limits.memoryPerUser) { try $0.integer(1 << 20...most) },
        .init("limits.header", \.limits.header) { try $0.integer(1024...1 << 20) },
        .init("limits.children", \.limits.children) { try $0.integer(1...1_000_000) },
        .init("limits.links", \.limits.links) { try $0.integer(0...10_000) },
        .init("limits.depth", \.limits.depth) { try $0.integer(0...32) },
        .init("http.perHost", \.http.perHost) { try $0.integer(1...10_000) },
        .init("http.connectTimeout", \.http.connectTimeout) { try $0.seconds(0.01...3600) },
        .init("http.idleTimeout", \.http.idleTimeout) { try $0.seconds(0.01...86_400) },
        .init("http.lowSpeed.bytes", \.http.lowSpeed.bytes) { try $0.integer(1...1 << 40) },
        .init("http.lowSpeed.seconds", \.http.lowSpeed.seconds) { try $0.seconds(0...86_400) },
        .init("http.retryAfter", \.http.retryAfter) { try $0.seconds(0...31_622_400) },
        .init("http.redirects", \.http.redirects) { try $0.integer(0...100) },
        .init("http.retry.max", \.http.retry.max) { try $0.integer(0...1000) },
        .init("http.retry.initial", \.http.retry.initial) { try $0.seconds(0...86_400) },
        .init("http.retry.factor", \.http.retry.factor) { try $0.number(1...1000) },
        .init("http.retry.maxDelay", \.http.retry.maxDelay) { try $0.seconds(0...86_400) },
        .init("http.retry.jitter", \.http.retry.jitter) { try $0.flag() },
        .init("http.proxy", \.http.proxy) { try $0.optionalText() },
        .init("http.noProxy", \.http.noProxy) { try $0.strings() },
        .init("http.certificates", \.http.certificates) { try $0.authorities() },
        .init("http.clientCertificates", \.http.clientCertificates) { try $0.clientCertificates() },
        .init("http.credentials", \.credentials) { try $0.credentials() },
        .init("http.userAgent", \.http.userAgent) { try $0.optionalText() ?? Configuration.userAgent },
        .init("policy.schemes", \.policy.schemes) { try $0.strings() },
        .init("policy.allowHosts", \.policy.allowHosts) { try $0.strings() },
        .init("policy.denyHosts", \.policy.denyHosts) { try $0.strings() },
        .init("policy.denyAddresses", \.policy.denyAddresses) { try $0.strings() },
        .init("policy.allowAddresses", \.policy.allowAddresses) { try $0.strings() },
        .init("retention.age", \.core.retentionAge) { try $0.seconds(0...3_153_600_000) },
        .init("retention.count", \.core.retentionCount) { try $0.integer(0...most) },
        .init("retention.bytes", \.core.retentionBytes) { try Int64($0.integer(0...most)) },
        .init("access.adminGroup", \.adminGroup) { try $0.optionalText() },
        .init("log.level", \.logLevel) { try $0.logLevel() },
    ]

    static func named(_ name: String) -> ConfigurationKey? { all.first { $0.name == name } }

    /// The variables that set it: `DEFERD_LIMITS_CONNECTIONSPERUSER` and `DEFERD_LIMITS_CONNECTIONS_PER_USER`.
    var variables: [String] {
        let spaced = name.reduce(into: "") { text, character in
            if character.isUppercase { text.append("_") }
            text.append(character == "." ? "_" : character)
        }
        return [name.replacing(".", with: "_"), spaced].map { "DEFERD_" + $0.uppercased() }
    }

    /// The queues with those that `later` adds or changes.
    @Sendable private static func merged(
        _ queues: [String: QueueSettings], _ later: [String: QueueSettings]
    ) throws -> [String: QueueSettings] {
        let merged = queues.merging(later) { $1 }
        guard merged.count <= QueueSettings.most else {
            let others = queues.keys.contains { later[$0] == nil } ? ", with those that exist anyway" : ""
            throw ConfigurationErrors(
                "makes \(merged.count) queues\(others), but there can be \(QueueSettings.most); remove some")
        }
        return merged
    }
}

extension ConfigurationValue {
    private static let queueSettings: [ConfigurationSetting<QueueSettings>] = [
        .init("concurrency", \.concurrency) { try $0.integer(1...100_000) },
        .init("perUser", \.perUser) { try $0.integer(1...100_000) },
        .init("startRate", \.startRate) { try $0.startRate() },
        .init("byteRate", \.byteRate) { try $0.integer(1...1 << 50) },
    ]

    private static let rateSettings: [ConfigurationSetting<StartRate>] = [
        .init("count", \.count) { try $0.integer(1...StartRate.most) },
        .init("seconds", \.seconds) { try $0.seconds(0.001...86_400) },
    ]

    private func startRate() throws -> StartRate {
        guard members != nil else { throw ConfigurationErrors("must be a map such as {count: 10, seconds: 1}") }
        var rate = StartRate(count: 1, seconds: 1)
        try read(into: &rate, Self.rateSettings)
        return rate
    }

    /// Queues by name, each with its concurrency or a map; in a variable, `name=concurrency` separated by commas.
    fileprivate func queues() throws -> [String: QueueSettings] {
        var queues: [String: QueueSettings] = [:]
        try forEach("must be names with numbers, such as \"default: 16\"") { member in
            try member.checkName()
            var queue = QueueSettings(name: member.name, concurrency: 16)
            try member.value.read(into: &queue, Self.queueSettings)
            queues[member.name] = queue
        }
        return queues
    }

    /// A node's name; the host's if it is empty.
    fileprivate func nodeName() throws -> String {
        guard let name = try optionalText() else { return Configuration.hostName }
        guard NodeDescription.isName(name) else { throw ConfigurationErrors("must be \(NodeDescription.nameForm)") }
        return name
    }

    fileprivate func logLevel() throws -> Logger.Level {
        guard let level = Logger.Level(rawValue: try text()) else {
            throw ConfigurationErrors("must be one of \(Logger.Level.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return level
    }
}
