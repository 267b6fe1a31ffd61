import DeferredKit
import JobModel
import NIOCore
import Synchronization

/// All running transfers, so that a stopping daemon can end them.
final class RunningTransfers: Sendable {
    private struct State {
        var controls: [ObjectIdentifier: TransferControl] = [:]
        /// Resolved when the last transfer ends; set when the stop begins.
        var stopper: Promise<Void, Never>?
    }

    private let state = Mutex(State())

    private static var stopped: JobError {
        JobError(
            .cancelled, "The transfer was stopped with all others; start it again later.", retryable: true)
    }

    func begin(_ control: TransferControl) {
        let isStopping = state.withLock { state in
            state.controls[ObjectIdentifier(control)] = control
            return state.stopper != nil
        }
        if isStopping { control.interrupt(Self.stopped) }
    }

    func end(_ control: TransferControl) {
        let stopper = state.withLock { state in
            state.controls[ObjectIdentifier(control)] = nil
            return state.controls.isEmpty ? state.stopper : nil
        }
        stopper?.succeed(())
    }

    /// Interrupts all transfers and waits for their ends; returns how many still run after `patience`.
    ///
    /// A file system that does not answer can delay a transfer for ever, hence the limit.
    func stop(patience: TimeAmount, by clock: any EventLoop) async -> Int {
        let stopper = Promise<Void, Never>()
        let controls = state.withLock { state in
            state.stopper = stopper
            return Array(state.controls.values)
        }
        if controls.isEmpty { stopper.succeed(()) }
        for control in controls { control.interrupt(Self.stopped) }
        let timer = clock.scheduleTask(in: patience) { _ = stopper.succeed(()) }
        await stopper.deferred.get()
        timer.cancel()
        return state.withLock { $0.controls.count }
    }
}
