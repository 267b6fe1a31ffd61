import JobModel

/// Requests that wait for a later round; not in rows, so a reset keeps them.
package struct Waits {
    enum Event: Hashable {
        /// A job ended or was removed.
        case end(JobID)
        /// A run that was told to stop has ended.
        case stop(JobID)
        /// A piece of work is done.
        case work(WorkID)
    }

    /// A change made by a round, applied in order after the commit.
    enum Change {
        /// The request gets this answer once all of these events have happened.
        case begin(RequestID, Set<Event>, CoreAnswer)
        case happened(Event)
        /// The client no longer wants the answer.
        case abandon(RequestID)
        /// The daemon stops: all waiting requests are refused.
        case stop
    }

    private struct Wait {
        var open: Set<Event>
        let answer: CoreAnswer
    }

    private var waits: [RequestID: Wait] = [:]
    private var byEvent: [Event: Set<RequestID>] = [:]

    package var count: Int { waits.count }
    func isAwaited(_ event: Event) -> Bool { byEvent[event] != nil }
    /// The jobs whose ends are waited for.
    var jobs: [JobID] {
        byEvent.keys.compactMap {
            switch $0 {
            case .end(let job), .stop(let job): job
            case .work: nil
            }
        }
    }

    /// The pieces of work whose ends are waited for.
    var work: [WorkID] { byEvent.keys.compactMap { if case .work(let id) = $0 { id } else { nil } } }

    /// Applies a change and returns the effects on waiting requests.
    mutating func apply(_ change: Change) -> [CoreEffect] {
        switch change {
        case .begin(let request, let events, let answer):
            guard !events.isEmpty else { return [.answer(request, answer)] }
            waits[request] = Wait(open: events, answer: answer)
            for event in events { byEvent[event, default: []].insert(request) }
        case .happened(let event):
            var effects: [CoreEffect] = []
            for request in (byEvent.removeValue(forKey: event) ?? []).sorted() {
                waits[request]?.open.remove(event)
                guard let wait = waits[request], wait.open.isEmpty else { continue }
                waits[request] = nil
                effects.append(.answer(request, wait.answer))
            }
            return effects
        case .abandon(let request):
            for event in waits.removeValue(forKey: request)?.open ?? [] {
                byEvent[event]?.remove(request)
                if byEvent[event]?.isEmpty == true { byEvent[event] = nil }
            }
        case .stop:
            let requests = waits.keys.sorted()
            self = Waits()
            return requests.map { .answer($0, .failed(.stopping)) }
        }
        return []
    }
}
