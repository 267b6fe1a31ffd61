import JobCore
import JobEngine
import JobModel
import JobProtocol
import Synchronization

/// The watches of a connection.
///
/// One over fixed jobs ends by itself with the last end that it tells. A submission with a watch waits where too many are open,
/// so that a client that submits ahead of what it reads is told of every job.
extension Connection {
    /// What each watch counts besides its jobs: itself, its part of the core's index, and one notification on its way.
    private static let bytesPerWatch = 8 << 10
    /// The same of a submission's watch, which no other job is told to.
    private static let bytesPerSubmission = 2 << 10
    /// Watches that were ended by hand of which a connection remembers that.
    private static let mostUnwatched = 1024

    /// A new watch, which buffers its events until it is opened.
    ///
    /// `jobs` are as many as it names, and `bytes` what else it names takes. `isFixed` where it covers no others.
    func makeWatch(jobs: Int, bytes: Int = 0, isFixed: Bool) throws(ProtocolError) -> ConnectionWatch {
        let most = limits.inFlight
        guard state.withLock({ $0.watches.count < most }) else {
            throw .busy("This connection has \(most) watches; end some of them with job.unwatch.", retryAfter: 1)
        }
        let charge = try register(bytes: jobs * Self.bytesPerID + bytes + Self.bytesPerWatch)
        return add(charge, isFixed: isFixed)
    }

    /// The watch of a submission, which ``roomForWatch(besides:)`` has made room for.
    func makeSubmissionWatch() throws(ProtocolError) -> ConnectionWatch {
        add(try register(bytes: Self.bytesPerSubmission), isFixed: true)
    }

    private func add(_ charge: BudgetCharge, isFixed: Bool) -> ConnectionWatch {
        let watch = state.withLock { state in
            state.lastWatch += 1
            let number = state.lastWatch
            let watch = ConnectionWatch(
                number: number, subscription: engine.nextID(), outbox: outbox, charge: charge
            ) { [weak self] in
                guard let self else { return }
                if isFixed, let watch = self.state.withLock({ $0.watches[number] }) { end(watch) }
                changed()
            }
            state.watches[number] = watch
            return watch
        }
        engine.register(watch, as: watch.subscription, of: caller.uid)
        return watch
    }

    /// Whether a submission with a watch has to wait, where so many others are about to be submitted.
    func mustWaitForWatches(besides others: Int) -> Bool {
        let limits = limits
        return state.withLock { $0.watches.count + others >= limits.inFlight } || outbox.backlog > limits.outbound / 4
    }

    /// Returns once a submission can have a watch: few are open, and the client has read most of what they told.
    func roomForWatch() async {
        let limits = limits
        await wait { state in state.isShuttingDown || state.watches.count < limits.inFlight }
        await outbox.waits(atMost: limits.outbound / 4)
    }

    /// Ends a watch; what it has told before is still sent.
    func end(_ watch: ConnectionWatch) {
        guard state.withLock({ $0.watches.removeValue(forKey: watch.number) }) != nil else { return }
        watch.end()
        engine.unsubscribe(watch.subscription, of: caller.uid)
        outbox.end(watch: watch.number)
    }

    /// Ends a watch by hand, or one that was refused; false where there is none. One that has ended by itself was there.
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
