import DataSources
import JobCore
import JobEngine
import JobModel
import JobProtocol
import Logging

/// Everything that can be configured, with its defaults.
struct Configuration: Sendable {
    var socketPath: String
    var socketMode: UInt32
    var socketGroup: String?
    var stateDirectory: String
    /// The connection string of the PostgreSQL database with the jobs; nil for SQLite in the state directory.
    var store: String?
    /// The password for it, unless it has one itself.
    var storePassword: String?
    var nodeName = Self.hostName
    /// The seconds after which other nodes take over the jobs of one that has not been seen.
    var lease = 15.0
    /// The seconds that a statement of PostgreSQL may take.
    var statementTimeout = 3.0
    var downloads: DownloadSettings
    /// Whether it serves all users, or only the one who started it.
    let isSystemInstance: Bool
    /// By name; a queue without `perUser` has the instance's share.
    var queues = ["default": QueueSettings(name: "default", concurrency: 16)]
    var programs = ProgramEntries()
    /// The program or command of `hooks.finished`; nil for the instance's default.
    var finishedHook: ProgramSpec.Subject?
    var limits = JobLimits()
    /// `http.credentials` has the secrets of ``credentials`` once they are read.
    var http = HTTPSettings()
    var credentials: [CredentialEntry] = []
    var policy = PolicySettings()
    /// Retention and storage; the rest is filled in by ``engine``.
    var core = CoreSettings()
    /// The name of the group of administrators, and its id, looked up when the configuration is read.
    var adminGroup: String?
    var adminGroupID: UInt32?
    var logLevel = Logger.Level.info
    /// Where each key was set, for warnings.
    var origins: [String: Origin] = [:]

    struct Origin: Sendable {
        let location: String
        let line: Int?
    }

    static let userAgent = "deferd/\(ProductVersion.current)"

    /// The configuration without a file, variables or flags.
    init(of instance: Instance) {
        isSystemInstance = instance.isSystem
        socketPath = instance.socketPath
        // A user's own instance runs commands as its owner, also for users who share the owner's group.
        socketMode = instance.isSystem ? 0o660 : 0o600
        stateDirectory = instance.stateDirectory
        http.userAgent = Self.userAgent
        downloads = DownloadSettings()
        downloads.directory = instance.downloadsDirectory
        // Users may write their own files anyway.
        downloads.roots = instance.isSystem ? [] : ["/"]
        downloads.isSystemInstance = instance.isSystem
    }

    /// The configuration after a reload of `read`, and the keys whose new values wait for a restart.
    func reloaded(_ read: Configuration) -> (configuration: Configuration, kept: [String]) {
        var configuration = read
        let kept = ConfigurationKey.all.filter { $0.keep(self, &configuration) }
        return (configuration, kept.map(\.name))
    }

    var engine: EngineSettings {
        var settings = EngineSettings()
        settings.minimumFree = Int64(downloads.minimumFree)
        settings.finishedHook = finishedHook ?? (isSystemInstance ? nil : Self.desktopNotification)
        settings.isSystemInstance = isSystemInstance
        settings.store = store == nil ? .sqlite : .postgresql
        settings.node = node
        settings.core = core
        settings.core.node = store == nil ? nil : node.name
        settings.core.limits = limits
        settings.core.limits.redirects = http.redirects
        settings.core.limits.retry = http.retry
        settings.core.queues = queues.values.sorted { $0.name < $1.name }
        settings.core.ownersShare = isSystemInstance ? 0.75 : 1
        settings.core.perHost = http.perHost
        settings.core.longestBackOff = http.retryAfter
        settings.core.jobLogging = logLevel < .info ? .all : logLevel == .info ? .bounded : .none
        return settings
    }

    /// Shows the id and the state of a finished job on the user's desktop, if there is one.
    private static let desktopNotification = ProgramSpec.Subject.command([
        "/bin/sh", "-c",
        #"""
        command -v notify-send >/dev/null || exit 0
        export XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/run/user/$(id -u)}"
        export DBUS_SESSION_BUS_ADDRESS="${DBUS_SESSION_BUS_ADDRESS:-unix:path=$XDG_RUNTIME_DIR/bus}"
        exec notify-send deferd "$(sed 's/^{"job":\([0-9]*\),"state":"\([a-z]*\)".*/Job \1: \2/')"
        """#,
    ])

    var sources: SourceSettings {
        var settings = SourceSettings()
        (settings.limits, settings.http, settings.policy, settings.downloads) = (limits, http, policy, downloads)
        settings.programs.entries = programs.entries
        // Users who run a daemon of their own can run any program anyway.
        settings.programs.allowsAny = programs.allowsAny ?? !isSystemInstance
        settings.programs.belongsToCaller = !isSystemInstance
        settings.programs.directory = stateDirectory + "/programs"
        return settings
    }
}

/// An error in the configuration, and where it is, once that is known.
struct ConfigurationError: CustomStringConvertible {
    /// The file, the variable or the flag.
    var location = ""
    var line: Int?
    /// The whole name, with dots.
    var key: String?
    /// A clause.
    let reason: String

    var description: String {
        [location + (line.map { ":\($0)" } ?? ""), key, reason].compactMap(\.self).joined(separator: ": ")
    }
}

/// All errors in the configuration, or in one value of it; at least one.
struct ConfigurationErrors: Error, CustomStringConvertible {
    var errors: [ConfigurationError]

    init(errors: [ConfigurationError]) { self.errors = errors }

    init(_ reason: String, in location: String = "", line: Int? = nil) {
        errors = [ConfigurationError(location: location, line: line, reason: reason)]
    }

    /// The errors of the value of a key, or of an entry of a map; they may have lines, and keys below it, of their own.
    func located(at location: String = "", line: Int?, of key: String) -> ConfigurationErrors {
        ConfigurationErrors(
            errors: errors.map { error in
                ConfigurationError(
                    location: location, line: error.line ?? line, key: error.key.map { "\(key).\($0)" } ?? key,
                    reason: error.reason)
            })
    }

    /// The first error, where there is room for one sentence.
    var description: String {
        let first = errors.first?.description ?? ""
        return errors.count > 1 ? "\(first) (and \(errors.count - 1) more; see them with deferd --check)" : first
    }
}
