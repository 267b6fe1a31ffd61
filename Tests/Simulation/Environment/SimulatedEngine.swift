import JobModel
import JobCore

/// The engine's state: queued inputs and live runs.
struct SimulatedEngine {
    enum Phase {
        case serving
        /// A round was not committed.
        case failing
    }

    struct Run {
        enum State {
            case expanding
            /// Its step needs a host and waits for the permit.
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
    /// Inputs of a failed round, without requests.
    var held: [CoreInput] = []
    /// Inputs of a round with an unknown end; its requests are answered after the next commit.
    var unsettled: [CoreInput]?
    /// Inputs of a round whose fate will be told, and whether it was stored.
    var doubtful: [CoreInput]?
    var isStored = false
    /// Whether clients were not told of what happened before this life.
    var mustTellAgain = false
    var runs: [RunID: Run] = [:]
    var isRoundDue = false
    /// The elapsed time of the scheduled tick.
    var tickAt: Int64?
    /// Requests without an answer.
    var requests: Set<RequestID> = []
}
