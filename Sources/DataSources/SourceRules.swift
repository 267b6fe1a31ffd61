package import JobModel
import NIOSSL
import Synchronization

/// The settings that a transfer starts with, and the objects made from them; shared by all that start with them.
package final class SourceRules: Sendable {
    let settings: SourceSettings
    let access: AccessPolicy
    let directories: DownloadDirectories
    let pool: ConnectionPool
    /// The TLS settings by the index of the client's certificate; nil for none.
    let tlsContexts = Mutex<[Int?: NIOSSLContext]>([:])
    private let proxy: ProxyAddress?
    private let exceptions: ProxyExceptions

    /// Throws if a setting is not valid.
    init(_ settings: SourceSettings, directories: DownloadDirectories, _ shared: SharedServices) throws(JobError) {
        self.settings = settings
        self.directories = directories
        access = try AccessPolicy(settings.policy)
        pool = ConnectionPool(timers: shared.timers)
        if let text = settings.http.proxy { proxy = try ProxyAddress(text) } else { proxy = nil }
        exceptions = try ProxyExceptions(settings.http.noProxy)
    }

    func proxy(for url: RequestURL) -> ProxyAddress? { exceptions.include(url.host) ? nil : proxy }

    /// Throws if a URL is not valid (kind `invalid`), or if its scheme, host or address is forbidden (`policy`).
    @discardableResult
    package func check(url: String) throws(JobError) -> RequestURL { try access.url(url) }

    /// Throws if `owner` may not write to a path (kind `policy`), which `mayBeDirectory` in which a server names a file.
    package func check(path: String, owner: UInt32, mayBeDirectory: Bool = false) throws(JobError) {
        _ = try directories.path(path, owner: owner, mayBeDirectory: mayBeDirectory)
    }

    /// Throws if a program is not configured (kind `invalid`), or if a command without a name is not allowed
    /// (`policy`).
    package func check(program name: String?) throws(JobError) { _ = try settings.programs.entry(name) }

    package func check(variable: String, of program: String) throws(JobError) {
        try settings.programs.check(variable: variable, of: program)
    }
}

/// What sources may do, and how much of it; the defaults are those of the configuration.
package struct SourceSettings: Sendable {
    package var limits = JobLimits()
    package var http = HTTPSettings()
    package var policy = PolicySettings()
    package var downloads = DownloadSettings()
    package var programs = ProgramSettings()

    package init() {}

    /// Throws if a setting is not valid.
    package func check() throws(JobError) {
        _ = try AccessPolicy(policy)
        _ = try DownloadDirectories(downloads)
        if let proxy = http.proxy { _ = try ProxyAddress(proxy) }
        _ = try ProxyExceptions(http.noProxy)
        guard HeaderField.flaw(ofValue: http.userAgent) == nil else {
            throw JobError(.invalid, "http.userAgent must not contain control characters; write it in one line.")
        }
    }
}
