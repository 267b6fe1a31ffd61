import DataSources
import JobModel
import Logging

/// Everything that can be configured, with its defaults.
struct Configuration: Sendable {
    var socketPath: String
    var socketMode: UInt32 = 0o660
    var socketGroup: String?
    var stateDirectory: String
    var downloads: DownloadSettings
    var queues = ["default": 16]
    var limits = JobLimits()
    var http = HTTPSettings()
    var policy = PolicySettings()
    var retentionAge = 604_800.0
    var retentionCount = 100_000
    var adminGroup: String?
    var logLevel = Logger.Level.info

    /// The configuration without any file, variable or flag.
    init(of instance: Instance) {
        socketPath = instance.socketPath
        stateDirectory = instance.stateDirectory
        downloads = DownloadSettings()
        downloads.directory = instance.downloadsDirectory
        downloads.isSystemInstance = instance.isSystem
    }

    var sources: SourceSettings { SourceSettings(limits: limits, http: http, policy: policy, downloads: downloads) }
}
