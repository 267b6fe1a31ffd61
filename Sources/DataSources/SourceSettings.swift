package import JobModel

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
        guard HeaderField.flaw(ofValue: http.userAgent) == nil else {
            throw JobError(.invalid, "http.userAgent must not contain control characters; write it in one line.")
        }
    }
}
