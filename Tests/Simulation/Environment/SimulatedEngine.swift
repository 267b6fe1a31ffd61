import JobModel
import JobCore

/// What the engine keeps: inputs that wait, and the runs that are at work.
struct SimulatedEngine {
    enum Phase {
        case serving
        /// A round was not committed.
        case failing
    }

    struct Run {
        enum State {
            case expanding
            /// Its step asks a host, and waits for the permit.
            case asking
            case making
            case working
            case stopping
            /// Its end is in the inbox.
            case ended
        }

        let order: RunOrder
        var live: LiveRun
        var state = State.expanding
        var outcome: Carried?
    }

    var phase = Phase.serving
    var inbox: [CoreInput] = []
    /// Inputs of a round that was not committed, but for requests.
    var held: [CoreInput] = []
    /// Of a round whose end is unknown: its requests are answered once another is committed.
    var unsettled: [CoreInput]?
    var runs: [RunID: Run] = [:]
    var isRoundDue = false
    /// The elapsed time of the tick that is scheduled.
    var tickAt: Int64?
    /// Requests that wait for an answer.
    var requests: Set<RequestID> = []
}
