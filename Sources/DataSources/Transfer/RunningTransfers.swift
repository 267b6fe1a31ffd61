import DeferredKit
import JobModel
import NIOCore
import Synchronization

/// All transfers that run now, so that a daemon that stops can end them in order.
final class RunningTransfers: Sendable {
    private struct State {
        var controls: [ObjectIdentifier: TransferControl] = [:]
        /// Resolved once none runs any more; there while all are being stopped and afterwards.
        var stopper: Promise<Void, Never>?
    }

    private let state = Mutex(State())

    private static var stopped: JobError {
        JobError(
            .cancelled, "The transfer was broken off, as all are stopped; start it again later.", retryable: true)
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

    /// Interrupts all and waits until each has ended, at most for `patience`; gives the number of those that have not.
    ///
    /// A file system that does not answer can delay one for ever, hence the bound.
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
