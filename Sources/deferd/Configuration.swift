import DataSources
import JobCore
import JobEngine
import JobModel
import Logging

/// Everything that can be configured, with its defaults.
struct Configuration: Sendable {
    var socketPath: String
    var socketMode: UInt32 = 0o660
    var socketGroup: String?
    var stateDirectory: String
    var downloads: DownloadSettings
    /// Whether it serves several users, or only the one who started it.
    let isSystemInstance: Bool
    /// By name; a queue's `perUser` is nil where the instance's share of slots holds.
    var queues = ["default": QueueSettings(name: "default", concurrency: 16)]
    var programs = ProgramEntries()
    var limits = JobLimits()
    var http = HTTPSettings()
    /// Of which `http.credentials` has the secrets, once they were read.
    var credentials: [CredentialEntry] = []
    var policy = PolicySettings()
    var retentionAge = 604_800.0
    var retentionCount = 100_000
    var retentionBytes = 1 << 30
    var storedPerUser = 1 << 30
    var adminGroup: AdminGroup?
    var logLevel = Logger.Level.info

    /// The configuration without any file, variable or flag.
    init(of instance: Instance) {
        isSystemInstance = instance.isSystem
        socketPath = instance.socketPath
        stateDirectory = instance.stateDirectory
        downloads = DownloadSettings()
        downloads.directory = instance.downloadsDirectory
        downloads.isSystemInstance = instance.isSystem
    }

    /// The configuration that a daemon that runs by this one goes by from now on, where `read` is what it says now; and the
    /// names of the keys whose new values need a restart, which keep their old ones.
    func reloaded(_ read: Configuration) -> (configuration: Configuration, kept: [String]) {
        var configuration = read
        let kept = ConfigurationKey.all.filter { $0.keep(self, &configuration) }
        return (configuration, kept.map(\.name))
    }

    var engine: EngineSettings {
        var settings = EngineSettings()
        settings.core = core
        settings.minimumFree = Int64(downloads.minimumFree / 2)
        return settings
    }

    private var core: CoreSettings {
        var settings = CoreSettings()
        settings.limits = limits
        settings.limits.redirects = http.redirects
        settings.queues = queues.values.sorted { $0.name < $1.name }
        settings.ownersShare = isSystemInstance ? 0.75 : 1
        settings.perHost = http.perHost
        settings.longestBackOff = http.retryAfter
        settings.retentionAge = retentionAge
        settings.retentionCount = retentionCount
        settings.retentionBytes = Int64(retentionBytes)
        settings.storedPerUser = Int64(storedPerUser)
        settings.jobLogging = logLevel < .info ? .all : logLevel == .info ? .bounded : .none
        return settings
    }

    var sources: SourceSettings {
        var settings = SourceSettings(limits: limits, http: http, policy: policy, downloads: downloads)
        settings.programs.entries = programs.entries
        // One who runs a daemon of their own can run any program anyhow.
        settings.programs.allowsAny = programs.allowsAny ?? !isSystemInstance
        settings.programs.directory = stateDirectory + "/programs"
        return settings
    }
}

/// The group whose members are administrators, looked up when the configuration is read.
struct AdminGroup: Sendable, Equatable {
    let name: String
    let id: UInt32
}

/// One thing that is wrong with the configuration, and where.
struct ConfigurationError: Error, CustomStringConvertible {
    /// The file, the variable or the flag.
    let location: String
    /// The line in the file.
    var line: Int?
    let key: String?
    let reason: String

    var description: String {
        [location + (line.map { ":\($0)" } ?? ""), key, reason].compactMap(\.self).joined(separator: ": ")
    }
}

/// All that is wrong with the configuration, as far as one look at it can tell; at least one thing.
struct ConfigurationErrors: Error, CustomStringConvertible {
    let errors: [ConfigurationError]

    /// The first of them, where there is room for one sentence.
    var description: String {
        let first = errors.first?.description ?? ""
        return errors.count > 1 ? "\(first) (and \(errors.count - 1) more, which deferd --check tells)" : first
    }
}
