import JobModel

/// Requests that wait for something that a later round brings. They were learned outside: a reset leaves them alone.
struct Waits {
    /// What is waited for.
    enum Event: Hashable {
        /// A job is over, or gone.
        case end(JobID)
        /// A run that was told to end has ended.
        case stop(JobID)
        /// A piece of work is done.
        case work(WorkID)
    }

    /// What a request gets once all that it waits for has happened.
    enum Result {
        case over
        case answer(CoreAnswer)
    }

    /// What a round does to them, in this order, once it is committed.
    enum Change {
        case begin(RequestID, Set<Event>, Result)
        case happened(Event)
        /// No client wants the answer.
        case abandon(RequestID)
        /// The daemon stops: all are refused.
        case stop
    }

    private struct Wait {
        var open: Set<Event>
        let result: Result
    }

    private var waits: [RequestID: Wait] = [:]
    private var byEvent: [Event: Set<RequestID>] = [:]

    var count: Int { waits.count }

    /// Carries a change out; gives what waiting requests get by it.
    mutating func apply(_ change: Change) -> [CoreEffect] {
        switch change {
        case .begin(let request, let events, let result):
            guard !events.isEmpty else { return [Self.effect(request, result)] }
            waits[request] = Wait(open: events, result: result)
            for event in events { byEvent[event, default: []].insert(request) }
        case .happened(let event):
            var effects: [CoreEffect] = []
            for request in (byEvent.removeValue(forKey: event) ?? []).sorted() {
                waits[request]?.open.remove(event)
                guard let wait = waits[request], wait.open.isEmpty else { continue }
                waits[request] = nil
                effects.append(Self.effect(request, wait.result))
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

    private static func effect(_ request: RequestID, _ result: Result) -> CoreEffect {
        switch result {
        case .over: .waitOver(request)
        case .answer(let answer): .answer(request, answer)
        }
    }
}
