import JobEngine
import JobModel
import Synchronization

/// One watch of one connection: it passes events on, once the answer that names it is on its way.
final class ConnectionWatch: JobWatcher {
    fileprivate struct State {
        /// What came before the answer.
        var held: [JobEvent]? = []
        /// The jobs whose end it has still to tell of.
        var unfinished: Set<JobID> = []
    }

    /// The most events that are held.
    private static let bound = 100_000

    let name: String
    private let outbox: Outbox
    private let state = Mutex(State())
    private let settled: @Sendable () -> Void

    /// `settled` is called whenever nothing it watches is unfinished any more.
    init(name: String, outbox: Outbox, settled: @escaping @Sendable () -> Void) {
        self.name = name
        self.outbox = outbox
        self.settled = settled
    }

    func receive(_ event: JobEvent) {
        let (isOpen, isSettled) = state.withLock { state -> (Bool, Bool) in
            if state.held != nil {
                if state.held?.count ?? 0 < Self.bound { state.held?.append(event) }
                return (false, false)
            }
            return (true, state.note(event))
        }
        guard isOpen else { return }
        outbox.send(event, watch: name)
        if isSettled { settled() }
    }

    /// Passes on what was held and all that comes; `jobs` are those that were unfinished when the watch began.
    func open(unfinished jobs: [JobID]) {
        state.withLock { $0.unfinished.formUnion(jobs) }
        while let held = takeHeld() {
            for event in held {
                _ = state.withLock { $0.note(event) }
                outbox.send(event, watch: name)
            }
        }
        if isSettled { settled() }
    }

    /// What is held, or nil once there is nothing, from when on events pass straight through.
    private func takeHeld() -> [JobEvent]? {
        state.withLock { state in
            guard let held = state.held, !held.isEmpty else {
                state.held = nil
                return nil
            }
            state.held = []
            return held
        }
    }

    /// Whether every job it watches is over.
    var isSettled: Bool { state.withLock { $0.held == nil && $0.unfinished.isEmpty } }
}

extension ConnectionWatch.State {
    /// Keeps count of what is unfinished; true where nothing is any more.
    fileprivate mutating func note(_ event: JobEvent) -> Bool {
        if event.isLast { unfinished.remove(event.job) } else { unfinished.insert(event.job) }
        return unfinished.isEmpty
    }
}
