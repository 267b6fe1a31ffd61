/// How HTTP servers are talked to: the configuration's `http`.
package struct HTTPSettings: Sendable, Equatable {
    /// Transfers at a time from one host; the scheduler of the core sees to it.
    package var perHost = 6
    /// Seconds for name, connection and TLS together.
    package var connectTimeout = 10.0
    /// Seconds without a byte after which a transfer is given up.
    package var idleTimeout = 60.0
    /// A transfer that moves fewer bytes than these in so many seconds is given up; 0 seconds for no such limit.
    package var lowSpeed = LowSpeed()
    /// The most seconds for which no request goes to a host because of its `Retry-After`.
    package var retryAfter = 3600.0
    /// Redirects followed in one transfer.
    package var redirects = 10
    /// `http://[user:password@]host:port` or `socks5://host:port`, or nil to connect directly.
    package var proxy: String?
    /// The path of a PEM file with authorities that are trusted beside the system's, or nil.
    package var certificates: String?
    /// What requests to some hosts carry that the jobs do not know.
    package var credentials: [HostCredential] = []
    /// What a request says it comes from, unless its own headers say so.
    package var userAgent = "deferd/1.0"

    package init() {}

    package struct LowSpeed: Sendable, Equatable {
        package var bytes = 1
        package var seconds = 0.0

        package init() {}
    }
}
