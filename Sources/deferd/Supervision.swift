import Foundation
import Glibc
import JobCore
import JobEngine
import JobModel
import Logging
import LoopTasks
import NIOCore
import NIOPosix
import ServiceLifecycle
import Synchronization
import Systemd
import UnixSignals

/// Keeps the service manager informed: ready, status, watchdog, reload, stopping.
struct Supervision: Service {
    let engine: Engine
    let group: MultiThreadedEventLoopGroup
    let reload: Reload
    /// SIGHUPs, also those that came while the daemon started.
    let hangUps: UnixSignalsSequence
    /// Looked at while the daemon starts and while it stops.
    let timeout: TimeoutExtension
    let logger: Logger
    private let status = StatusLine()

    func run() async throws {
        // Signals that come from here on are the service group's, which takes the end of this for one.
        if StartSignals.wasToldToStop { return }
        let notifier = ServiceNotifier()
        if notifier.isActive {
            let text = status.text { $0.counts = Self.text(engine.status) }
            Self.note(logger) { () throws(SystemdError) in try notifier.status(text) }
        }
        timeout.end()
        Self.note(logger) { () throws(SystemdError) in
            // The manager may have started something else that started this.
            try notifier.mainPID(getpid())
            try notifier.ready()
        }
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
                    if notifier.isActive { tasks.addTask { await report(to: notifier) } }
                    tasks.addTask { await reload(notifier) }
                }
            }
        } onGracefulShutdown: { [logger, timeout] in
            Self.note(logger) { () throws(SystemdError) in try notifier.stopping(status: "Stopping; jobs are stored.") }
            // Until the process ends: what is stored last may be much.
            timeout.begin()
        }
    }

    private static func note(_ logger: Logger, _ body: () throws(SystemdError) -> Void) {
        do { try body() } catch {
            logger.warning("The service manager was not told.", metadata: ["error": "\(error)"])
        }
    }

    private static func text(_ status: EngineStatus) -> String {
        if let failure = status.storageFailure ?? status.shortage { return "Nothing can be stored: \(failure)" }
        let (jobs, totals) = (status.jobs(), status.totals())
        func count(_ state: JobState) -> Int { jobs[state, default: 0] }
        return "\(count(.running)) running, \(count(.queued)) queued, \(count(.scheduled)) scheduled, "
            + "\(totals.succeeded) succeeded, \(totals.failed) failed"
    }

    /// Tells the counts, at most once a second.
    private func report(to notifier: ServiceNotifier) async {
        var told = ""
        for await _ in engine.statusChanges {
            let counts = Self.text(engine.status)
            guard counts != told else { continue }
            told = counts
            let text = status.text { $0.counts = counts }
            Self.note(logger) { () throws(SystemdError) in try notifier.status(text) }
            guard (try? await LoopClock(group.any()).sleep(for: .seconds(1))) != nil else { return }
        }
    }

    /// Passes through every event loop, the engine and the store.
    private func probe() async -> Bool {
        for loop in group.makeIterator() {
            guard (try? await loop.submit {}.get()) != nil else { return false }
        }
        return await engine.probe()
    }

    private func reload(_ notifier: ServiceNotifier) async {
        for await _ in hangUps {
            Self.note(logger) { () throws(SystemdError) in try notifier.reloading() }
            let remark = await reload.run()
            let text = status.text { $0.remark = remark }
            Self.note(logger) { () throws(SystemdError) in try notifier.ready(status: text) }
        }
    }
}

/// What `systemctl status` shows: counts of jobs, and what the last reload came to where that is to be known.
private final class StatusLine: Sendable {
    private let parts = Mutex((counts: "", remark: String?.none))

    func text(_ change: (inout (counts: String, remark: String?)) -> Void) -> String {
        parts.withLock { parts in
            change(&parts)
            return [parts.counts, parts.remark ?? ""].filter { !$0.isEmpty }.joined(separator: "; ")
        }
    }
}
