import CTuning
import DeferredKit
import FoundationEssentials
import Glibc
import JobCore
import JobEngine
import JobModel
import Logging
import LoopTasks
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix
import ServiceLifecycle
import Systemd
import UnixSignals

/// Keeps the service manager informed: ready, status, watchdog, reload, stopping.
struct Supervision: Service {
    let engine: Engine
    let group: MultiThreadedEventLoopGroup
    let reload: Reload
    /// SIGHUPs, including those during the start.
    let hangUps: UnixSignalsSequence
    let logger: Logger
    private let notifier = ServiceNotifier()
    /// A remark about the last reload, for the status of the service.
    private let remark = NIOLockedValueBox<String?>(nil)
    /// The status that the service manager was told last.
    private let told = NIOLockedValueBox("")
    /// Seconds for which the store may hold up a round, as on a slow disk: until it counts as an answer of the engine, until
    /// the status says so, and until the daemon counts as hanging.
    private static let patience = (begin: 0.1, silent: 10.0, end: 600.0)

    func run() async throws {
        // Signals from here on go to the service group, which takes this return for one.
        if StartSignals.wasToldToStop { return }
        if notifier.isActive { note { try notifier.status(status) } }
        note {
            // The manager may have started another process that started this one.
            try notifier.mainPID(getpid())
            try notifier.ready()
        }
        // Most of the daemon's code was needed only to start, which includes the first steps of its tasks.
        if ProcessInfo.processInfo.environment["DEFERD_TUNING"] != "off" {
            group.any().scheduleTask(in: .seconds(1)) { deferd_release_image() }
        }
        let watchdog = try Watchdog()
        await withGracefulShutdownHandler {
            await cancelWhenGracefulShutdown {
                await withDiscardingTaskGroup { tasks in
                    if let watchdog {
                        tasks.addTask {
                            await watchdog.run(clock: LoopClock(group.any()), logger: logger) { await probe() }
                        }
                    }
                    if notifier.isActive { tasks.addTask { await report() } }
                    tasks.addTask { await reloadOnHangUp() }
                }
            }
        } onGracefulShutdown: {
            note { try notifier.stopping(status: "Stopping; jobs are stored.") }
        }
    }

    private func note(_ body: () throws -> Void) {
        do { try body() } catch {
            logger.warning("The service manager was not notified.", metadata: ["error": "\(error)"])
        }
    }

    /// The line in `systemctl status`: counts of jobs, and a remark about the last reload.
    private var status: String {
        let status = engine.status
        let (jobs, totals) = (status.jobs(), status.totals())
        func count(_ state: JobState) -> Int { jobs[state, default: 0] }
        let seconds = engine.secondsInStore
        let slowness = seconds < Self.patience.silent ? nil : "a round has waited for the store for \(Int(seconds)) s."
        let counts =
            (status.storageFailure ?? status.core.shortage ?? slowness).map { "Nothing can be stored: \($0)" }
            ?? "\(count(.running)) running, \(count(.queued)) queued, \(count(.scheduled)) scheduled, "
            + "\(totals.succeeded) succeeded, \(totals.failed) failed"
        return remark.withLockedValue(\.self).map { "\(counts); \($0)" } ?? counts
    }

    /// Updates the status line, at most once a second.
    private func report() async {
        for await _ in engine.changes.stream {
            guard tellStatus() else { continue }
            guard (try? await LoopClock(group.any()).sleep(for: .seconds(1))) != nil else { return }
        }
    }

    /// Returns whether the status was another one before.
    @discardableResult
    private func tellStatus() -> Bool {
        let text = status
        guard told.withLockedValue({ exchange(&$0, with: text) }) != text else { return false }
        note { try notifier.status(text) }
        return true
    }

    /// Passes through every event loop and the engine.
    private func probe() async {
        for loop in group.makeIterator() { try? await loop.submit {}.get() }
        let answer = engine.ping()
        while !answer.isResolved, !(Self.patience.begin...Self.patience.end).contains(engine.secondsInStore) {
            guard (try? await LoopClock(group.any()).sleep(for: .milliseconds(10))) != nil else { return }
        }
        tellStatus()
    }

    private func reloadOnHangUp() async {
        var reload = reload
        for await _ in hangUps {
            note { try notifier.reloading() }
            let text = await reload.run()
            remark.withLockedValue { $0 = text }
            note { try notifier.ready(status: status) }
        }
    }
}
