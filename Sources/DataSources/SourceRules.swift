import JobModel

/// The settings that a transfer starts with, and the objects made from them.
struct SourceRules: Sendable {
    let settings: SourceSettings
    let policy: SourcePolicy
    let transport: HTTPTransport

    /// Throws if a setting is not valid.
    init(_ settings: SourceSettings, directories: DownloadDirectories, _ shared: SharedServices) throws(JobError) {
        self.settings = settings
        let access = try AccessPolicy(settings.policy)
        policy = SourcePolicy(access: access, directories: directories, programs: settings.programs)
        transport = try HTTPTransport(settings, access, shared)
    }
}
