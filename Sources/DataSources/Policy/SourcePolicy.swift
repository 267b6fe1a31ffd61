package import JobModel

/// What sources may reach as the settings say at one moment: URLs and download paths, by their text alone.
package struct SourcePolicy: Sendable {
    let access: AccessPolicy
    let directories: DownloadDirectories
    let programs: ProgramSettings

    /// Refuses what is no URL (kind `invalid`), and a scheme, host or address that is forbidden (kind `policy`).
    @discardableResult
    package func check(url: String) throws(JobError) -> RequestURL { try access.url(url) }

    /// Refuses a path that lies where `owner` may not write (kind `policy`).
    package func check(path: String, owner: UInt32) throws(JobError) { _ = try directories.path(path, owner: owner) }

    /// Refuses a program that is not configured (kind `invalid`), and without a name any command where none is allowed.
    package func check(program name: String?) throws(JobError) { try programs.check(name) }
}
