import JobModel
import Logging

/// What a transfer goes by: the settings, and what is made of them.
struct SourceRules: Sendable {
    let settings: SourceSettings
    let policy: SourcePolicy
    let transport: HTTPTransport

    /// Throws where a setting is not valid.
    init(_ settings: SourceSettings, directories: DownloadDirectories, _ shared: SharedServices) throws(JobError) {
        self.settings = settings
        let access = try AccessPolicy(settings.policy)
        policy = SourcePolicy(access: access, directories: directories, programs: settings.programs)
        transport = try HTTPTransport(settings, access, shared)
    }
}

/// What is there once, whatever the rules are.
struct SharedServices: Sendable {
    let resolver: NameResolver
    let pool: ConnectionPool
    /// Files that downloads write to, whatever rules they started with.
    let reservations = FileReservations()
    let files: FileOperations
    /// For users' files, whose file systems may hold up all of its threads; what uses another queue goes on then.
    let queue: FileQueue
    /// For what runs without a file of a user's: documents, programs and certificates.
    let stateQueue: FileQueue
    let documents: DocumentBudget
    let bodies = SpilledBodies()
    let logger: Logger
}
