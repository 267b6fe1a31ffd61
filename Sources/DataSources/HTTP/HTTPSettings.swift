package import JobModel

/// How to talk to HTTP servers: the configuration's `http`.
package struct HTTPSettings: Sendable, Equatable {
    /// The most transfers from one host at a time, which the core's scheduler enforces.
    package var perHost = 6
    /// Seconds for name, connection and TLS together.
    package var connectTimeout = 10.0
    /// Seconds without a byte after which a transfer fails.
    package var idleTimeout = 60.0
    /// A transfer that moves fewer bytes in so many seconds fails; 0 seconds turn this off.
    package var lowSpeed = LowSpeed()
    /// The most seconds for which a `Retry-After` keeps requests from a host.
    package var retryAfter = 3600.0
    package var redirects = 10
    /// The retries of idempotent requests, which the core schedules.
    package var retry = RetryPolicy.standard
    /// `http://[user:password@]host:port` or the same with `socks5`; nil to connect directly.
    package var proxy: String?
    /// Hosts that are not asked through the proxy: names, `*.name`, addresses, and blocks such as `10.0.0.0/8`.
    package var noProxy: [String] = []
    /// The path of a PEM file with authorities to trust in addition to the system's.
    package var certificates: String?
    /// Certificates to show to some hosts, whose keys jobs do not know; the first that applies counts.
    package var clientCertificates: [ClientCertificate] = []
    /// Header fields for requests to some hosts, whose secrets jobs do not know.
    package var credentials: [HostCredential] = []
    package var userAgent = "deferd/1.0"

    package init() {}

    package struct LowSpeed: Sendable, Equatable {
        package var bytes = 1
        package var seconds = 0.0

        package init() {}
    }
}
