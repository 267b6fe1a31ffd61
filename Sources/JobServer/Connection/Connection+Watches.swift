import JobCore
import JobEngine
import JobModel
import JobProtocol
import Synchronization

/// The watches of a connection.
///
/// A watch of fixed jobs ends by itself once it has reported the last end. A submission with a watch waits while too
/// many are open, so that a client that submits faster than it reads learns of every job.
extension Connection {
    /// Bytes per watch besides its jobs: itself, its part of the core's index, and one notification in flight.
    private static let bytesPerWatch = 8 << 10
    /// Bytes per watch of a submission, which covers no other job.
    private static let bytesPerSubmission = 2 << 10
    /// The number of watches ended by the client that a connection remembers.
    private static let mostUnwatched = 1024

    /// Creates a watch of a scope, or of the job of a submission, which buffers its events until it is opened. If it covers no
    /// later jobs, it ends with the last end that it reports.
    ///
    /// It is refused if the connection has as many as it may, unless ``roomForWatch()`` has made room: not for a batch, whose
    /// watches begin with its answer, so that waiting for one of them would never end.
    func makeWatch(of scope: WatchScope? = nil, isInBatch: Bool = false) throws(ProtocolError) -> Watch {
        let most = limits.inFlight
        guard scope == nil && !isInBatch || state.withLock({ $0.watches.count < most }) else {
            throw .busy("This connection has \(most) watches; end some of them with job.unwatch.", retryAfter: 1)
        }
        let isFixed = scope?.isFixed ?? true
        let bytes = scope.map { $0.bytes + Self.bytesPerWatch } ?? Self.bytesPerSubmission
        let charge = try BudgetCharge(registering: bytes, in: budget)
        let watch = state.withLock { state in
            state.lastWatch += 1
            let watch = Watch(
                number: state.lastWatch, subscription: engine.nextID(), outbox: outbox, charge: charge
            ) { [weak self] watch in
                if isFixed { self?.end(watch) }
                self?.changed()
            }
            state.watches[watch.number] = watch
            return watch
        }
        engine.register(watch, as: watch.subscription, of: caller.uid)
        return watch
    }

    /// Returns whether a submission with a watch must wait, given this many others about to be submitted.
    func mustWaitForWatches(besides others: Int) -> Bool {
        let limits = limits
        return state.withLock { $0.watches.count + others >= limits.inFlight } || outbox.backlog > limits.outbound / 4
    }

    /// Returns once a submission can have a watch: few are open, and the client has read most of their output.
    func roomForWatch() async {
        let limits = limits
        await wait { [outbox] state in
            state.isShuttingDown || state.watches.count < limits.inFlight && outbox.backlog <= limits.outbound / 4
        }
    }

    /// Ends a watch; its earlier notifications are still sent.
    func end(_ watch: Watch) {
        guard state.withLock({ $0.watches.removeValue(forKey: watch.number) }) != nil else { return }
        watch.end()
        engine.unsubscribe(watch.subscription, of: caller.uid)
    }

    /// Ends a watch on request or after a refusal; returns false if it is unknown or was ended on request before.
    @discardableResult func unwatch(_ number: Int) -> Bool {
        guard let watch = state.withLock({ $0.watches[number] }) else {
            return state.withLock { number > 0 && number <= $0.lastWatch && !$0.unwatched.contains(number) }
        }
        state.withLock { state in
            if state.unwatched.count >= Self.mostUnwatched { state.unwatched = [] }
            state.unwatched.insert(number)
        }
        end(watch)
        return true
    }
}
