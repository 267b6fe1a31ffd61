import JobModel

/// What a ``SourceSession`` may do, and how much of it; the defaults are safe.
public struct SourceOptions: Sendable, Equatable {
    /// How to talk to servers.
    public struct HTTP: Sendable, Equatable {
        /// The longest time for resolving, connecting and TLS together; 10 s.
        public var connectTimeout: Duration = .seconds(10)
        /// The longest silence of a server; 60 s.
        public var idleTimeout: Duration = .seconds(60)
        /// The most redirects of one transfer; 10.
        public var redirects = 10
        /// `http://[user:password@]host:port`, or the same with `socks5`; nil, the default, to connect directly.
        public var proxy: String?
        /// Hosts that are not asked through the proxy: names, `*.name`, addresses, and blocks such as `10.0.0.0/8`.
        ///
        /// This machine never is.
        public var noProxy: [String] = []
        /// The path of a PEM file with authorities to trust in addition to the system's; nil by default.
        public var certificates: String?
        /// The `User-Agent` of requests without their own.
        public var userAgent = "DataSources/1.0"

        /// Makes the defaults.
        public init() {}
    }

    /// Limits of what sources receive.
    public struct Limits: Sendable, Equatable {
        /// The most bytes of a body in memory, both as sent and as decoded; 64 MiB. Downloads have no such limit.
        public var body = 64 << 20
        /// The most bytes of a response's header; 64 KiB.
        public var header = 64 << 10
        /// The most bytes of memory for JSON documents that are read at the same time; others wait; 64 MiB.
        public var documents = 64 << 20

        /// Makes the defaults.
        public init() {}
    }

    /// How to write files.
    public struct Downloads: Sendable, Equatable {
        /// The free bytes on a disk below which no download begins; 64 MiB.
        public var minimumFree = 64 << 20
        /// The absolute path of a directory for records of downloads, so that a later process can resume them.
        ///
        /// Nil, the default, keeps the records in memory as long as the session exists.
        public var records: String?

        /// Makes the defaults.
        public init() {}
    }

    /// How to talk to servers.
    public var http = HTTP()
    /// Where sources may connect to: never to link-local addresses and those where clouds keep credentials.
    public var policy = PolicySettings()
    /// Limits of what sources receive.
    public var limits = Limits()
    /// How to write files.
    public var downloads = Downloads()

    /// Makes the defaults.
    public init() {}

    /// The same as settings of the daemon.
    var settings: SourceSettings {
        var settings = SourceSettings()
        settings.policy = policy
        settings.http.connectTimeout = http.connectTimeout.inSeconds
        settings.http.idleTimeout = http.idleTimeout.inSeconds
        settings.http.redirects = max(0, http.redirects)
        settings.http.proxy = http.proxy
        settings.http.noProxy = http.noProxy
        settings.http.certificates = http.certificates
        settings.http.userAgent = http.userAgent
        settings.limits.body = max(0, limits.body)
        // Bodies never go to a file.
        settings.limits.inlineResult = settings.limits.body
        settings.limits.header = max(0, limits.header)
        settings.limits.documents = max(0, limits.documents)
        settings.limits.memoryPerUser = settings.limits.documents
        settings.downloads.minimumFree = max(0, downloads.minimumFree)
        return settings
    }
}

extension Duration {
    var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
