import DeferredKit
import JobModel
import NIOCore
import Synchronization

/// All transfers that run now, so that a daemon that stops can end them in order.
final class RunningTransfers: Sendable {
    private struct State {
        var controls: [ObjectIdentifier: TransferControl] = [:]
        var isStopping = false
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
            return state.isStopping
        }
        if isStopping { control.interrupt(Self.stopped) }
    }

    func end(_ control: TransferControl) {
        let stopper = state.withLock { state in
            state.controls[ObjectIdentifier(control)] = nil
            guard state.controls.isEmpty else { return Promise<Void, Never>?.none }
            defer { state.stopper = nil }
            return state.stopper
        }
        stopper?.succeed(())
    }

    /// Interrupts all and waits until each has ended, at most for `patience`; gives the number of those that have not.
    /// Called once.
    ///
    /// A file system that does not answer can delay one for ever, hence the bound.
    func stop(patience: TimeAmount, by clock: any EventLoop) async -> Int {
        let controls = state.withLock { state in
            state.isStopping = true
            return Array(state.controls.values)
        }
        for control in controls { control.interrupt(Self.stopped) }
        let stopper = Promise<Void, Never>()
        let isOver = state.withLock { state in
            state.stopper = stopper
            return state.controls.isEmpty
        }
        if isOver { stopper.succeed(()) }
        let timer = clock.scheduleTask(in: patience) { _ = stopper.succeed(()) }
        await stopper.deferred.get()
        timer.cancel()
        return state.withLock { $0.controls.count }
    }
}
