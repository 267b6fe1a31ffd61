import Foundation
import JobCore
import JobEngine
import JobModel
import Logging
import LoopTasks
import NIOCore
import NIOPosix
import ServiceLifecycle
import Systemd
import UnixSignals

/// Keeps the service manager informed: ready, status, watchdog, reload, stopping.
struct Supervision: Service {
    let engine: JobEngine
    let group: MultiThreadedEventLoopGroup
    let flags: Configuration.Flags
    let configuration: Configuration
    let level: LevelledLogHandler.Level
    let logger: Logger

    func run() async throws {
        let notifier = ServiceNotifier()
        if notifier.isActive {
            let logger = logger
            await engine.observeStatus { statistics in
                Self.note(logger) { () throws(SystemdError) in try notifier.status(Self.text(statistics)) }
            }
        }
        let hangUps = await UnixSignalsSequence(trapping: .sighup)
        Self.note(logger) { () throws(SystemdError) in try notifier.ready() }
        Tuning.settle()
        let watchdog = try Watchdog()
        await withGracefulShutdownHandler {
            await cancelWhenGracefulShutdown {
                await withDiscardingTaskGroup { tasks in
                    if let watchdog {
                        tasks.addTask {
                            await watchdog.run(clock: LoopClock(group.any()), logger: logger) { await probe() }
                        }
                    }
                    tasks.addTask { await reload(on: hangUps, notifier) }
                }
            }
        } onGracefulShutdown: { [logger] in
            Self.note(logger) { () throws(SystemdError) in try notifier.stopping(status: "Stopping; jobs are stored.") }
        }
    }

    private static func note(_ logger: Logger, _ body: () throws(SystemdError) -> Void) {
        do { try body() } catch {
            logger.warning("The service manager was not told.", metadata: ["error": "\(error)"])
        }
    }

    private static func text(_ statistics: CoreStatistics) -> String {
        if let failure = statistics.storageFailure { return "Nothing can be stored: \(failure)" }
        func count(_ state: JobState) -> Int { statistics.jobs[state, default: 0] }
        return "\(count(.running)) running, \(count(.queued)) queued, \(count(.scheduled)) scheduled, "
            + "\(statistics.totals.succeeded) succeeded, \(statistics.totals.failed) failed"
    }

    /// Passes through every event loop, the engine and the store.
    private func probe() async -> Bool {
        for loop in group.makeIterator() {
            guard (try? await loop.submit {}.get()) != nil else { return false }
        }
        return await engine.probe()
    }

    private func reload(on hangUps: UnixSignalsSequence, _ notifier: ServiceNotifier) async {
        for await _ in hangUps {
            Self.note(logger) { () throws(SystemdError) in try notifier.reloading() }
            await reload()
            Self.note(logger) { () throws(SystemdError) in try notifier.ready() }
        }
    }

    /// Applies the settings that can change while jobs run: the log level and the queues.
    private func reload() async {
        do {
            let changed = try Configuration.load(flags, environment: ProcessInfo.processInfo.environment)
            level.current = changed.logLevel
            _ = await engine.ask(.configure(changed.core), for: Caller(uid: 0, isAdmin: true))
            logger.notice("The configuration was read again; what is not log.level or queues waits for a restart.")
        } catch {
            logger.error("The configuration was not taken over.", metadata: ["error": "\(error)"])
        }
    }
}
