import DataSources
import FoundationEssentials
import Glibc
import JobEngine
import JobModel
import JobServer
import Logging
import NIOConcurrencyHelpers
import Synchronization

/// Reads the configuration again and applies it, all of it or, if anything is wrong, nothing.
struct Reload: Sendable {
    var present: Configuration
    let flags: Configuration.Flags
    let store: any StateStore
    let engine: Engine
    let server: ServerState
    let level: DaemonLogHandler.Level
    let logger: Logger

    /// Returns a remark for the status line: why nothing was applied, or what waits for a restart.
    mutating func run() async -> String? {
        do {
            return try await apply(try await read())
        } catch {
            logger.error(
                "The new configuration was not applied; the old one stays in force.",
                metadata: ["event": "\(CatalogEvent.reloadRefused.name)", "error": "\(error)"])
            server.refusedConfiguration.withLock { $0 = ("\(error)", engine.clock.wall()) }
            return "the new configuration was not applied: \(error)"
        }
    }

    /// Not on the event loops, because files and the names of users and groups may be slow.
    private func read() async throws(ConfigurationErrors) -> Configuration {
        try await engine.blocking(for: getuid()) { [flags] () throws(ConfigurationErrors) in
            try Configuration.load(flags, environment: ProcessInfo.processInfo.environment)
        }
    }

    private func describe(_ node: NodeDescription) async {
        do throws(StoreError) {
            try await engine.blocking(for: getuid()) { [store] () throws(StoreError) in try store.describe(node) }
        } catch {
            logger.warning(
                "Other nodes are not told of the new configuration; reload it again.",
                metadata: ["error": "\(error.message)"])
        }
    }

    private mutating func apply(_ read: Configuration) async throws(ConfigurationErrors) -> String? {
        var (changed, kept) = present.reloaded(read)
        changed.limits.connections = DescriptorLimit.raise(for: changed.limits.connections, logger)
        do { try await engine.configure(changed.engine, sources: changed.sources) } catch {
            throw ConfigurationErrors(error.message, in: "configuration")
        }
        server.configure(engine.limits, adminGroup: changed.adminGroupID)
        level.withLockedValue { $0 = changed.logLevel }
        present = changed
        await describe(changed.node)
        logger.notice("The configuration was reloaded.", metadata: ["event": "\(CatalogEvent.reloaded.name)"])
        for key in kept {
            logger.warning("A new value waits for a restart of the daemon.", metadata: ["key": "\(key)"])
        }
        return kept.isEmpty
            ? nil : "\(kept.joined(separator: ", ")) \(kept.count == 1 ? "waits" : "wait") for a restart"
    }
}
