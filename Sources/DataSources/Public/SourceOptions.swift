import JobModel

/// What a ``SourceSession`` may do, and how much of it. The defaults are safe ones.
public struct SourceOptions: Sendable, Equatable {
    /// How servers are talked to.
    public struct HTTP: Sendable, Equatable {
        /// For name, connection and TLS together; 10 s.
        public var connectTimeout: Duration = .seconds(10)
        /// How long a server may send nothing; 60 s.
        public var idleTimeout: Duration = .seconds(60)
        /// Redirects that one transfer follows; 10.
        public var redirects = 10
        /// `http://[user:password@]host:port` or `socks5://host:port`; nil, the default, to connect directly.
        public var proxy: String?
        /// The path of a PEM file with authorities that are trusted beside the system's; nil, the default, for none.
        public var certificates: String?
        /// What a request says it comes from, unless its own headers say so.
        public var userAgent = "DataSources/1.0"

        /// The defaults.
        public init() {}
    }

    /// What comes in is bounded by these.
    public struct Limits: Sendable, Equatable {
        /// Bytes of a body that is kept in memory, as sent and as decoded; 64 MiB. Downloads have no such limit.
        public var body = 64 << 20
        /// Bytes of a response's header; 64 KiB.
        public var header = 64 << 10
        /// Bytes that JSON documents which are read at the same time take together; others wait; 64 MiB.
        public var documents = 64 << 20

        /// The defaults.
        public init() {}
    }

    /// How files are written.
    public struct Downloads: Sendable, Equatable {
        /// Bytes on a disk below which no download begins; 64 MiB.
        public var minimumFree = 64 << 20
        /// The absolute path of a directory where what is known of downloads is kept, so that a later process can go on
        /// with an unfinished one; nil, the default, to know of them only as long as the session is there.
        public var records: String?

        /// The defaults.
        public init() {}
    }

    /// How servers are talked to.
    public var http = HTTP()
    /// Where sources may connect to; always without link-local addresses and those where clouds keep credentials.
    public var policy = PolicySettings()
    /// What comes in is bounded by these.
    public var limits = Limits()
    /// How files are written.
    public var downloads = Downloads()

    /// The defaults.
    public init() {}

    /// The same as the settings that the daemon uses.
    var settings: SourceSettings {
        var settings = SourceSettings(policy: policy)
        settings.http.connectTimeout = http.connectTimeout.inSeconds
        settings.http.idleTimeout = http.idleTimeout.inSeconds
        settings.http.redirects = max(0, http.redirects)
        settings.http.proxy = http.proxy
        settings.http.certificates = http.certificates
        settings.http.userAgent = http.userAgent
        settings.limits.body = max(0, limits.body)
        // No body goes to a file: whoever asks for it gets it whole.
        settings.limits.inlineResult = settings.limits.body
        settings.limits.header = max(0, limits.header)
        settings.limits.documents = max(0, limits.documents)
        settings.limits.memoryPerUser = settings.limits.documents
        settings.downloads.minimumFree = max(0, downloads.minimumFree)
        return settings
    }
}

extension Duration {
    /// So many seconds, with what a `Double` keeps of the fraction.
    var inSeconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
