import DataSources
import JobModel
import Logging

/// A key of the configuration: its name, and what its value changes.
struct ConfigurationKey: Sendable {
    typealias Apply = @Sendable (inout Configuration, ConfigurationValue) throws(ConfigurationValue.Misfit) -> Void

    let name: String
    let apply: Apply

    private init(_ name: String, _ apply: @escaping Apply) {
        self.name = name
        self.apply = apply
    }

    private static func count(
        _ name: String, _ path: any WritableKeyPath<Configuration, Int> & Sendable, _ range: ClosedRange<Int>
    ) -> ConfigurationKey {
        ConfigurationKey(name) { (configuration, value) throws(ConfigurationValue.Misfit) in
            configuration[keyPath: path] = try value.integer(range)
        }
    }

    private static func seconds(
        _ name: String, _ path: any WritableKeyPath<Configuration, Double> & Sendable, _ range: ClosedRange<Double>
    ) -> ConfigurationKey {
        ConfigurationKey(name) { (configuration, value) throws(ConfigurationValue.Misfit) in
            configuration[keyPath: path] = try value.seconds(range)
        }
    }

    private static func strings(
        _ name: String, _ path: any WritableKeyPath<Configuration, [String]> & Sendable
    ) -> ConfigurationKey {
        ConfigurationKey(name) { (configuration, value) throws(ConfigurationValue.Misfit) in
            configuration[keyPath: path] = try value.strings()
        }
    }

    private static func text(
        _ name: String, _ path: any WritableKeyPath<Configuration, String?> & Sendable
    ) -> ConfigurationKey {
        ConfigurationKey(name) { (configuration, value) throws(ConfigurationValue.Misfit) in
            configuration[keyPath: path] = try value.optionalText()
        }
    }

    private static func path(
        _ name: String, _ path: any WritableKeyPath<Configuration, String> & Sendable
    ) -> ConfigurationKey {
        ConfigurationKey(name) { (configuration, value) throws(ConfigurationValue.Misfit) in
            configuration[keyPath: path] = try value.path()
        }
    }

    /// The largest size or count that a limit takes.
    private static let most = 1 << 40

    static let all: [ConfigurationKey] = [
        path("socket.path", \.socketPath),
        ConfigurationKey("socket.mode") { (configuration, value) throws(ConfigurationValue.Misfit) in
            configuration.socketMode = try value.octal()
        },
        text("socket.group", \.socketGroup),
        path("state.directory", \.stateDirectory),
        path("downloads.directory", \.downloads.directory),
        ConfigurationKey("downloads.roots") { (configuration, value) throws(ConfigurationValue.Misfit) in
            configuration.downloads.roots = try value.paths()
        },
        count("downloads.minimumFree", \.downloads.minimumFree, 0...most),
        ConfigurationKey("queues") { (configuration, value) throws(ConfigurationValue.Misfit) in
            configuration.queues.merge(try value.queues()) { $1 }
        },
        count("limits.line", \.limits.line, 64...1 << 30),
        count("limits.outbound", \.limits.outbound, 1024...1 << 32),
        count("limits.connections", \.limits.connections, 1...1_000_000),
        count("limits.connectionsPerUser", \.limits.connectionsPerUser, 1...1_000_000),
        count("limits.inFlight", \.limits.inFlight, 1...1_000_000),
        count("limits.queuedJobs", \.limits.queuedJobs, 1...most),
        count("limits.queuedJobsPerUser", \.limits.queuedJobsPerUser, 1...most),
        count("limits.storedPerUser", \.storedPerUser, 1...most),
        count("limits.inlineResult", \.limits.inlineResult, 0...Job.longestResultRead),
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
        ConfigurationKey("http.userAgent") { (configuration, value) throws(ConfigurationValue.Misfit) in
            configuration.http.userAgent = try value.text()
        },
        strings("policy.schemes", \.policy.schemes),
        strings("policy.allowHosts", \.policy.allowHosts),
        strings("policy.denyHosts", \.policy.denyHosts),
        strings("policy.denyAddresses", \.policy.denyAddresses),
        strings("policy.allowAddresses", \.policy.allowAddresses),
        seconds("retention.age", \.retentionAge, 0...3_153_600_000),
        count("retention.count", \.retentionCount, 0...most),
        count("retention.bytes", \.retentionBytes, 0...most),
        text("access.adminGroup", \.adminGroup),
        ConfigurationKey("log.level") { (configuration, value) throws(ConfigurationValue.Misfit) in
            let text = try value.text()
            guard let level = Logger.Level(rawValue: text) else {
                let known = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
                throw ConfigurationValue.Misfit(reason: "must be one of \(known)")
            }
            configuration.logLevel = level
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
