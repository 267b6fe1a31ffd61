package import JobModel

/// What sources may reach by the current settings: URLs and download paths, by their text alone.
package struct SourcePolicy: Sendable {
    let access: AccessPolicy
    let directories: DownloadDirectories
    let programs: ProgramSettings

    /// Throws if a URL is not valid (kind `invalid`), or if its scheme, host or address is forbidden (`policy`).
    @discardableResult
    package func check(url: String) throws(JobError) -> RequestURL { try access.url(url) }

    /// Throws if `owner` may not write to a path (kind `policy`).
    package func check(path: String, owner: UInt32) throws(JobError) { _ = try directories.path(path, owner: owner) }

    /// Throws if a program is not configured (kind `invalid`), or if a command without a name is not allowed
    /// (`policy`).
    package func check(program name: String?) throws(JobError) { try programs.check(name) }
}
