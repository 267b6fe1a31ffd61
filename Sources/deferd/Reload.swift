import DataSources
import Foundation
import Glibc
import JobEngine
import JobModel
import JobServer
import Logging

/// Reads the configuration again, and has the daemon go by what it says now.
///
/// Either all of it is taken over or, where anything is wrong, nothing is. One reload runs at a time.
actor Reload {
    private let flags: Configuration.Flags
    private let engine: Engine
    private let server: JobServer
    private let level: LevelledLogHandler.Level
    private let logger: Logger
    private var present: Configuration

    /// `configuration` is what the daemon started with.
    init(
        of configuration: Configuration, flags: Configuration.Flags, engine: Engine, server: JobServer,
        level: LevelledLogHandler.Level, logger: Logger
    ) {
        present = configuration
        self.flags = flags
        self.engine = engine
        self.server = server
        self.level = level
        self.logger = logger
    }

    /// Gives what is to be known of it: why nothing was taken over, or what waits for a restart.
    func run() async -> String? {
        do {
            return try await takeOver(try await read())
        } catch {
            logger.error(
                "The configuration was not taken over; the old one stays in force.",
                metadata: ["event": "\(CatalogEvent.reloadRefused.rawValue)", "error": "\(error)"])
            return "the configuration was not taken over: \(error)"
        }
    }

    /// Off the event loops, as files and the names of users and groups may be slow.
    private func read() async throws(ConfigurationErrors) -> Configuration {
        try await engine.blocking(for: getuid()) { [flags] () throws(ConfigurationErrors) in
            try Configuration.load(flags, environment: ProcessInfo.processInfo.environment)
        }
    }

    private func takeOver(_ read: Configuration) async throws(ConfigurationError) -> String? {
        var (changed, kept) = present.reloaded(read)
        changed.limits.connections = DescriptorLimit.raise(for: changed.limits.connections, logger)
        do { try await engine.configure(changed.engine, sources: changed.sources) } catch {
            throw ConfigurationError(location: "configuration", key: nil, reason: error.message)
        }
        server.configure(adminGroup: changed.adminGroup?.id)
        level.current = changed.logLevel
        present = changed
        logger.notice(
            "The configuration was read again.", metadata: ["event": "\(CatalogEvent.reloaded.rawValue)"])
        for key in kept {
            logger.warning("A new value waits for a restart of the daemon.", metadata: ["key": "\(key)"])
        }
        return kept.isEmpty
            ? nil : "\(kept.joined(separator: ", ")) \(kept.count == 1 ? "waits" : "wait") for a restart"
    }
}
