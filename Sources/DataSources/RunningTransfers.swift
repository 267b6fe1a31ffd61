import JobModel
import Synchronization

/// All transfers that run now, so that a daemon that stops can end them in order.
final class RunningTransfers: Sendable {
    private struct State {
        var controls: [ObjectIdentifier: TransferControl] = [:]
        var isStopping = false
        var stopper: CheckedContinuation<Void, Never>?
    }

    private let state = Mutex(State())

    private static var stopped: JobError {
        JobError(
            .cancelled, "The daemon is stopping, so the transfer was broken off; it goes on later.", retryable: true)
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
            guard state.controls.isEmpty else { return CheckedContinuation<Void, Never>?.none }
            defer { state.stopper = nil }
            return state.stopper
        }
        stopper?.resume()
    }

    /// Interrupts all and waits until each has ended. Called once.
    func stop() async {
        let controls = state.withLock { state in
            state.isStopping = true
            return Array(state.controls.values)
        }
        for control in controls { control.interrupt(Self.stopped) }
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.controls.isEmpty { return true }
                state.stopper = continuation
                return false
            }
            if isOver { continuation.resume() }
        }
    }
}
