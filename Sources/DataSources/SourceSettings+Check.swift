package import JobModel

extension SourceSettings {
    /// Throws where they hold something that cannot be meant.
    package func check() throws(JobError) {
        _ = try AccessPolicy(policy)
        _ = try DownloadDirectories(downloads)
        if let proxy = http.proxy { _ = try ProxyAddress(proxy) }
        guard HeaderField.flaw(ofValue: http.userAgent) == nil else {
            throw JobError(.invalid, "http.userAgent must not hold control characters; write it in one line.")
        }
    }
}
