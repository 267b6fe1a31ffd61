import JobModel

/// The faults of a store.
struct StoreFaults {
    enum Commit {
        case fails
        /// The result is unknown: the round is lost, or all of it appears after a kill.
        case isUnknown
    }

    /// The fault of the next commit of a round with writes.
    var commit: Commit?
    /// Transaction calls until one fails: any call, because a write also reads.
    var callsLeft: Int?
    /// Run in each transaction call.
    var onCall: (() -> Void)?
    /// Whether the store is full: inserting jobs fails, and all else works.
    var isFull = false
    /// Jobs with damaged rows, which count as missing.
    var damaged: Set<JobID> = []
    /// Jobs whose rows fail every read.
    var unreadable: Set<JobID> = []
}
